package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"openskill/host/app"
	"openskill/host/dispatch/allow"
	"openskill/host/packages"
	"openskill/internal/cliflag"
	"openskill/sdk/skill"
)

// scriptFlags are those of openskill script beside the settings.
type scriptFlags struct {
	native    bool
	timeout   cliflag.Duration
	fuel      *cliflag.Count
	memory    *cliflag.Count
	artifacts string
	report    string
	allow     []string
	variables variables
}

func (a *cli) scriptCommand() *cobra.Command {
	o := scriptFlags{fuel: fuelFlag(), memory: memoryFlag()}
	cmd := &cobra.Command{
		Use:   "script FOLDER SCRIPT [-- ARGS…]",
		Short: "Run a script of an Agent Skill folder in the sandbox, unmodified",
		Long: `Run one script of a folder with a SKILL.md as a running host would. SCRIPT is its path
in the folder, with or without a leading scripts/. The script can write to its working
folder, the skill's; the folder itself stays unchanged, and --artifacts saves what was
written. Standard streams and exit code pass through; exit codes above 124 become 124.
Exit code 125 means that openSkill ended or refused the run. The last line on standard
error then has the reason as JSON. A script can print such a line, but cannot exit with
125. --report writes the host's own record of the run to a file.

--native runs it with this machine's python3 and your own rights, to compare: only for
scripts that you trust.`,
		Example: `  openskill script skills/unit-converter convert.py -- --value 26.2 --factor 1.60934
  openskill script weather now.py --allow https://api.example.com,GET --env API_KEY --for api.example.com -- Lisbon
  openskill script skills/unit-converter convert.py --native -- --value 26.2 --factor 1.60934`,
		Args: takes(2, many),
	}
	flags := bindSettings(cmd, "data", "state", "python", "debug")
	f := cmd.Flags()
	f.BoolVar(&o.native, "native", false, "run it on this machine, without the sandbox")
	f.Var(&o.timeout, "timeout", "time limit, such as 500ms")
	f.Var(o.fuel, "fuel", "fuel limit in units of about one instruction")
	f.Var(o.memory, "memory-mb", "memory limit in MiB")
	f.Var(cliflag.Text(&o.artifacts, "DIR"), "artifacts", "output folder for files of the script; created if missing, existing files are kept")
	f.Var(cliflag.Texts(&o.allow, "URL[,METHODS]"), "allow", "let the script make requests to URL and below; GET and HEAD unless METHODS says others; may repeat")
	o.variables.flags(f, "give the script a variable")
	f.Var(cliflag.Text(&o.report, "FILE"), "report", "output file for the run's end and result as JSON")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		r, err := openReport(o.report)
		if err != nil {
			return err
		}
		return r.finish(a.script(cmd.Context(), flags, &o, args, r))
	}
	return cmd
}

func (a *cli) script(ctx context.Context, flags *settingsFlags, o *scriptFlags, args []string, report *runReport) error {
	s, err := a.load(flags)
	if err != nil {
		return err
	}
	folder, name := args[0], args[1]
	granted, err := allow.Trial(o.allow, o.variables.list)
	if err != nil {
		return usage("%s", plainMessage(err))
	}
	if o.native {
		return a.nativeScript(ctx, s.Python, folder, name, args[2:], o.timeout.Value)
	}
	stdin, err := a.scriptInput(ctx, s.MaxBody())
	if err != nil {
		return err
	}
	h, err := app.Open(s, &app.Options{Log: a.logger(level(s, slog.LevelError)), Roots: []string{}, AgentRoots: []string{folder}, Scripts: granted, Brief: true}) // nothing to wait for
	if err != nil {
		return hostFailed(err)
	}
	defer h.Close() // the answer is there; the process ends
	id, err := a.onlyAgentSkill(ctx, h, folder)
	if err != nil {
		return err
	}
	stop := a.after(3*time.Second, "openskill: getting the script's runtime ready; the first time takes some seconds")
	h.PrepareScript(ctx, id, name)
	stop()
	result, reply := h.RunScript(ctx, skill.Local(), skill.ScriptRequest{
		Skill: id, Script: name, Args: args[2:], Stdin: stdin,
		Asked: skill.Limits{Timeout: o.timeout.Value, Fuel: o.fuel.Value, Memory: o.memory.Value << 20},
	})
	report.Result = result
	if l, err := packages.New(s.StateDir).Of(folder); err == nil { // a damaged lock has ended the run
		report.Packages = l.Names()
	}
	if reply != nil {
		report.GuestExitCode = &reply.ExitCode
		if _, err := a.stdout.Write(reply.Stdout); err != nil {
			return hostFailed(plain(err))
		}
		if _, err := a.stderr.Write(reply.Stderr); err != nil {
			return hostFailed(plain(err))
		}
	}
	if err := writeArtifacts(o.artifacts, result.Meta.Artifacts); err != nil {
		return hostFailed(fmt.Errorf("cannot write artifacts: %w", err))
	}
	switch {
	case result.Success:
		return nil
	case reply != nil && reply.Code == "":
		return guestExit(reply.ExitCode)
	}
	return failed(result.Error.Code, "%s", result.Error.Message)
}

// scriptInput reads standard input, where it is no terminal: a script has all of its
// input before it starts.
func (a *cli) scriptInput(ctx context.Context, most int) ([]byte, error) {
	if f, ok := a.stdin.(*os.File); ok {
		if info, err := f.Stat(); err != nil || info.Mode()&os.ModeCharDevice != 0 {
			return nil, nil
		}
	}
	return readAll(ctx, a.stdin, most)
}

// onlyAgentSkill is the name of the skill whose folder was named.
func (a *cli) onlyAgentSkill(ctx context.Context, h *app.Host, folder string) (string, error) {
	list, err := h.AgentSkills().List(ctx, skill.Local())
	if err != nil {
		return "", failure(err)
	}
	if len(list) != 1 {
		for _, p := range h.AgentSkills().Problems() {
			a.say("openskill: %s", skill.CleanText(p.String(), 1000))
		}
		return "", failed(skill.NotFound, "%s has %d Agent Skills; name the folder with the SKILL.md", quote(folder), len(list))
	}
	return list[0].Name, nil
}

// nativeScript runs a script as its author would.
func (a *cli) nativeScript(ctx context.Context, python, folder, name string, args []string, timeout time.Duration) error {
	path := ""
	for _, try := range []string{name, "scripts/" + name} {
		if !filepath.IsLocal(try) {
			continue
		}
		if info, err := os.Stat(filepath.Join(folder, try)); err == nil && info.Mode().IsRegular() {
			path = try
			break
		}
	}
	if path == "" {
		return failed(skill.NotFound, "%s has no script %s", quote(folder), quote(name))
	}
	if !strings.HasSuffix(path, ".py") {
		return usage("--native runs Python scripts")
	}
	if timeout > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, timeout)
		defer stop()
	}
	cmd := exec.CommandContext(ctx, python, append([]string{path}, args...)...)
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = folder, a.stdin, a.stdout, a.stderr
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	switch ended, ok := errors.AsType[*exec.ExitError](err); {
	case ctx.Err() != nil:
		return failed(skill.Timeout, "the script timed out")
	case ok:
		return guestExit(uint32(ended.ExitCode()))
	case err != nil:
		return hostFailed(err)
	}
	return nil
}
