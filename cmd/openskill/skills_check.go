package main

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"openskill/host/agentskills"
	"openskill/host/app"
	"openskill/host/packages"
	"openskill/host/pysource"
	"openskill/host/pysource/preflight"
	"openskill/plugins/python/runtimes"
	"openskill/sdk/skill"
)

// preflights is what skills check prints with --json.
type preflights struct {
	Verdict preflight.Severity `json:"verdict"` // the worst of the folders
	Folders []preflighted      `json:"folders"`
}

// preflighted is one folder and what it needs.
type preflighted struct {
	Folder   string   `json:"folder"`             // as it was given, or below that
	Packages []string `json:"packages,omitempty"` // that its scripts were given
	*preflight.Report
}

func (a *cli) skillsCheckCommand() *cobra.Command {
	var asJSON, quiet, summary bool
	cmd := &cobra.Command{
		Use:   "check FOLDER…",
		Short: "Check whether the sandbox has what the scripts of skills need",
		Long: `Check, without running anything, what the scripts of Agent Skills need: modules,
packages, other programs, threads, sockets, files outside their folder. FOLDER is a
skill's own, with a SKILL.md, or one of skills.

The table has a line per script; below it are the findings, one per line: file:line:
verdict: what; what to do instead. A script

  runs        as far as can be seen: the sandbox has what it needs, or you can grant it
  may differ  it runs, but its results may differ from those outside
  cannot run  it fails at the named line

With --summary, it counts the skills and scripts of a collection that are covered: nothing
says that they cannot run. Granted requests and variables, and packages without native
code, count as had; the exit code is then 0.

Decisions at run time cannot be seen; openskill skills parity compares runs. The exit
code is 1 if a script cannot run.`,
		Example: `  openskill skills check ./my-skill
  openskill skills check ./skills --json
  openskill skills check ./skills --summary`,
		Args: takes(1, many),
	}
	flags := bindSettings(cmd, "state")
	cmd.Flags().BoolVar(&asJSON, "json", false, `print {"verdict": …, "folders": […]}`)
	cmd.Flags().BoolVar(&quiet, "quiet", false, "show obstacles only")
	cmd.Flags().BoolVar(&summary, "summary", false, "show how many skills are covered, and the commonest reasons against")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		all := preflights{Verdict: preflight.Runs, Folders: []preflighted{}}
		var folders []string
		declared := map[string]bool{} // by the collections, for all their skills
		for _, name := range args {
			root, err := os.OpenRoot(name)
			if err != nil {
				return usage("%s is not a folder", quote(name))
			}
			maps.Copy(declared, preflight.DeclaredNames(root))
			if err := root.Close(); err != nil {
				return hostFailed(err)
			}
			folders = append(folders, agentFolders(name)...)
		}
		err := a.withPython(flags, func(store *runtimes.Store, runner skill.Runner, state string) error {
			o, err := preflightOptions(store, runner, state)
			if err != nil {
				return err
			}
			o.Declared = declared
			all.Folders = make([]preflighted, len(folders))
			given := packages.New(state)
			g, ctx := errgroup.WithContext(cmd.Context())
			g.SetLimit(runtime.GOMAXPROCS(0))
			for i, folder := range folders {
				g.Go(func() error {
					own, names, err := app.WithPackages(o, given, folder)
					if err != nil {
						return hostFailed(err)
					}
					r, err := preflightFolder(ctx, folder, own)
					all.Folders[i] = preflighted{folder, names, r}
					return err
				})
			}
			if err := g.Wait(); err != nil {
				return err
			}
			for _, f := range all.Folders {
				all.Verdict = preflight.Worse(all.Verdict, f.Verdict)
			}
			return nil
		})
		if err == nil && summary {
			return a.summarize(&all, asJSON)
		}
		if err == nil && asJSON {
			err = a.printJSON(all)
		} else if err == nil {
			err = a.preflights(&all, quiet)
		}
		if err != nil {
			return err
		}
		if all.Verdict == preflight.CannotRun {
			return exit(exitFailed)
		}
		return nil
	}
	return cmd
}

// agentFolders are the Agent Skills of a folder. One without any is looked at as it is.
func agentFolders(folder string) []string {
	if found, _ := agentskills.Folders(folder); len(found) > 0 {
		return found
	}
	return []string{folder}
}

// withPython gives the sandboxed Python of a host of these settings. It is not known yet
// whether anything runs.
func (a *cli) withPython(flags *settingsFlags, use func(store *runtimes.Store, r skill.Runner, state string) error) error {
	s, err := a.load(flags)
	if err != nil {
		return err
	}
	h, err := app.Open(s, &app.Options{Log: a.logger(level(s, slog.LevelError)), Roots: []string{}, AgentRoots: []string{}, Brief: true})
	if err != nil {
		return hostFailed(err)
	}
	defer h.Close()
	r, err := h.Python()
	if err != nil {
		return hostFailed(err)
	}
	return use(runtimes.New(s.StateDir), r, s.StateDir)
}

// preflightOptions knows the modules of the runtimes, installed or not.
func preflightOptions(store *runtimes.Store, runner skill.Runner, state string) (*preflight.Options, error) {
	o, err := app.PreflightOptions(store)
	if err != nil {
		return nil, hostFailed(err)
	}
	o.Python, o.Tenant = pysource.New(pysource.Options{Runner: runner, Dir: app.AnalysisDir(state)}), skill.Local().Tenant
	return o, nil
}

func preflightFolder(ctx context.Context, folder string, o *preflight.Options) (*preflight.Report, error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, usage("cannot read %s: %v", quote(folder), plain(err))
	}
	defer root.Close()
	r, err := preflight.Check(ctx, root, o)
	switch told, ok := errors.AsType[*skill.Error](err); {
	case err != nil && ctx.Err() != nil:
		return nil, failed(skill.Cancelled, "interrupted")
	case ok && told.Code != skill.Internal: // there is no runtime
		return nil, &exitError{exitHost, told}
	case err != nil:
		return nil, hostFailed(err)
	}
	return r, nil
}

// preflights prints a table of scripts, and the findings below it.
func (a *cli) preflights(all *preflights, quiet bool) error {
	t := newTable("SCRIPT", "VERDICT", "RUNTIME", "REQUIRES")
	run, differ, cannot := 0, 0, 0
	for _, f := range all.Folders {
		for i := range f.Scripts {
			s := &f.Scripts[i]
			t.row(skill.CleanText(filepath.ToSlash(filepath.Join(f.Folder, s.Name)), 200), s.Verdict.Words(), s.Runtime, strings.Join(s.Requires, ", "))
		}
		r, d, c := f.Count()
		run, differ, cannot = run+r, differ+d, cannot+c
	}
	if run+differ+cannot == 0 {
		return a.print("no scripts in %d folders\n", len(all.Folders))
	}
	if err := a.print("%s\n", t.String()); err != nil {
		return err
	}
	first := true
	for _, f := range all.Folders {
		for i := range f.Findings {
			found := f.Findings[i]
			if quiet && found.Severity == preflight.Runs {
				continue
			}
			if first {
				first = false
				if err := a.print("\n"); err != nil {
					return err
				}
			}
			found.File = filepath.ToSlash(filepath.Join(f.Folder, found.File))
			if err := a.print("%s\n", skill.CleanText(found.String(), 900)); err != nil {
				return err
			}
		}
	}
	for _, f := range all.Folders {
		if n := len(f.Packages); n > 0 {
			if err := a.print("\n%s has %d packages: %s\n", skill.CleanText(f.Folder, 200), n, skill.CleanText(strings.Join(f.Packages, ", "), 1000)); err != nil {
				return err
			}
		}
	}
	return a.print("\n%d run, %d may differ, %d cannot run\n", run, differ, cannot)
}
