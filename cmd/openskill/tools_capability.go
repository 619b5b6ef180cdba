package main

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"openskill/cmd/openskill/internal/capability"
	"openskill/host/pysource"
	"openskill/internal/cliflag"
	"openskill/plugins/python/runtimes"
	"openskill/sdk/skill"
)

// imported is what capability import prints with --json.
type imported struct {
	Skills   []importedSkill      `json:"skills"`
	Problems []capability.Problem `json:"problems"`
}

type importedSkill struct {
	ID     skill.ID `json:"id"`
	Folder string   `json:"folder"` // "" where nothing was written
	*capability.Function
}

func (a *cli) capabilityCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "capability",
		Short: "Create skills from Python functions",
		Example: `  openskill capability show tools.py --function add
  openskill capability import capability_registry.json`,
	}
	group(cmd)
	cmd.AddCommand(a.capabilityImportCommand(), a.capabilityShowCommand())
	return cmd
}

func (a *cli) capabilityImportCommand() *cobra.Command {
	var function, out string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "import FILE",
		Short: "Create a skill from a function, or skills from a capability registry",
		Long: `Create a skill from a function of FILE.py, or one from each capability of a
capability_registry.json, in folders named by their ids. The input schema comes from
type hints, docstring and defaults; the code is read in the sandbox, not executed.
Imported files beside it are copied.

Skills created by this command are recreated; other folders are left alone. The exit
code is 1 if any could not be created; the rest is created.`,
		Example: `  openskill capability import tools.py --function add
  openskill capability import capability_registry.json --out ./skills`,
		Args: takes(1, 1),
	}
	flags := bindSettings(cmd, "skills", "state")
	cmd.Flags().Var(cliflag.Text(&function, "NAME"), "function", "function, or capability of a registry; default: the only public function or main, or all capabilities")
	cmd.Flags().Var(cliflag.Text(&out, "DIR"), "out", "target folder; default: the folder of skills of the settings")
	cmd.Flags().BoolVar(&asJSON, "json", false, `print {"skills": […], "problems": […]}`)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		s, err := a.load(flags)
		if err != nil {
			return err
		}
		if out == "" {
			out = s.SkillsDir
		}
		return a.capabilities(cmd.Context(), flags, args[0], function, out, asJSON)
	}
	return cmd
}

func (a *cli) capabilityShowCommand() *cobra.Command {
	var function string
	var asJSON, arguments bool
	cmd := &cobra.Command{
		Use:   "show FILE",
		Short: "Show the schemas for a function, a registry or a command line",
		Long: `Show the schemas that import would create from FILE.py or a capability_registry.json.
With --arguments, show the schema of a script's argparse command line; "partial" means
that its parser could not be followed to the end.`,
		Example: `  openskill capability show tools.py --function add
  openskill capability show scripts/convert.py --arguments
  openskill capability show capability_registry.json --json`,
		Args: takes(1, 1),
	}
	flags := bindSettings(cmd, "state")
	cmd.Flags().Var(cliflag.Text(&function, "NAME"), "function", "as in import")
	cmd.Flags().BoolVar(&asJSON, "json", false, `print {"skills": […], "problems": […]}; with --arguments {"description": …, "input_schema": …}`)
	cmd.Flags().BoolVar(&arguments, "arguments", false, "print the schema of the script's command line")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		switch {
		case arguments && function != "":
			return usage("use either --arguments (a script) or --function (a file of functions)")
		case arguments:
			return a.commandLine(cmd.Context(), flags, args[0], asJSON)
		}
		return a.capabilities(cmd.Context(), flags, args[0], function, "", asJSON)
	}
	return cmd
}

// commandLine shows what a script's parser of the command line takes.
func (a *cli) commandLine(ctx context.Context, flags *settingsFlags, file string, asJSON bool) error {
	f, err := os.Open(file)
	if err != nil {
		return usage("cannot read %s: %v", quote(file), plain(err))
	}
	source, err := io.ReadAll(io.LimitReader(f, pysource.MaxSource+1))
	if err = errors.Join(err, f.Close()); err != nil {
		return usage("cannot read %s: %v", quote(file), plain(err))
	}
	var s *capability.Script
	err = a.withPython(flags, func(_ *runtimes.Store, r skill.Runner, state string) error {
		var problems []capability.Problem
		var err error
		s, problems, err = capability.Command(ctx, pysource.New(pysource.Options{Runner: r, Dir: filepath.Join(state, "pyast")}), skill.Local().Tenant, source)
		switch {
		case err != nil:
			return told(err)
		case len(problems) > 0:
			return failed(skill.InvalidArgument, "%s: %s", quote(file), problems[0])
		case s == nil:
			return failed(skill.NotFound, "%s has no argparse parser that can be followed", quote(file))
		}
		return nil
	})
	if err != nil {
		return err
	}
	if asJSON {
		return a.printJSON(s)
	}
	if s.Partial {
		a.say("openskill: the parser was not followed to its end; it may accept more")
	}
	return a.print("%s\n", indented(s.Input))
}

// capabilities makes skills of what a file has, and puts them into the folder out; "" to
// show them alone.
func (a *cli) capabilities(ctx context.Context, flags *settingsFlags, file, function, out string, asJSON bool) error {
	all := imported{Skills: []importedSkill{}, Problems: []capability.Problem{}}
	err := a.withPython(flags, func(_ *runtimes.Store, r skill.Runner, state string) error {
		mk := capability.New(capability.Options{
			Analyzer: pysource.New(pysource.Options{Runner: r, Dir: filepath.Join(state, "pyast")}),
			Tenant:   skill.Local().Tenant, Package: packageOf,
		})
		sources, problems, err := mk.Import(ctx, file, function)
		if err != nil {
			return told(err)
		}
		all.Problems = append(all.Problems, problems...)
		for _, s := range sources {
			made, problems, err := mk.Make(ctx, s)
			if err != nil {
				return told(err)
			}
			all.Problems = append(all.Problems, problems...)
			if made == nil {
				continue
			}
			one := importedSkill{made.ID, "", made.Function}
			if out != "" {
				if one.Folder, err = made.Write(out); skill.CodeOf(err) == skill.Conflict {
					var e *skill.Error
					errors.As(err, &e)
					all.Problems = append(all.Problems, capability.Problem{File: s.File, Message: e.Message})
					continue
				} else if err != nil {
					return hostFailed(err)
				}
			}
			all.Skills = append(all.Skills, one)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := a.capabilityList(&all, asJSON); err != nil {
		return err
	}
	if len(all.Problems) > 0 {
		return exit(exitFailed)
	}
	return nil
}

// told is what was wrong with a file that was named, or else the host's failure.
func told(err error) error {
	switch skill.CodeOf(err) {
	case skill.InvalidArgument:
		return &exitError{exitUsage, err}
	case skill.Cancelled:
		return &exitError{exitFailed, err}
	default:
		return hostFailed(err)
	}
}

func (a *cli) capabilityList(all *imported, asJSON bool) error {
	if asJSON {
		return a.printJSON(all)
	}
	for _, p := range all.Problems {
		a.say("openskill: %s", skill.CleanText(p.String(), 1000))
	}
	if len(all.Skills) == 0 {
		return nil
	}
	t := newTable("ID", "FUNCTION", "FOLDER", "DESCRIPTION")
	for _, s := range all.Skills {
		t.row(s.ID, s.Name, s.Folder, skill.CleanText(s.Description, 60))
	}
	if err := a.print("%s\n", t.String()); err != nil {
		return err
	}
	for _, s := range all.Skills {
		for _, n := range s.Notes {
			a.say("openskill: %s: %s", s.ID, skill.CleanText(n, 400))
		}
		if s.Folder == "" {
			if err := a.print("\n%s, input_schema:\n%s\n", s.ID, indented(s.Input)); err != nil {
				return err
			}
		}
	}
	return nil
}

// packageOf is the package of the runtimes that has a module.
func packageOf(module string) string {
	for _, p := range runtimes.Packages() {
		for _, m := range p.Imports {
			if m == module {
				return p.Name
			}
		}
	}
	return ""
}
