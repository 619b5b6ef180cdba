package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"openskill/host/agentskills"
	"openskill/host/app"
	"openskill/host/app/config"
	"openskill/host/dispatch/allow"
	"openskill/host/manifest"
	"openskill/internal/cliflag"
	"openskill/sdk/skill"
)

func (a *cli) agentSkillsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "agent-skills",
		Short: "List, load, read and run Agent Skills: folders with a SKILL.md",
		Long: `Show Agent Skills (agentskills.io) as agents see them: folders with a SKILL.md of
instructions, and files and scripts beside it. openskill skills validate checks them.`,
		Example: `  openskill agent-skills list
  openskill agent-skills load unit-converter
  openskill agent-skills run unit-converter convert.py -- --value 26.2 --factor 1.60934`,
	}
	group(cmd)
	cmd.AddCommand(a.agentSkillsListCommand(), a.agentSkillsLoadCommand(), a.agentSkillsReadCommand(), a.agentSkillsRunCommand())
	return cmd
}

func (a *cli) agentSkillsListCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list [FOLDER…]",
		Short: "List the Agent Skills of this host or of folders",
		Long: `List the Agent Skills of the settings, or of the named folders. Skipped ones, and why,
go to standard error. GRANT says whether the scripts are allowed requests or variables
(openskill skills allow): none, allowed, or changed, if other files are allowed.`,
		Example: "  openskill agent-skills list ./skills --json",
	}
	flags := bindSettings(cmd, agentSettings...)
	cmd.Flags().BoolVar(&asJSON, "json", false, `print {"data": […], "problems": […]}`)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		p, err := a.agentSkills(flags, args)
		if err != nil {
			return err
		}
		l := listing[skill.AgentSkill]{Problems: []manifest.Problem{}}
		if l.Data, err = p.List(cmd.Context(), skill.Local()); err != nil {
			return failure(err)
		}
		s, err := a.load(flags)
		if err != nil {
			return err
		}
		if len(args) == 0 { // grants are for the skills of the host
			if err := a.grantStates(cmd.Context(), s, l.Data); err != nil {
				return err
			}
		}
		l.Problems = append(l.Problems, p.Problems()...)
		if asJSON {
			return a.printJSON(l)
		}
		for _, problem := range l.Problems {
			a.say("openskill: %s", skill.CleanText(problem.String(), 1000))
		}
		shown := trustShown(s)
		t := newTable("NAME", "TRUST", "RESOURCES", "SCRIPTS", "GRANT", "DESCRIPTION")
		for _, k := range l.Data {
			t.row(k.Name, shown(k.Trust, k.Digest), len(k.Resources), len(k.Scripts), k.Grant, skill.CleanText(k.Description, 70))
		}
		return a.print("%s\n", t.String())
	}
	return cmd
}

// grantStates says of each skill whether its scripts are allowed something.
func (a *cli) grantStates(ctx context.Context, s *config.Settings, list []skill.AgentSkill) error {
	digests := allow.Digests{}
	if hasDatabase(s) {
		db, err := app.OpenStore(ctx, s, a.logger(level(s, slog.LevelError)))
		if err != nil {
			return changeFailed(err)
		}
		digests, err = app.ScriptGrants(db, s.StateDir).Digests(ctx)
		if err := errors.Join(err, db.Close()); err != nil {
			return hostFailed(err)
		}
	}
	for i := range list {
		list[i].Grant = string(digests.State(list[i].Name, list[i].Digest))
	}
	return nil
}

func (a *cli) agentSkillsLoadCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "load SKILL",
		Short:   "Print the SKILL.md of an Agent Skill",
		Example: "  openskill agent-skills load unit-converter",
		Args:    takes(1, 1),
	}
	flags := bindSettings(cmd, agentSettings...)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the skill as one JSON object, with its content, resources and scripts")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		p, err := a.agentSkills(flags, nil)
		if err != nil {
			return err
		}
		s, content, err := p.Load(cmd.Context(), skill.Local(), args[0])
		if err != nil {
			return failure(err)
		}
		if asJSON {
			return a.printJSON(struct {
				skill.AgentSkill
				Content string `json:"content"`
			}{s, content})
		}
		return a.print("%s", content)
	}
	return cmd
}

func (a *cli) agentSkillsReadCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "read SKILL RESOURCE",
		Short:   "Print a resource of an Agent Skill unchanged",
		Example: "  openskill agent-skills read unit-converter references/conversion-table.md",
		Args:    takes(2, 2),
	}
	flags := bindSettings(cmd, agentSettings...)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		p, err := a.agentSkills(flags, nil)
		if err != nil {
			return err
		}
		r, err := p.ReadResource(cmd.Context(), skill.Local(), args[0], args[1])
		if err != nil {
			return failure(err)
		}
		return a.print("%s", r.Data)
	}
	return cmd
}

// agentRun are the flags of agent-skills run beside the settings.
type agentRun struct {
	args, input, trace, artifacts string
	timeout                       cliflag.Duration
	fuel                          *cliflag.Count
	memory                        *cliflag.Count
}

func (a *cli) agentSkillsRunCommand() *cobra.Command {
	o := agentRun{fuel: fuelFlag(), memory: memoryFlag()}
	cmd := &cobra.Command{
		Use:   "run SKILL SCRIPT [-- ARGS…]",
		Short: "Run a script of an Agent Skill in the sandbox, without a running host",
		Long: `Run a script as a running host would and print the Normalized Skill Result, whose data
is {"output": standard output}. Output that is not UTF-8 is base64, with "encoding". The
exit code is 0 only if the result has "success": true. openskill script passes streams
through instead.

Arguments follow after --, or come as JSON with --args: a list of texts, or an object,
whose {"value": 1} becomes --value 1.`,
		Example: `  openskill agent-skills run unit-converter scripts/convert.py -- --value 26.2 --factor 1.60934
  openskill agent-skills run unit-converter convert.py --args '{"value": 26.2, "factor": 1.60934}'`,
		Args: takes(2, many),
	}
	flags := bindSettings(cmd, append([]string{"cli-dir", "data", "python", "debug"}, agentSettings...)...)
	f := cmd.Flags()
	f.Var(cliflag.Text(&o.args, "JSON"), "args", "arguments as a JSON list or object, instead of those after --")
	f.Var(cliflag.Text(&o.input, "TEXT"), "input", "standard input of the script; @FILE reads a file, - reads standard input")
	f.Var(cliflag.Text(&o.artifacts, "DIR"), "artifacts", "output folder for files of the script; created if missing, existing files are kept")
	f.Var(cliflag.Text(&o.trace, "ID"), "trace-id", "trace id, 1 to 64 of 0-9 A-Z a-z . _ -; default: a new one")
	f.Var(&o.timeout, "timeout", "time limit, such as 500ms")
	f.Var(o.fuel, "fuel", "fuel limit in units of about one instruction")
	f.Var(o.memory, "memory-mb", "memory limit in MiB")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return a.runAgentScript(cmd.Context(), flags, &o, args)
	}
	return cmd
}

func (a *cli) runAgentScript(ctx context.Context, flags *settingsFlags, o *agentRun, args []string) error {
	r := skill.ScriptRequest{
		Skill: args[0], Script: args[1], Args: args[2:], TraceID: skill.TraceID(o.trace),
		Asked: skill.Limits{Timeout: o.timeout.Value, Fuel: o.fuel.Value, Memory: o.memory.Value << 20},
	}
	switch {
	case o.trace != "" && !skill.ValidTraceID(o.trace):
		return usage("--trace-id %s: want 1 to 64 of 0-9 A-Z a-z . _ -", quote(o.trace))
	case o.args != "" && len(r.Args) > 0:
		return usage("give arguments either in --args or after the script")
	case o.args != "":
		list, err := agentskills.Arguments(json.RawMessage(o.args))
		if err != nil {
			return &exitError{exitUsage, err}
		}
		r.Args = list
	}
	s, err := a.load(flags)
	if err != nil {
		return err
	}
	switch {
	case o.input == "-" || strings.HasPrefix(o.input, "@"):
		if r.Stdin, err = a.readInput(ctx, o.input, s.MaxBody()); err != nil {
			return err
		}
	case o.input != "":
		r.Stdin = []byte(o.input)
	}
	h, err := app.Open(s, &app.Options{Log: a.logger(level(s, slog.LevelError)), Brief: true}) // nothing to wait for
	if err != nil {
		return hostFailed(err)
	}
	defer h.Close() // the answer is there; the process ends
	stop := a.after(time.Second, "openskill: getting the script's runtime ready; the first time takes some seconds")
	h.PrepareScript(ctx, r.Skill, r.Script)
	stop()
	result := h.AgentSkills().RunScript(ctx, skill.Local(), r)
	if err := a.printJSON(result); err != nil {
		return err
	}
	if err := writeArtifacts(o.artifacts, result.Meta.Artifacts); err != nil {
		return hostFailed(fmt.Errorf("cannot write artifacts: %w", err))
	}
	if !result.Success {
		return exit(exitFailed)
	}
	return nil
}

// agentSettings are the settings that say where Agent Skills are.
var agentSettings = []string{"skills", "agent-skills", "state"}

// agentSkills gives the Agent Skills of folders, or of the settings if there are none,
// to look at: nothing of them runs.
func (a *cli) agentSkills(flags *settingsFlags, folders []string) (*agentskills.Provider, error) {
	s, err := a.load(flags)
	if err != nil {
		return nil, err
	}
	if len(folders) == 0 {
		folders = nil
	}
	quiet := slog.New(slog.DiscardHandler) // problems are told with the list
	p, err := agentskills.NewBuilder().UseRoots(app.AgentRoots(s, folders), app.AgentOptions(s)).UseLogger(quiet).Build()
	if err != nil {
		return nil, usage("%v", err)
	}
	return p, nil
}

// failure ends a command with what a provider said.
func failure(err error) error {
	if e, ok := errors.AsType[*skill.Error](err); ok && e.Code != skill.Internal {
		return &exitError{exitFailed, e}
	}
	return hostFailed(fmt.Errorf("cannot read the Agent Skills: %w", err))
}
