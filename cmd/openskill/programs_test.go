package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"openskill/internal/musttest"
)

// wazeroDir is the folder of wazero's sources, with programs of five toolchains.
func wazeroDir(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/tetratelabs/wazero").Output()
	dir := strings.TrimSpace(string(out))
	if err != nil || dir == "" {
		t.Skip("the sources of wazero are not in the module cache")
	}
	return dir
}

const (
	testdata = "imports/wasi_snapshot_preview1/testdata/"
	examples = "imports/wasi_snapshot_preview1/example/testdata/"
	commands = "cmd/wazero/testdata/"

	noTerminals = "stdin isatty: false\nstdout isatty: false\nstderr isatty: false\n/ isatty: false\n"
)

// TestPrograms runs other people's programs: the outputs are those that their
// sources promise.
func TestPrograms(t *testing.T) {
	t.Parallel()
	dir, state := wazeroDir(t), t.TempDir()
	folder := t.TempDir() // as wazero's own tests have it
	for _, f := range []string{"-", "a-/.keep", "ab-/.keep", "sub/test.txt", "bear.txt"} {
		path := filepath.Join(folder, filepath.FromSlash(f))
		musttest.Do(t, os.MkdirAll(filepath.Dir(path), 0o700))
		text := "pooh\n"
		if f == "sub/test.txt" {
			text = "greet sub dir\n"
		}
		musttest.Do(t, os.WriteFile(path, []byte(text), 0o600))
	}
	root := folder + ":/"
	tests := []struct {
		name   string
		file   string
		flags  []string
		args   []string
		stdin  string
		sorted bool // folders are in no order
		want   string
		stderr string
		exit   int
	}{
		{name: "arguments", file: testdata + "print_args.wasm", args: []string{"foo", "", "bar"}, want: "print_args.wasm\x00foo\x00\x00bar\x00"},
		{name: "arguments of the command", file: commands + "wasi_arg.wasm", args: []string{"hello world", "--x"}, want: "wasi_arg.wasm\x00hello world\x00--x\x00"},
		{name: "environment", file: commands + "wasi_env.wasm", flags: []string{"--env", "ANIMAL=bear", "--env", "FOOD=", "--env", "A=b=c"}, want: "ANIMAL=bear\x00FOOD=\x00A=b=c\x00"},
		{name: "no environment", file: commands + "wasi_env.wasm", want: ""},
		{name: "a file", file: commands + "wasi_fd.wasm", flags: []string{"--dir", root}, want: "pooh\n"},
		{name: "a file that is not there", file: commands + "wasi_fd.wasm", flags: []string{"--data", folder}, want: ""},
		{name: "preopen", file: testdata + "print_prestat_dirname.wasm", flags: []string{"--data", folder}, want: "/"},
		{name: "random", file: commands + "wasi_random_get.wasm", want: ""},
		{name: "exit", file: testdata + "exit_on_start.wasm", exit: 2},
		{name: "old interface", file: testdata + "exit_on_start_unstable.wasm", exit: 125, stderr: "IMPORT_DENIED"},
		{name: "endless", file: commands + "infinite_loop.wasm", flags: []string{"--timeout", "200ms"}, exit: 125, stderr: "TIMEOUT"},
		{name: "cat by tinygo", file: commands + "cat/cat-tinygo.wasm", flags: []string{"--dir", root}, args: []string{"bear.txt"}, want: "pooh\n"},
		{name: "preopens by zig", file: testdata + "zig/wasi.wasm", flags: []string{"--dir", root}, args: []string{"preopen"}, want: "0: stdin\n1: stdout\n2: stderr\n3: /\n"},
		{name: "poll with input", file: testdata + "zig-cc/wasi.wasm", args: []string{"poll", "0", "500"}, stdin: "test", want: "STDIN\n"},
		{name: "poll at the end", file: testdata + "zig-cc/wasi.wasm", args: []string{"poll"}, want: "STDIN\n"},
		{name: "sleep", file: testdata + "zig-cc/wasi.wasm", args: []string{"sleepmillis", "20"}, want: "OK\n"},
		{name: "sleep into the deadline", file: testdata + "zig-cc/wasi.wasm", flags: []string{"--timeout", "100ms"}, args: []string{"sleepmillis", "900"}, exit: 125, stderr: "TIMEOUT"},
		{name: "create read-only", file: testdata + "zig-cc/wasi.wasm", flags: []string{"--dir", root}, args: []string{"open-rdonly"}, stderr: "ERR: open: Read-only file system"},
		{name: "create write-only", file: testdata + "zig-cc/wasi.wasm", flags: []string{"--dir", root}, args: []string{"open-wronly"}, stderr: "ERR: open: Read-only file system"},
		{name: "no trap text", file: testdata + "cargo-wasi/wasi.wasm", args: []string{"nope"}, exit: 1, stderr: "unknown command: nope"},
	}
	for _, by := range []string{"cargo-wasi", "tinygo", "zig", "zig-cc"} {
		file, dots := testdata+by+"/wasi.wasm", ""
		if by == "zig-cc" { // readdir of C has them
			dots = "./.\n./..\n"
		}
		add := func(name string, want string, args ...string) {
			tests = append(tests, tests[0])
			tt := &tests[len(tests)-1]
			tt.name, tt.file, tt.flags, tt.args, tt.sorted, tt.want = name+" by "+by, file, []string{"--dir", root}, args, true, want
		}
		add("ls", dots+"./-\n./a-\n./ab-\n./bear.txt\n./sub\n", "ls", ".")
		add("ls of a folder", dots+"./.keep\n", "ls", "./a-")
		add("ls of a file", "ENOTDIR\n", "ls", "-")
		add("terminals", noTerminals, "stat")
		if by == "cargo-wasi" {
			tests[len(tests)-4].want = "./-\n./a-\n./ab-\n./bear.txt\n./sub\n"
			tests[len(tests)-3].want = "./a-/.keep\n"
		}
		from := filepath.Join(dir, filepath.FromSlash(examples))
		for _, c := range []struct{ mount, path, want string }{
			{from + ":/", "test.txt", "greet filesystem\n"},
			{from + ":/", "sub/test.txt", "greet sub dir\n"},
			{from + ":/testcases", "testcases/test.txt", "greet filesystem\n"},
			{from + ":/data", "/data/sub/test.txt", "greet sub dir\n"},
		} {
			if by == "zig" && c.path[0] == '/' { // it gives absolute paths to the host as they are
				continue
			}
			tests = append(tests, tests[0])
			tt := &tests[len(tests)-1]
			tt.name, tt.file = "cat "+c.path+" by "+by, examples+by+"/cat.wasm"
			tt.flags, tt.args, tt.want = []string{"--dir", c.mount}, []string{c.path}, c.want
		}
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			args := append([]string{"module", "run", filepath.Join(dir, filepath.FromSlash(tt.file)), "--state", state}, tt.flags...)
			args = append(append(args, "--"), tt.args...)
			var stdout, stderr bytes.Buffer
			exit := Run(t.Context(), args, strings.NewReader(tt.stdin), &stdout, &stderr)
			got := stdout.String()
			if tt.sorted {
				lines := func(s string) string {
					l := strings.SplitAfter(s, "\n")
					slices.Sort(l)
					return strings.Join(l, "")
				}
				got, tt.want = lines(got), lines(tt.want)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("standard output (-want +got):\n%s", diff)
			}
			if exit != tt.exit {
				t.Errorf("exit code %d, want %d", exit, tt.exit)
			}
			if text := stderr.String(); tt.stderr == "" && text != "" || !strings.Contains(text, tt.stderr) {
				t.Errorf("standard error %q, want %q", text, tt.stderr)
			}
		})
	}
}

// A program that waits for input which never comes goes on when it said it would.
func TestPollsASilentInput(t *testing.T) {
	t.Parallel()
	file := filepath.Join(wazeroDir(t), filepath.FromSlash(testdata+"zig-cc/wasi.wasm"))
	silent, never := io.Pipe()
	defer never.Close()
	var stdout, stderr bytes.Buffer
	exit := Run(t.Context(), []string{"module", "run", file, "--state", t.TempDir(), "--", "poll", "0", "50"}, silent, &stdout, &stderr)
	if exit != 0 || stdout.String() != "NOINPUT\n" {
		t.Errorf("exit code %d, %q, %q; want NOINPUT", exit, &stdout, &stderr)
	}
}

// A folder with thousands of files is listed whole, in pieces.
func TestListsAHugeFolder(t *testing.T) {
	t.Parallel()
	dir, state, folder := wazeroDir(t), t.TempDir(), t.TempDir()
	const many = 8096
	for i := range many {
		musttest.Do(t, os.WriteFile(filepath.Join(folder, strconv.Itoa(i)), nil, 0o600))
	}
	for by, more := range map[string]int{"cargo-wasi": 0, "tinygo": 0, "zig": 0, "zig-cc": 2} {
		file := filepath.Join(dir, filepath.FromSlash(testdata+by+"/wasi.wasm"))
		var stdout, stderr bytes.Buffer
		exit := Run(context.Background(), []string{"module", "run", file, "--state", state, "--dir", folder + ":/", "--", "ls", "."}, strings.NewReader(""), &stdout, &stderr)
		lines := strings.Fields(stdout.String())
		slices.Sort(lines)
		if exit != 0 || len(slices.Compact(lines)) != many+more {
			t.Errorf("%s: exit code %d, %d names, %q; want %d names", by, exit, len(slices.Compact(lines)), &stderr, many+more)
		}
	}
}
