package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"openskill/host/app"
	"openskill/host/manifest"
	"openskill/internal/cliflag"
	"openskill/sdk/skill"
)

// runFlags are the flags of run beside the settings.
type runFlags struct {
	input   string
	set     []string
	trace   string
	timeout cliflag.Duration
	fuel    *cliflag.Count
	memory  *cliflag.Count

	artifacts string
}

func (a *cli) runCommand() *cobra.Command {
	o := runFlags{fuel: fuelFlag(), memory: memoryFlag()}
	cmd := &cobra.Command{
		Use:   "run SKILL",
		Short: "Call a skill without a running host",
		Long: `Call one skill as a running host would and print the Normalized Skill Result. SKILL is
an id of the catalogue, or the path of a skill's folder (with a / in it). The exit code
is 0 only if the result has "success": true.

--timeout, --fuel and --memory-mb can lower the limits of manifest and host, never raise
them.`,
		Example: `  openskill run echo --set text=hello
  openskill run calculator --input '{"numbers": [1, 2, 3], "ops": ["mean"]}'
  openskill run ./my-skill --input @input.json --timeout 2s`,
		Args: takes(1, 1),
	}
	flags := bindSettings(cmd, "skills", "cli-dir", "data", "state", "python", "debug")
	cmd.ValidArgsFunction = a.completeSkills(flags)
	f := cmd.Flags()
	f.Var(cliflag.Text(&o.input, "JSON"), "input", "input object; @FILE reads a file, - reads standard input; default: {}")
	f.Var(cliflag.Texts(&o.set, "k=v"), "set", "input field; v is parsed as JSON, or used as a string; repeatable")
	f.Var(cliflag.Text(&o.trace, "ID"), "trace-id", "trace id, 1 to 64 of 0-9 A-Z a-z . _ -; default: a new one")
	f.Var(&o.timeout, "timeout", "time limit, such as 500ms")
	f.Var(o.fuel, "fuel", "fuel limit in units of about one instruction")
	f.Var(o.memory, "memory-mb", "memory limit in MiB")
	f.Var(cliflag.Text(&o.artifacts, "DIR"), "artifacts", "output folder for artifacts of the skill; created if missing, existing files are kept")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return a.runSkill(cmd.Context(), flags, &o, args[0])
	}
	return cmd
}

func (a *cli) runSkill(ctx context.Context, flags *settingsFlags, o *runFlags, name string) error {
	if o.trace != "" && !skill.ValidTraceID(o.trace) {
		return usage("--trace-id %s: want 1 to 64 of 0-9 A-Z a-z . _ -", quote(o.trace))
	}
	s, err := a.load(flags)
	if err != nil {
		return err
	}
	input, err := a.input(ctx, o, s.MaxBody())
	if err != nil {
		return err
	}
	opts := &app.Options{Log: a.logger(level(s, slog.LevelError)), Brief: true}
	isFolder := strings.ContainsAny(name, `/\`) || name == "." || name == ".."
	if isFolder {
		opts.Roots = []string{name}
	}
	h, err := app.Open(s, opts) // nothing to wait for
	if err != nil {
		return hostFailed(err)
	}
	defer h.Close() // the answer is there; the process ends
	if isFolder {
		if name, err = onlySkill(h, name); err != nil {
			a.skipped(h)
			return err
		}
	}
	stop := a.after(time.Second, "openskill: getting the skill's runtime ready; the first time takes some seconds")
	h.Prepare(ctx, skill.ID(name))
	stop()
	r := h.Invoke(ctx, skill.Local(), skill.Request{
		SkillID: skill.ID(name), Input: input, TraceID: skill.TraceID(o.trace),
		Limits: skill.Limits{Timeout: o.timeout.Value, Fuel: o.fuel.Value, Memory: o.memory.Value << 20},
	})
	if r.Error != nil && r.Error.Code == skill.NotFound {
		a.skipped(h) // it may be there, but with a problem
		if _, err := os.Stat(s.SkillsDir); err != nil && !isFolder {
			a.say("openskill: folder %s not found; name the folder of skills with --skills", quote(s.SkillsDir))
		}
		if manifest.Manifest(name) != "" && !isFolder {
			a.say("openskill: to call the folder of this name, write a /: %s", quote("./"+name))
		}
	}
	if err := a.printJSON(r); err != nil {
		return err
	}
	if err := writeArtifacts(o.artifacts, r.Meta.Artifacts); err != nil {
		return hostFailed(fmt.Errorf("cannot write artifacts: %w", err))
	}
	if !r.Success {
		return exit(exitFailed)
	}
	return nil
}

// writeArtifacts writes files whose names the skill chose: in dir, and new ones
// only.
func writeArtifacts(dir string, list []skill.Artifact) error {
	if dir == "" || len(list) == 0 {
		return nil
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	var failed error // one file that cannot be written keeps no other from it
	for _, f := range list {
		if err := writeArtifact(root, f); err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", quote(f.Name), plain(err)))
		}
	}
	return failed
}

func writeArtifact(root *os.Root, f skill.Artifact) error {
	name := filepath.FromSlash(f.Name)
	if err := root.MkdirAll(filepath.Dir(name), 0o750); err != nil {
		return err
	}
	mode := os.FileMode(0o644)
	if bytes.HasPrefix(f.Data, []byte("#!")) {
		mode = 0o755 // WASI has no permission bits, so nothing else says that it is a program
	}
	out, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = out.Write(f.Data)
	return errors.Join(err, out.Close())
}

// after says something if it takes longer than d until the function is called.
func (a *cli) after(d time.Duration, words string) (stop func()) {
	said := make(chan struct{})
	t := time.AfterFunc(d, func() {
		defer close(said)
		a.say("%s", words)
	})
	return func() {
		if !t.Stop() {
			<-said
		}
	}
}

// onlySkill is the id of the skill whose folder was named.
func onlySkill(h *app.Host, folder string) (string, error) {
	clean, err := filepath.Abs(folder)
	if err != nil {
		return "", hostFailed(err)
	}
	if manifest.Manifest(clean) == "" {
		return "", usage("%s is not a skill folder: skill.yaml is missing", quote(folder))
	}
	for cursor, more := "", true; more; more = cursor != "" {
		page, next, err := h.Catalogue().List(skill.Local(), cursor, 0)
		if err != nil {
			return "", hostFailed(err)
		}
		for _, d := range page {
			if d.Version != scriptVersion || d.Runner != skill.CLIPython { // not one of the CLI folder's
				return string(d.ID), nil
			}
		}
		cursor = next
	}
	return "", failed(skill.InvalidManifest, "the skill in %s has problems; see openskill skills validate", quote(folder))
}

// scriptVersion is what the registry gives scripts without a manifest.
const scriptVersion = "0.0.0"

// input makes the input of the call out of --input and --set.
func (a *cli) input(ctx context.Context, o *runFlags, most int) (json.RawMessage, error) {
	in, err := a.readInput(ctx, o.input, most)
	if err != nil || len(o.set) == 0 {
		return in, err
	}
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(in, &fields); err != nil || fields == nil {
		return nil, usage("--set needs an object, but --input is not one")
	}
	given := map[string]bool{}
	for _, kv := range o.set {
		k, v, ok := strings.Cut(kv, "=")
		if !ok || k == "" {
			return nil, usage("--set %s: want k=v", quote(kv))
		}
		if given[k] {
			return nil, usage("--set gives %s twice", quote(k))
		}
		given[k] = true
		fields[k] = json.RawMessage(v)
		if !json.Valid(fields[k]) {
			text, err := json.Marshal(v)
			if err != nil {
				return nil, hostFailed(err)
			}
			fields[k] = text
		}
	}
	out, err := json.Marshal(fields)
	if err != nil {
		return nil, hostFailed(err)
	}
	return out, nil
}

func (a *cli) readInput(ctx context.Context, arg string, most int) (json.RawMessage, error) {
	var b []byte
	var err error
	switch {
	case arg == "":
		return json.RawMessage("{}"), nil
	case arg == "-":
		b, err = readAll(ctx, a.stdin, most)
	case arg[0] == '@':
		b, err = readFile(arg[1:], most)
	default:
		b = []byte(arg)
	}
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, failed(skill.Cancelled, "interrupted while reading the input")
	case err != nil:
		return nil, usage("cannot read --input %s: %v", quote(arg), plain(err))
	}
	return bytes.TrimPrefix(b, []byte("\xef\xbb\xbf")), nil // a mark that some editors write
}

// readAll reads most bytes and one more, so that whoever bounds the size can tell.
// A reader that never ends is left behind when ctx ends.
func readAll(ctx context.Context, r io.Reader, most int) ([]byte, error) {
	type read struct {
		b   []byte
		err error
	}
	done := make(chan read, 1)
	go func() {
		b, err := io.ReadAll(io.LimitReader(r, int64(most)+1))
		done <- read{b, err}
	}()
	select {
	case r := <-done:
		return r.b, r.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

var errNotRegular = errors.New("it is not a regular file")

// readFile reads most bytes and one more of a regular file: a pipe or a device
// would never end.
func readFile(name string, most int) ([]byte, error) {
	f, _, err := openRegular(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, int64(most)+1))
}

func openRegular(name string) (*os.File, os.FileInfo, error) {
	info, err := os.Stat(name)
	if err == nil && !info.Mode().IsRegular() {
		err = errNotRegular
	}
	if err != nil {
		return nil, nil, err
	}
	f, err := os.Open(name)
	return f, info, err
}

// plain takes the path out of a file error: the message names the file already.
func plain(err error) error {
	if pe, ok := errors.AsType[*os.PathError](err); ok {
		return pe.Err
	}
	return err
}

// The ranges that package config has for the same settings.
func fuelFlag() *cliflag.Count   { return &cliflag.Count{Low: 1, High: 1 << 62, Name: "N"} }
func memoryFlag() *cliflag.Count { return &cliflag.Count{Low: 1, High: 2048, Name: "MB"} }
