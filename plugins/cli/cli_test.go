package cli

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"openskill/internal/musttest"
	"openskill/plugins/runnertest"
	"openskill/sdk/skill"
)

// found is what a runner finds out about this machine, which takes most of a second.
var found = sync.OnceValues(func() (*setup, error) { return New(nil).setup() })

func TestRunner(t *testing.T) {
	runnertest.Run(t, runnertest.Harness{
		New: func(t testing.TB) skill.Runner {
			t.Helper()
			s := musttest.Get(found())(t)
			r := New(nil)
			r.ready = s
			return r
		},
		Write:    runnertest.Python,
		Trust:    skill.Trusted,
		ExitBits: 8,
		Limits:   skill.Limits{Memory: 128 << 20},
	})
}

// TestPrograms is the same for executable files, which are scripts with an interpreter of
// their own here: one that asks for as much memory as it needs, and not for 64 MiB.
func TestPrograms(t *testing.T) {
	s := musttest.Get(found())(t)
	runnertest.Run(t, runnertest.Harness{
		New: func(t testing.TB) skill.Runner {
			t.Helper()
			r := New(nil).Programs()
			r.ready = s
			return r
		},
		Write: func(t testing.TB, dir string, p runnertest.Program) string {
			t.Helper()
			name := filepath.Join(dir, runnertest.Python(t, dir, p))
			b, err := os.ReadFile(name)
			if err == nil {
				err = os.WriteFile(name, append([]byte("#!"+s.python.Path+" -IB\n"), b...), 0o755)
			}
			musttest.Do(t, errors.Join(err, os.Chmod(name, 0o755)))
			return filepath.Base(name)
		},
		Env:      []string{"LC_CTYPE"}, // an interpreter sets it for itself
		Trust:    skill.Trusted,
		ExitBits: 8,
		Limits:   skill.Limits{Memory: 128 << 20},
	})
}

// A program is started as what it is: with its arguments, without the variables of the
// host, and as a file that everybody may execute.
func TestProgramEntries(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"tool":   "#!/bin/sh\nprintf '%s|' \"$0\" \"$@\"; read line; echo \"$line|$GRANTED|$HOME\"; exit 7\n",
		"plain":  "echo no interpreter is named\n",
		"closed": "#!/bin/sh\n",
		"broken": "#!/nowhere/sh\n",
	} {
		mode := map[string]os.FileMode{"closed": 0o700}[name]
		if mode == 0 {
			mode = 0o755
		}
		path := filepath.Join(dir, name)
		musttest.Do(t, errors.Join(os.WriteFile(path, []byte(text), 0o600), os.Chmod(path, mode)))
	}
	r := New(nil).Programs()
	defer r.Close()
	if r.Kind() != skill.CLIExec {
		t.Errorf("it is %s", r.Kind())
	}
	call := func(entry string) *skill.Call {
		return &skill.Call{
			SkillID: "p", Folder: dir, Entry: entry, Trust: skill.Trusted, Args: []string{"a", "b c"}, Stdin: []byte("input\n"),
			Grants: skill.Grants{Env: []string{"GRANTED=yes"}},
			Limits: skill.Limits{Timeout: 20 * time.Second, Memory: 64 << 20, Fuel: 1, Output: 1 << 20, Scratch: 1 << 20},
		}
	}
	if reply := must(t, r, call("tool")); reply.ExitCode != 7 || string(reply.Stdout) != filepath.Join(dir, "tool")+"|a|b c|input|yes|\n" {
		t.Errorf("exit code %d, %q, %q", reply.ExitCode, reply.Stdout, reply.Stderr)
	}
	for _, entry := range []string{"plain", "broken"} {
		if reply := must(t, r, call(entry)); reply.ExitCode != 126 || !strings.HasPrefix(string(reply.Stderr), "the entry cannot be executed: ") {
			t.Errorf("%s: exit code %d, %q, %q", entry, reply.ExitCode, reply.Stdout, reply.Stderr)
		}
	}
	if _, err := r.Run(t.Context(), call("closed")); skill.CodeOf(err) != skill.InvalidManifest || !strings.Contains(err.Error(), "chmod a+x") {
		t.Errorf("closed: %v", err)
	}
	c := call("tool")
	c.Trust = skill.Community
	if reply, err := r.Run(t.Context(), c); reply != nil || skill.CodeOf(err) != skill.Forbidden || !strings.Contains(err.Error(), "cli:exec") {
		t.Errorf("of the community: %+v, %v", reply, err)
	}
}

// A program that was compiled starts within the limits, whose runtime reserves much more
// address space than it may use, and what it maps for others to see is bounded too.
func TestCompiledProgram(t *testing.T) {
	dir := t.TempDir()
	source := `package main

import ("fmt"; "os"; "syscall")

func main() {
	if len(os.Args) > 1 {
		for i := 0; i < 64; i++ {
			if _, err := syscall.Mmap(-1, 0, 1<<30, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED|syscall.MAP_ANON); err != nil {
				fmt.Println("refused")
				return
			}
		}
	}
	fmt.Println("well")
}
`
	musttest.Do(t, os.WriteFile(filepath.Join(dir, "main.go"), []byte(source), 0o600))
	build := exec.Command("go", "build", "-o", filepath.Join(dir, "tool"), filepath.Join(dir, "main.go"))
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	r := New(nil).Programs()
	defer r.Close()
	c := &skill.Call{
		SkillID: "p", Folder: dir, Entry: "tool", Trust: skill.Trusted,
		Limits: skill.Limits{Timeout: 20 * time.Second, Memory: 128 << 20, Fuel: 1, Output: 1 << 20, Scratch: 1 << 20},
	}
	if reply := must(t, r, c); reply.Code != "" || reply.ExitCode != 0 || string(reply.Stdout) != "well\n" {
		t.Errorf("%q, exit code %d, %q, %q", reply.Code, reply.ExitCode, reply.Stdout, reply.Stderr)
	}
	c.Args = []string{"shared"}
	if reply := must(t, r, c); runtime.GOOS == "linux" && string(reply.Stdout) != "refused\n" {
		t.Errorf("64 GiB are shared: %q, exit code %d, %q, %q", reply.Code, reply.ExitCode, reply.Stdout, reply.Stderr)
	}
}

// program is a call of a script with the text.
func program(t *testing.T, text string) *skill.Call {
	t.Helper()
	dir := t.TempDir()
	musttest.Do(t, os.WriteFile(filepath.Join(dir, "main.py"), []byte(text), 0o600))
	return &skill.Call{
		SkillID: "p01", Folder: dir, Entry: "main.py", Trust: skill.Trusted,
		Limits: skill.Limits{Timeout: 20 * time.Second, Memory: 128 << 20, Fuel: 1, Output: 1 << 20, Scratch: 2 << 20},
	}
}

func must(t *testing.T, r *Runner, c *skill.Call) *skill.Reply {
	t.Helper()
	return musttest.Get(r.Run(t.Context(), c))(t)
}
