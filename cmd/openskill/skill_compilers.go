package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"openskill/plugins/python"
	"openskill/scripts/py2wasm"
	"openskill/sdk/skill"
)

// buildJob is one module to be made.
type buildJob struct {
	app    *cli
	folder string // of the sources, absolute
	module string // its path within the folder, with slashes
	out    string // where to write it, absolute; not there yet
	state  string // the state folder, absolute
	// function is what is called of a plug-in of Extism; "": the module is a command.
	function string
}

// compilers make a module out of its sources, by build.language. An error has the
// exit code: 1 for sources that do not build, 3 for a toolchain that is not there.
var compilers = map[string]func(context.Context, *buildJob) error{
	"go": buildGo, "rust": buildRust, "c": buildC, "py2wasm": buildPy2wasm,
}

// noToolchain is what cannot be had on this machine, and how to get it.
func noToolchain(message string) error {
	return &exitError{exitHost, &skill.Error{Op: "build", Code: skill.Internal, Message: message}}
}

// command prepares a tool. What it prints goes to standard error: standard output
// is for the result. It and all that it starts end with ctx.
func (j *buildJob) command(ctx context.Context, env []string, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = j.folder, append(append([]string{}, j.app.environ...), env...)
	cmd.Stdout, cmd.Stderr = j.app.stderr, j.app.stderr
	endTogether(cmd)
	return cmd
}

func (j *buildJob) run(ctx context.Context, env []string, name string, args ...string) error {
	return j.outcome(ctx, j.command(ctx, env, name, args...).Run())
}

func (j *buildJob) outcome(ctx context.Context, err error) error {
	switch _, ok := errors.AsType[*exec.ExitError](err); {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case ok:
		return failed(skill.InvalidModule, "the build failed; see the compiler's output above")
	}
	return hostFailed(err)
}

// buildGo makes the same bytes wherever the folder lies: no stamp of a version
// control system, and no paths.
func buildGo(ctx context.Context, j *buildJob) error {
	if _, err := exec.LookPath("go"); err != nil {
		return noToolchain("go not found: install Go 1.26 or newer")
	}
	args := []string{"build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", j.out}
	if j.function != "" {
		args = append(args, "-buildmode=c-shared")
	}
	return j.run(ctx, []string{"GOOS=wasip1", "GOARCH=wasm", "GOFLAGS=", "CGO_ENABLED=0"}, "go", append(args, ".")...)
}

// buildRust builds the folder's Cargo package outside the folder, which is hashed,
// or its main.rs by itself. A plug-in is the library of a package.
func buildRust(ctx context.Context, j *buildJob) error {
	switch {
	case j.function != "" && !j.has("Cargo.toml"):
		return failed(skill.InvalidManifest, "build.language rust with runtime extism needs a Cargo.toml in the folder")
	case !j.has("Cargo.toml") && !j.has("main.rs"):
		return failed(skill.InvalidManifest, "build.language rust needs a Cargo.toml or a main.rs in the folder")
	}
	target, err := j.rustTarget(ctx)
	if err != nil {
		return err
	}
	remap := "--remap-path-prefix=" + j.folder + "=/src"
	if !j.has("Cargo.toml") {
		return j.run(ctx, nil, "rustc", "--edition", "2021", "--target", target, "-O", "-C", "strip=symbols", remap, "-o", j.out, "main.rs")
	}
	if _, err := exec.LookPath("cargo"); err != nil {
		return noToolchain("cargo not found: install Rust with rustup, or your distribution's cargo")
	}
	locked := []string{"--quiet", "--target", target}
	if j.has("Cargo.lock") {
		locked = append(locked, "--locked")
	}
	// Before the flags are made: they name the folders that crates are unpacked into, and
	// those of the first build on a machine are not there yet.
	err = j.command(ctx, nil, "cargo", append([]string{"fetch"}, locked...)...).Run()
	switch _, ok := errors.AsType[*exec.ExitError](err); {
	case ok && ctx.Err() == nil:
		return failed(skill.InvalidModule, "cannot fetch the crates; see cargo's output above")
	case err != nil:
		return j.outcome(ctx, err)
	}
	var flags []string
	home, _ := os.UserHomeDir() // without one there are no crates to hide the path of
	sources := filepath.Join(firstOf(os.Getenv("CARGO_HOME"), filepath.Join(home, ".cargo")), "registry", "src")
	crates, _ := fs.Glob(os.DirFS(sources), "*") // the pattern is a good one
	for _, name := range crates {
		flags = append(flags, "--remap-path-prefix="+filepath.Join(sources, name)+"=/crates")
	}
	args := append([]string{"rustc", "--release", "--message-format", "json-render-diagnostics"}, locked...)
	if j.alone(ctx, locked) {
		args = append(args, "--", remap)
	} else {
		args[0], flags = "build", append(flags, remap)
	}
	var messages bytes.Buffer
	cmd := j.command(ctx, []string{
		"CARGO_TARGET_DIR=" + filepath.Join(j.state, "build", "cargo"),
		// Folders may have spaces in their names, which RUSTFLAGS cannot hold.
		"CARGO_ENCODED_RUSTFLAGS=" + strings.Join(flags, "\x1f"),
	}, "cargo", args...)
	cmd.Stdout = &messages
	if err := j.outcome(ctx, cmd.Run()); err != nil {
		return err
	}
	made, err := artifact(&messages, j.function != "")
	if err != nil {
		return err
	}
	return copyOver(made, j.out)
}

// alone says that the package has one target and that none of the crates it is made of lies in
// its folder. Then the folder's name is for the compiler of that target alone, and crates that
// others have published are compiled once for all folders: cargo compiles again whatever is to
// be compiled with other flags.
func (j *buildJob) alone(ctx context.Context, locked []string) bool {
	var made struct {
		Packages []struct {
			ManifestPath string `json:"manifest_path"`
			Source       string
			Targets      []struct{ Kind []string }
		}
	}
	args := append([]string{"metadata", "--format-version", "1", "--offline"}, locked...)
	args[slices.Index(args, "--target")] = "--filter-platform"
	cmd := j.command(ctx, nil, "cargo", args...)
	cmd.Stdout, cmd.Stderr = nil, nil
	out, err := cmd.Output()
	if err != nil || json.Unmarshal(out, &made) != nil {
		return false // cargo build says what is wrong
	}
	own := 0
	for _, p := range made.Packages {
		if p.Source != "" && !strings.HasPrefix(p.ManifestPath, j.folder+string(filepath.Separator)) {
			continue
		}
		if p.ManifestPath != filepath.Join(j.folder, "Cargo.toml") {
			return false
		}
		for _, target := range p.Targets {
			if !slices.ContainsFunc(target.Kind, func(kind string) bool {
				return slices.Contains([]string{"example", "test", "bench", "custom-build"}, kind)
			}) {
				own++
			}
		}
	}
	return own == 1
}

// artifact finds the one program among cargo's messages, or the one library that is a
// module.
func artifact(messages io.Reader, library bool) (string, error) {
	var found []string
	for dec := json.NewDecoder(messages); ; {
		var m struct {
			Reason     string
			Executable string
			Filenames  []string
		}
		err := dec.Decode(&m)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return "", hostFailed(err)
		}
		switch {
		case m.Reason != "compiler-artifact":
		case !library && m.Executable != "":
			found = append(found, m.Executable)
		case library && m.Executable == "":
			for _, name := range m.Filenames {
				if filepath.Ext(name) == ".wasm" {
					found = append(found, name)
				}
			}
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case library:
		return "", failed(skill.InvalidManifest, "the Cargo package must have one library of crate-type cdylib; it has %d", len(found))
	}
	return "", failed(skill.InvalidManifest, "the Cargo package must have one program; it has %d", len(found))
}

// rustTarget gives the WASI target that is installed, adding it where rustup can.
func (j *buildJob) rustTarget(ctx context.Context) (string, error) {
	if _, err := exec.LookPath("rustc"); err != nil {
		return "", noToolchain("rustc not found: install Rust with rustup, or your distribution's rustc and libstd-rust-dev-wasm32")
	}
	has := func(target string) bool {
		dir, err := j.rustc(ctx, "--print", "target-libdir", "--target", target).Output()
		if err != nil {
			return false
		}
		found, _ := fs.Glob(os.DirFS(strings.TrimSpace(string(dir))), "libstd-*.rlib")
		return len(found) > 0
	}
	const target, before = "wasm32-wasip1", "wasm32-wasi" // its name until Rust 1.78
	if has(target) {
		return target, nil
	}
	// rustup's rustc is there without any Rust behind it.
	if said, err := j.rustc(ctx, "--version").CombinedOutput(); err != nil && ctx.Err() == nil {
		first, _, _ := strings.Cut(strings.TrimPrefix(string(said), "error: "), "\n")
		first = strings.TrimSuffix(first, ".")
		return "", noToolchain("rustc is installed but does not run: " + skill.CleanText(firstOf(first, err.Error()), 300) + "; with rustup, run rustup default stable")
	}
	if _, err := exec.LookPath("rustup"); err == nil && j.run(ctx, nil, "rustup", "target", "add", target) == nil && has(target) {
		return target, nil
	}
	if has(before) {
		return before, nil
	}
	return "", noToolchain("rustc has no target " + target + ": rustup target add " + target + ", or your distribution's libstd-rust-dev-wasm32")
}

// rustc is asked something; what it says is for the one who asks.
func (j *buildJob) rustc(ctx context.Context, args ...string) *exec.Cmd {
	cmd := j.command(ctx, nil, "rustc", args...)
	cmd.Stdout, cmd.Stderr = nil, nil
	return cmd
}

// buildC compiles all C files of the folder by zig, which has a C library for WASI:
// the one on the PATH, or the one that came for py2wasm.
func buildC(ctx context.Context, j *buildJob) error {
	zig, err := exec.LookPath("zig")
	if err != nil {
		zig = filepath.Join(j.toolchain(), "sdk", "zig", "zig")
		if _, err := os.Stat(zig); err != nil {
			return noToolchain("zig not found: install zig, or pip install ziglang==0.15.2 and put its zig on the PATH")
		}
	}
	sources, err := fs.Glob(os.DirFS(j.folder), "*.c")
	if err != nil || len(sources) == 0 {
		return failed(skill.InvalidManifest, "build.language c needs a .c file in the folder")
	}
	args := []string{"cc"}
	if j.function != "" {
		args = append(args, "-mexec-model=reactor", "-Wl,--export="+j.function)
	}
	args = append(args, "--target=wasm32-wasi", "-O2", "-Wl,--strip-all", "-ffile-prefix-map="+j.folder+"=/src", "-o", j.out)
	args = append(args, sources...)
	cache := filepath.Join(j.state, "build", "zig")
	return j.run(ctx, []string{"ZIG_GLOBAL_CACHE_DIR=" + cache, "ZIG_LOCAL_CACHE_DIR=" + cache}, zig, args...)
}

// toolchain is where py2wasm is set up.
func (j *buildJob) toolchain() string { return filepath.Join(j.state, "build", "py2wasm") }

// buildPy2wasm sees that the toolchain is there and compiles the script with it.
func buildPy2wasm(ctx context.Context, j *buildJob) error {
	if _, err := exec.LookPath("sh"); err != nil || runtime.GOOS == "windows" {
		return noToolchain("py2wasm is built on Linux and macOS only")
	}
	script := strings.TrimSuffix(j.module, ".wasm") + ".py"
	if !j.has(script) {
		return failed(skill.InvalidManifest, "build.language py2wasm needs %s in the folder", quote(script))
	}
	dir := j.toolchain()
	recipe := filepath.Join(dir, "recipe")
	if err := py2wasm.Write(recipe, python.Prelude()); err != nil {
		return hostFailed(plain(err))
	}
	setup := j.command(ctx, nil, "sh", filepath.Join(recipe, "setup.sh"), dir)
	if err := j.setUp(ctx, setup); err != nil {
		return err
	}
	return j.run(ctx, nil, filepath.Join(dir, "venv", "bin", "python"), "-B", filepath.Join(recipe, "build.py"), dir,
		filepath.Join(j.folder, filepath.FromSlash(script)), j.out)
}

// setUp runs the script that brings the toolchain. It says itself what is wrong, in
// its last line.
func (j *buildJob) setUp(ctx context.Context, setup *exec.Cmd) error {
	err := setup.Run()
	switch ended, ok := errors.AsType[*exec.ExitError](err); {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case !ok:
		return hostFailed(err)
	case ended.ExitCode() == py2wasm.Missing:
		return exit(exitHost)
	}
	// Another package than the pinned one, or a patch that does not fit: nothing that
	// another machine would have.
	return exit(exitFailed)
}

func (j *buildJob) has(name string) bool {
	info, err := os.Stat(filepath.Join(j.folder, filepath.FromSlash(name)))
	return err == nil && info.Mode().IsRegular()
}

func firstOf(words ...string) string {
	for _, w := range words {
		if w != "" {
			return w
		}
	}
	return ""
}

// copyOver writes the bytes of a file into one that is there.
func copyOver(from, to string) error {
	b, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, b, 0o600)
	}
	if err != nil {
		return hostFailed(plain(err))
	}
	return nil
}
