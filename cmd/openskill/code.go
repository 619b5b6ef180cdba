package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"path"
	"path/filepath"
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
	paths     []string
	files     []codeFile // of paths
	timeout   cliflag.Duration
	fuel      *cliflag.Count
	memory    *cliflag.Count
	artifacts string
	workspace string
	commit    string
	busy      string
	session   string
	agents    []string
	packages  []string
	prompt    bool
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
exits with 0.

At a terminal without FILE there is a prompt: each entry runs in a fresh sandbox. Entries
in Python find the variables of those before, entries in other languages their files.`,
		Example: `  echo 'sum(range(10))' | openskill code
  openskill code convert.py --file in.csv --artifacts out
  openskill code --language shell --file data/log.txt=server.log <<< 'grep -c ERROR data/log.txt'`,
		Args: takes(0, 1),
	}
	flags := bindSettings(cmd, append([]string{"cli-dir", "data", "debug"}, agentSettings...)...)
	f := cmd.Flags()
	f.Var(cliflag.Text(&o.language, "LANGUAGE"), "language", "python, javascript, typescript or shell; default: by the ending of FILE, else python")
	f.Var(cliflag.Texts(&o.paths, "[NAME=]PATH"), "file", "put the file PATH into the working folder, as NAME; repeatable")
	f.Var(&o.timeout, "timeout", "time limit, such as 500ms")
	f.Var(o.fuel, "fuel", "fuel limit in units of about one instruction")
	f.Var(o.memory, "memory-mb", "memory limit in MiB")
	f.Var(cliflag.Text(&o.artifacts, "DIR"), "artifacts", "output folder for files of the code; created if missing, existing files are kept")
	f.Var(cliflag.Text(&o.workspace, "ID"), "workspace", "working folder that calls with the same ID share")
	f.Var(cliflag.Text(&o.commit, "WHEN"), "commit", "when to save changes to the workspace: success or always; default success")
	f.Var(cliflag.Text(&o.busy, "WHAT"), "busy", "if another call uses the workspace: wait or conflict; default wait")
	f.Var(cliflag.Text(&o.session, "ID"), "session", "session whose variables the code finds; new: create one and print its ID to standard error")
	f.Var(cliflag.Texts(&o.agents, "NAME"), "agent-skill", "Agent Skill whose files the code sees in /mnt/skills/NAME; repeatable")
	f.Var(cliflag.Texts(&o.packages, "NAME"), "package", "package that the code needs; repeatable")
	f.BoolVarP(&o.prompt, "interactive", "i", false, "run entry by entry what is typed; the default at a terminal without FILE")
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
	if o.prompt && file != "" {
		return usage("--interactive takes no FILE")
	}
	if o.language == "" {
		o.language = "python"
		if file != "" {
			o.language = languageOf[strings.ToLower(filepath.Ext(file))]
		}
	}
	if o.language == "" {
		return usage("the language of %s is unknown; name it by --language", quote(file))
	}
	if err := o.readFiles(s.MaxBody()); err != nil {
		return err
	}
	_, _, typing := a.typing()
	prompts := o.prompt || file == "" && typing && !o.json
	var input json.RawMessage
	if !prompts {
		text, err := a.codeText(ctx, file, s.MaxBody())
		if err != nil {
			return err
		}
		if input, err = o.input(text); err != nil {
			return hostFailed(err)
		}
	}
	h, err := app.Open(s, &app.Options{Log: a.logger(level(s, slog.LevelError)), Brief: true})
	if err != nil {
		return hostFailed(err)
	}
	defer h.Close() // the process ends
	if prompts {
		return a.codePrompt(ctx, h, s, o)
	}
	stop := a.after(3*time.Second, "openskill: getting the runtime ready; the first time takes some seconds")
	r := h.Invoke(ctx, skill.Local(), o.request(input))
	stop()
	if o.session == skill.NewSession {
		if made := sessionOf(r); made != "" {
			a.say("session %s", made)
		}
	}
	if o.json {
		err = a.printJSON(r)
	} else {
		err = a.printRun(r, false)
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

// codeText reads the code of FILE, or of standard input.
func (a *cli) codeText(ctx context.Context, file string, most int) (string, error) {
	var text []byte
	var err error
	if file == "" || file == "-" {
		text, err = readAll(ctx, a.stdin, most)
	} else {
		text, err = readFile(file, most)
	}
	switch {
	case err != nil:
		return "", usage("cannot read the code: %v", plain(err))
	case !utf8.Valid(text):
		return "", usage("the code is not UTF-8")
	}
	return string(text), nil
}

// codeFile is a file of the input of run_code.
type codeFile struct {
	Name   string `json:"name"`
	Base64 string `json:"base64"`
}

// readFiles reads the files of --file.
func (o *codeFlags) readFiles(most int) error {
	for _, f := range o.paths {
		name, from, named := strings.Cut(f, "=")
		if !named {
			name, from = path.Base(filepath.ToSlash(f)), f
		}
		b, err := readFile(from, most)
		if err != nil {
			return usage("--file %s: %v", quote(f), plain(err))
		}
		o.files = append(o.files, codeFile{name, base64.StdEncoding.EncodeToString(b)})
	}
	return nil
}

// input returns the input of run_code.
func (o *codeFlags) input(code string) (json.RawMessage, error) {
	return json.Marshal(struct {
		Language string           `json:"language"`
		Code     string           `json:"code"`
		Files    []codeFile       `json:"files,omitempty"`
		Session  string           `json:"session,omitempty"`
		Agents   []string         `json:"agent_skills,omitempty"`
		Packages []string         `json:"packages,omitempty"`
		Limits   skill.LimitsJSON `json:"limits,omitzero"`
	}{
		o.language, code, o.files, o.session, o.agents, o.packages,
		skill.Limits{Timeout: o.timeout.Value, Fuel: o.fuel.Value, Memory: o.memory.Value << 20}.JSON(),
	})
}

// request returns a call of run_code with an input.
func (o *codeFlags) request(input json.RawMessage) skill.Request {
	return skill.Request{
		SkillID: skill.RunCode, Input: input,
		Workspace: skill.WorkspaceRef{ID: o.workspace, Always: o.commit == "always", NoWait: o.busy == "conflict"},
	}
}

// printRun prints the output of the code, then the value of its last expression. lines has the output end with a line end.
func (a *cli) printRun(r *skill.Result, lines bool) error {
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
	value := string(said.Value) + said.Repr
	if (value != "" || lines) && len(out) > 0 && !bytes.HasSuffix(out, []byte("\n")) {
		out = append(out, '\n')
	}
	if value != "" {
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
