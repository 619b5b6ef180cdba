package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"openskill/host/app"
	"openskill/host/packages"
	"openskill/host/pysource/preflight"
	"openskill/internal/cliflag"
	"openskill/plugins/python/runtimes"
	"openskill/sdk/skill"
)

func (a *cli) packagesCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "packages",
		Short: "Give skills packages of Python and npm",
		Long: `Manage the packages that the scripts of a skill's folder can import: wheels in pure
Python, and npm packages without native code. pip and npm of this machine resolve and
download them, from the index that they are set up for; nothing of a package is run
outside the sandbox. They are locked by digest in the state folder; the skill's own
folder stays as it is. A host never downloads packages by itself. FOLDER run_code gives
packages to code (openskill code, POST /code:run); use ./run_code for a folder of this name.

With --remote, SKILL@VERSION in place of the folder is a version of an uploaded skill on
a running host, which resolves and downloads; your key needs the scope skills:admin.`,
		Example: `  openskill packages add ./weather
  openskill packages add ./weather python:requests npm:chalk@^5
  openskill packages add weather@1.0.0 --remote https://skills.example.com --key-env MY_KEY
  openskill packages list ./weather`,
	}
	group(cmd)
	cmd.AddCommand(a.packagesAddCommand(), a.packagesLockCommand(), a.packagesListCommand(), a.packagesRemoveCommand())
	return cmd
}

// packagesFlags are those of add and lock beside the settings.
type packagesFlags struct {
	settings *settingsFlags
	remote   *remotePackages
	from     string
	age      string
	allowed  string
	asJSON   bool
}

func bindPackages(cmd *cobra.Command) *packagesFlags {
	o := &packagesFlags{settings: bindSettings(cmd, "state", "python"), remote: bindRemotePackages(cmd)}
	f := cmd.Flags()
	f.Var(cliflag.Text(&o.from, "DIR"), "from", "folder of wheels and tarballs to use in place of the index")
	f.Var(cliflag.Text(&o.age, "TIME"), "min-age", "minimum age of a release, such as 12h or 3d; default 7d")
	f.Var(cliflag.Text(&o.allowed, "FILE"), "allowed", "file with the packages that may be added, one per line, such as python:requests")
	f.BoolVar(&o.asJSON, "json", false, "print JSON")
	return o
}

func (a *cli) packagesAddCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "add FOLDER [NAME…]",
		Short: "Add packages for the scripts of a skill",
		Long: `Add packages for the scripts of a skill's folder, with all that they need. NAME is
python:NAME with versions, as in python:requests>=2, or npm:NAME@RANGE; in a folder with
scripts of one kind the prefix may be omitted. Without NAME, the packages that the folder
declares are added: in requirements.txt, pyproject.toml, package.json, and the blocks of
PEP 723 in scripts; where it declares none, those that its scripts import, as skills check
finds them. Versions that are locked stay.

Packages with native code are refused, but for those of the Python runtimes, which are
used. Releases younger than --min-age, and those that their authors took back, are not
considered.`,
		Example: `  openskill packages add ./weather
  openskill packages add ./weather 'python:requests>=2' --min-age 3d`,
		Args: takes(1, many),
	}
	o := bindPackages(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if yes, err := o.remote.used(); err != nil {
			return err
		} else if yes {
			return o.remote.change(cmd.Context(), a, args, false, o.asJSON)
		}
		return a.changePackages(cmd.Context(), o, args, (*packages.Store).Add)
	}
	return cmd
}

func (a *cli) packagesLockCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "lock FOLDER",
		Short: "Resolve the packages of a skill anew",
		Long: `Resolve the packages that a skill's folder declares, and those that were added to it,
to their newest permitted versions, and lock them. It also repairs damaged packages.`,
		Example: "  openskill packages lock ./weather",
		Args:    takes(1, 1),
	}
	o := bindPackages(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if yes, err := o.remote.used(); err != nil {
			return err
		} else if yes {
			return o.remote.change(cmd.Context(), a, args, true, o.asJSON)
		}
		return a.changePackages(cmd.Context(), o, args, (*packages.Store).Relock)
	}
	return cmd
}

// changePackages adds or locks: args are a folder and names.
func (a *cli) changePackages(ctx context.Context, f *packagesFlags, args []string, change packagesChange) error {
	s, err := a.load(f.settings)
	if err != nil {
		return err
	}
	if args[0], err = app.PackagesFolder(s, args[0]); err != nil {
		return hostFailed(err)
	}
	asked, err := askedPackages(args[0], args[1:])
	if err != nil {
		return err
	}
	if len(asked) == 0 {
		l, err := packages.New(s.StateDir).Of(args[0])
		if err != nil {
			return hostFailed(err)
		}
		if l == nil {
			if asked, err = a.importedPackages(ctx, f.settings, args[0]); err != nil {
				return err
			}
			if len(asked) == 0 {
				return a.print("%s declares and imports no packages\n", args[0])
			}
		}
	}
	return a.changeAsked(ctx, f, args[0], asked, change)
}

// packagesChange is [packages.Store.Add] or Relock.
type packagesChange func(*packages.Store, context.Context, string, []packages.Requirement, *packages.Options) (*packages.Change, error)

// changeAsked has the packages of a folder changed, and prints what came of it.
func (a *cli) changeAsked(ctx context.Context, f *packagesFlags, folder string, asked []packages.Requirement, change packagesChange) error {
	s, err := a.load(f.settings)
	if err != nil {
		return err
	}
	o, err := f.options(s.StateDir, s.Python)
	if err != nil {
		return err
	}
	closed := a.compileModules(f.settings, o)
	defer closed()
	stop := a.after(time.Second, "openskill: downloading packages, and compiling those of Python")
	c, err := change(packages.New(s.StateDir), ctx, folder, asked, o)
	stop()
	if err != nil {
		return packagesFailed(err)
	}
	if f.asJSON {
		return a.printJSON(c)
	}
	return a.printChange(c)
}

func packagesFailed(err error) error {
	switch e, ok := errors.AsType[*skill.Error](err); {
	case errors.Is(err, context.Canceled):
		return failed(skill.Cancelled, "interrupted")
	case ok && e.Code != skill.Internal:
		return &exitError{exitFailed, e}
	}
	return hostFailed(err)
}

// options are what the flags and the runtimes say.
func (f *packagesFlags) options(state, python string) (*packages.Options, error) {
	o, err := app.PackageOptions(runtimes.New(state), python)
	if err != nil {
		return nil, hostFailed(err)
	}
	if f.age != "" {
		if o.MinAge, err = parseAge(f.age); err != nil {
			return nil, usage("--min-age %s: use a time such as 12h or 3d; 0 allows all releases", quote(f.age))
		}
	}
	if f.from != "" {
		if o.From, err = filepath.Abs(f.from); err != nil {
			return nil, hostFailed(err)
		}
		if info, err := os.Stat(o.From); err != nil || !info.IsDir() {
			return nil, usage("--from %s is not a folder", quote(f.from))
		}
	}
	if f.allowed != "" {
		list, err := allowedPackages(f.allowed)
		if err != nil {
			return nil, err
		}
		o.Allowed = func(e packages.Ecosystem, name string) bool { return list[string(e)+":"+name] }
	}
	return o, nil
}

// parseAge reads a duration, of days too.
func parseAge(text string) (time.Duration, error) {
	if days, is := strings.CutSuffix(text, "d"); is {
		d, err := time.ParseDuration(days + "h")
		if d *= 24; err != nil || d < 0 {
			return 0, errors.New("invalid")
		}
		return d, nil
	}
	d, err := time.ParseDuration(text)
	if err == nil && d < 0 {
		err = errors.New("negative")
	}
	return d, err
}

// allowedPackages reads a file with a package on each line; # begins a comment.
func allowedPackages(file string) (map[string]bool, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, usage("--allowed %s: %v", quote(file), plain(err))
	}
	defer f.Close()
	list := map[string]bool{}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		text, _, _ := strings.Cut(lines.Text(), "#")
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		r, err := packages.ParseRequirement(text, "")
		if err != nil {
			return nil, usage("--allowed %s: %s", quote(file), err)
		}
		list[string(r.Ecosystem)+":"+r.Name] = true
	}
	if err := lines.Err(); err != nil {
		return nil, usage("--allowed %s: %v", quote(file), plain(err))
	}
	return list, nil
}

// askedPackages are those that were named, else those that the folder declares.
func askedPackages(folder string, names []string) ([]packages.Requirement, error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, usage("cannot read the folder %s: %v", quote(folder), plain(err))
	}
	defer root.Close()
	var asked []packages.Requirement
	if len(names) > 0 {
		kind := onlyKind(root)
		for _, name := range names {
			r, err := packages.ParseRequirement(name, kind)
			if err != nil {
				return nil, &exitError{exitUsage, err}
			}
			asked = append(asked, r)
		}
		return asked, nil
	}
	asked, err = app.DeclaredPackages(root)
	switch e, ok := errors.AsType[*skill.Error](err); {
	case ok:
		return nil, &exitError{exitFailed, e}
	case err != nil:
		return nil, usage("cannot read the folder %s: %v", quote(folder), plain(err))
	}
	return asked, nil
}

// importedPackages are those that the scripts of a folder import, where the folder declares none:
// what skills check proposes. It says so on standard error.
func (a *cli) importedPackages(ctx context.Context, flags *settingsFlags, folder string) (asked []packages.Requirement, err error) {
	err = a.withPython(flags, func(store *runtimes.Store, runner skill.Runner, state string) error {
		o, err := preflightOptions(store, runner, state)
		if err != nil {
			return err
		}
		r, err := preflightFolder(ctx, folder, o)
		if err != nil {
			return err
		}
		for _, n := range r.Needs.Packages {
			kind := packages.Ecosystem(n.Ecosystem)
			if n.Native {
				if _, err := fmt.Fprintf(a.stderr, "openskill: %s:%d: %s:%s needs native code, and is not added\n", n.File, n.Line, kind, n.Name); err != nil {
					return hostFailed(err)
				}
				continue
			}
			p, err := packages.ParseRequirement(n.Name, kind)
			if err != nil {
				continue // the name is of no package
			}
			p.From = n.File
			asked = append(asked, p)
		}
		return nil
	})
	if err != nil || len(asked) == 0 {
		return nil, err
	}
	var names []string
	for i := range asked {
		names = append(names, asked[i].String())
	}
	_, err = fmt.Fprintf(a.stderr, "openskill: %s declares no packages; its scripts import %s\n", skill.CleanText(folder, 200), skill.CleanText(strings.Join(names, ", "), 1000))
	return asked, err
}

// onlyKind is the ecosystem of a folder's scripts; "": they are of both, or of neither.
func onlyKind(root *os.Root) packages.Ecosystem {
	python, node := false, false
	_ = preflight.Files(root, func(name string) {
		switch strings.ToLower(filepath.Ext(name)) {
		case ".py":
			python = true
		case ".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".tsx":
			node = true
		}
	})
	switch {
	case python && !node:
		return packages.Python
	case node && !python:
		return packages.NPM
	}
	return ""
}

func (a *cli) printChange(c *packages.Change) error {
	for _, p := range c.Removed {
		if err := a.print("- %s\n", p.String()); err != nil {
			return err
		}
	}
	for _, p := range c.Added {
		where := ""
		if p.Digest == "" {
			where = " (of the runtime)"
		}
		if err := a.print("+ %s%s\n", p.String(), where); err != nil {
			return err
		}
		for _, n := range p.Notes {
			if err := a.print("    %s\n", n); err != nil {
				return err
			}
		}
	}
	return a.print("%d packages, %d files, %.1f MB\n", len(c.Lock.Packages), c.Lock.Files, float64(c.Lock.Bytes)/1e6)
}

func (a *cli) packagesListCommand() *cobra.Command {
	var asJSON, sbom bool
	cmd := &cobra.Command{
		Use:   "list [FOLDER]",
		Short: "List the packages of skills",
		Long: `List the packages of a skill's folder, with their digests, or the folders that have
packages. The files of the packages are compared with the lock. --sbom prints a bill of
materials, CycloneDX 1.6 in JSON.`,
		Example: "  openskill packages list ./weather --json\n  openskill packages list ./weather --sbom >weather.cdx.json",
		Args:    takes(0, 1),
	}
	flags := bindSettings(cmd, "state")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().BoolVar(&sbom, "sbom", false, "print a bill of materials of the folder's packages")
	remote := bindRemotePackages(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if yes, err := remote.used(); err != nil {
			return err
		} else if yes {
			return remote.list(cmd.Context(), a, args, asJSON, sbom)
		}
		if sbom && len(args) == 0 {
			return usage("--sbom needs a folder")
		}
		s, err := a.load(flags)
		if err != nil {
			return err
		}
		store := packages.New(s.StateDir)
		if len(args) == 0 {
			return a.listPackageFolders(store, asJSON)
		}
		if args[0], err = app.PackagesFolder(s, args[0]); err != nil {
			return hostFailed(err)
		}
		l, err := store.Of(args[0])
		switch {
		case errors.Is(err, os.ErrNotExist):
			return usage("folder not found: %s", quote(args[0]))
		case err != nil:
			return hostFailed(err)
		case l == nil:
			l = &packages.Lock{Folder: filepath.Clean(args[0]), Packages: []packages.Package{}}
		}
		if _, _, err := store.Use(args[0]); err != nil {
			return packagesFailed(err)
		}
		if sbom {
			return l.WriteBill(a.stdout, filepath.Base(l.Folder), "")
		}
		return a.printLock(args[0], l, asJSON)
	}
	return cmd
}

// printLock prints the packages of a lock, which another host may have sent.
func (a *cli) printLock(of string, l *packages.Lock, asJSON bool) error {
	if asJSON {
		return a.printJSON(l)
	}
	if len(l.Packages) == 0 {
		return a.print("%s has no packages\n", of)
	}
	t := newTable("PACKAGE", "VERSION", "DIGEST", "")
	for i := range l.Packages {
		p := &l.Packages[i]
		digest := p.Digest
		if digest == "" {
			digest = "of the runtime"
		}
		t.row(string(p.Ecosystem)+":"+skill.CleanText(p.Name, 300), skill.CleanText(p.Version, 100), digest, skill.CleanText(strings.Join(p.Notes, ", "), 300))
	}
	return a.print("%s\n", t)
}

func (a *cli) listPackageFolders(store *packages.Store, asJSON bool) error {
	all, err := store.List()
	if err != nil {
		return hostFailed(err)
	}
	if asJSON {
		return a.printJSON(listOf[*packages.Lock]{append([]*packages.Lock{}, all...)})
	}
	if len(all) == 0 {
		return a.print("no skill has packages\n")
	}
	t := newTable("FOLDER", "PACKAGES", "MB")
	for _, l := range all {
		t.row(l.Folder, len(l.Packages), float64(l.Bytes/1e5)/10)
	}
	return a.print("%s\n", t)
}

func (a *cli) packagesRemoveCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "remove FOLDER [NAME…]",
		Short: "Remove packages from the scripts of a skill",
		Long: `Remove packages that were added to a skill's folder, with those that only they need;
without NAME all. No index is needed.`,
		Example: "  openskill packages remove ./weather python:requests",
		Args:    takes(1, many),
	}
	flags, remote := bindSettings(cmd, "state", "python"), bindRemotePackages(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if yes, err := remote.used(); err != nil {
			return err
		} else if yes {
			return remote.remove(cmd.Context(), a, args)
		}
		s, err := a.load(flags)
		if err != nil {
			return err
		}
		if args[0], err = app.PackagesFolder(s, args[0]); err != nil {
			return hostFailed(err)
		}
		var gone []packages.Requirement
		if len(args) > 1 {
			if gone, err = askedPackages(args[0], args[1:]); err != nil {
				return err
			}
		}
		o, err := (&packagesFlags{}).options(s.StateDir, s.Python)
		if err != nil {
			return err
		}
		closed := a.compileModules(flags, o)
		defer closed()
		c, err := packages.New(s.StateDir).Remove(cmd.Context(), args[0], gone, o)
		if err != nil {
			return packagesFailed(err)
		}
		return a.printChange(c)
	}
	return cmd
}
