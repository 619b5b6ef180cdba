package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"openskill/host/app"
	"openskill/internal/cliflag"
	"openskill/sdk/skill"
)

// codeFlags are the flags of openskill code.
type codeFlags struct {
	language  string
	files     []string
	timeout   cliflag.Duration
	fuel      *cliflag.Count
	memory    *cliflag.Count
	artifacts string
	workspace string
	commit    string
	busy      string
	session   string
	agents    []string
	json      bool
}

// languageOf maps file extensions to languages.
var languageOf = map[string]string{
	".py": "python", ".js": "javascript", ".mjs": "javascript", ".cjs": "javascript", ".ts": "typescript", ".sh": "shell", ".bash": "shell",
}

func (a *cli) codeCommand() *cobra.Command {
	o := codeFlags{fuel: fuelFlag(), memory: memoryFlag()}
	cmd := &cobra.Command{
		Use:   "code [FILE]",
		Short: "Run code in a fresh sandbox, as the skill run_code does",
		Long: `Run the code of FILE, or of standard input, in a fresh sandbox: Python, JavaScript,
TypeScript or a shell script. Print its output, then the value of the last expression in
Python, JavaScript and TypeScript. The working folder contains the files of --file and of
--workspace; --artifacts saves the files that the code writes. Exit with 0 if the code
exits with 0.`,
		Example: `  echo 'sum(range(10))' | openskill code
  openskill code convert.py --file in.csv --artifacts out
  openskill code --language shell --file data/log.txt=server.log <<< 'grep -c ERROR data/log.txt'`,
		Args: takes(0, 1),
	}
	flags := bindSettings(cmd, append([]string{"cli-dir", "data", "debug"}, agentSettings...)...)
	f := cmd.Flags()
	f.Var(cliflag.Text(&o.language, "LANGUAGE"), "language", "python, javascript, typescript or shell; default: by the ending of FILE, else python")
	f.Var(cliflag.Texts(&o.files, "[NAME=]PATH"), "file", "put the file PATH into the working folder, as NAME; repeatable")
	f.Var(&o.timeout, "timeout", "time limit, such as 500ms")
	f.Var(o.fuel, "fuel", "fuel limit in units of about one instruction")
	f.Var(o.memory, "memory-mb", "memory limit in MiB")
	f.Var(cliflag.Text(&o.artifacts, "DIR"), "artifacts", "output folder for files of the code; created if missing, existing files are kept")
	f.Var(cliflag.Text(&o.workspace, "ID"), "workspace", "working folder that calls with the same ID share")
	f.Var(cliflag.Text(&o.commit, "WHEN"), "commit", "when to save changes to the workspace: success or always; default success")
	f.Var(cliflag.Text(&o.busy, "WHAT"), "busy", "if another call uses the workspace: wait or conflict; default wait")
	f.Var(cliflag.Text(&o.session, "ID"), "session", "session whose variables the code finds; new: create one and print its ID to standard error")
	f.Var(cliflag.Texts(&o.agents, "NAME"), "agent-skill", "Agent Skill whose files the code sees in /mnt/skills/NAME; repeatable")
	f.BoolVar(&o.json, "json", false, "print the Normalized Skill Result instead")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return a.code(cmd.Context(), flags, &o, strings.Join(args, ""))
	}
	return cmd
}

func (a *cli) code(ctx context.Context, flags *settingsFlags, o *codeFlags, file string) error {
	if o.commit != "" && o.commit != "success" && o.commit != "always" {
		return usage("--commit must be success or always")
	}
	if o.busy != "" && o.busy != "wait" && o.busy != "conflict" {
		return usage("--busy must be wait or conflict")
	}
	s, err := a.load(flags)
	if err != nil {
		return err
	}
	input, err := a.codeInput(ctx, o, file, s.MaxBody())
	if err != nil {
		return err
	}
	h, err := app.Open(s, &app.Options{Log: a.logger(level(s, slog.LevelError)), Brief: true})
	if err != nil {
		return hostFailed(err)
	}
	defer h.Close() // the process ends
	stop := a.after(3*time.Second, "openskill: getting the runtime ready; the first time takes some seconds")
	r := h.Invoke(ctx, skill.Local(), skill.Request{
		SkillID: skill.RunCode, Input: input,
		Workspace: skill.WorkspaceRef{ID: o.workspace, Always: o.commit == "always", NoWait: o.busy == "conflict"},
	})
	stop()
	if o.session == skill.NewSession {
		a.sayWhich(r)
	}
	if o.json {
		err = a.printJSON(r)
	} else {
		err = a.printRun(r)
	}
	if err != nil {
		return err
	}
	if err := writeArtifacts(o.artifacts, r.Meta.Artifacts); err != nil {
		return hostFailed(fmt.Errorf("cannot write artifacts: %w", err))
	}
	switch {
	case r.Success:
		return nil
	case o.json || r.Error.Code == skill.GuestExit: // stderr says why
		return exit(exitFailed)
	}
	return failed(r.Error.Code, "%s", r.Error.Message)
}

// sayWhich says which session a call has created.
func (a *cli) sayWhich(r *skill.Result) {
	var made struct{ Session string }
	said := []byte(r.Data)
	if r.Error != nil {
		said, _ = json.Marshal(r.Error.Details) // of a program that ended with an exception
	}
	if json.Unmarshal(said, &made) == nil && made.Session != "" {
		a.say("session %s", made.Session)
	}
}

// codeInput returns the input of run_code.
func (a *cli) codeInput(ctx context.Context, o *codeFlags, file string, most int) (json.RawMessage, error) {
	type given struct {
		Name   string `json:"name"`
		Base64 string `json:"base64"`
	}
	in := struct {
		Language string           `json:"language"`
		Code     string           `json:"code"`
		Files    []given          `json:"files,omitempty"`
		Session  string           `json:"session,omitempty"`
		Agents   []string         `json:"agent_skills,omitempty"`
		Limits   skill.LimitsJSON `json:"limits"`
	}{Language: o.language, Session: o.session, Agents: o.agents}
	in.Limits = skill.Limits{Timeout: o.timeout.Value, Fuel: o.fuel.Value, Memory: o.memory.Value << 20}.JSON()
	if in.Language == "" {
		in.Language = "python"
		if file != "" {
			in.Language = languageOf[strings.ToLower(filepath.Ext(file))]
		}
	}
	if in.Language == "" {
		return nil, usage("the language of %s is unknown; name it by --language", quote(file))
	}
	var text []byte
	var err error
	if file == "" || file == "-" {
		text, err = readAll(ctx, a.stdin, most)
	} else {
		text, err = readFile(file, most)
	}
	switch {
	case err != nil:
		return nil, usage("cannot read the code: %v", plain(err))
	case !utf8.Valid(text):
		return nil, usage("the code is not UTF-8")
	}
	in.Code = string(text)
	for _, f := range o.files {
		name, from, named := strings.Cut(f, "=")
		if !named {
			name, from = path.Base(filepath.ToSlash(f)), f
		}
		b, err := readFile(from, most)
		if err != nil {
			return nil, usage("--file %s: %v", quote(f), plain(err))
		}
		in.Files = append(in.Files, given{name, base64.StdEncoding.EncodeToString(b)})
	}
	return json.Marshal(in)
}

// printRun prints the output of the code, then the value of its last expression.
func (a *cli) printRun(r *skill.Result) error {
	var said struct {
		Stdout, Output, Encoding, Stderr string
		Value                            json.RawMessage
		Repr                             string
	}
	text := r.Data
	if r.Error != nil {
		var err error
		if text, err = json.Marshal(r.Error.Details); err != nil {
			return hostFailed(err)
		}
	}
	if err := json.Unmarshal(text, &said); err != nil {
		return hostFailed(err)
	}
	out := []byte(said.Stdout + said.Output)
	if said.Encoding == "base64" {
		out, _ = base64.StdEncoding.DecodeString(string(out)) // the host's own
	}
	if value := string(said.Value) + said.Repr; value != "" {
		if len(out) > 0 && !slices.Contains(out[len(out)-1:], '\n') {
			out = append(out, '\n')
		}
		out = append(append(out, value...), '\n')
	}
	if _, err := a.stdout.Write(out); err != nil {
		return hostFailed(plain(err))
	}
	if said.Stderr != "" {
		if _, err := fmt.Fprintln(a.stderr, strings.TrimSuffix(said.Stderr, "\n")); err != nil {
			return hostFailed(plain(err))
		}
	}
	return nil
}
