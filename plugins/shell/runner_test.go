package shell

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"openskill/internal/musttest"
	"openskill/plugins/runnertest"
	"openskill/sdk/skill"
	"openskill/wasm"
)

var (
	// shared is one engine for all tests, so that the module is loaded once; it is compiled
	// once a machine.
	shared *wasm.Engine
	state  = os.Getenv("OPENSKILL_STATE_DIR")
)

func TestMain(m *testing.M) {
	if state == "" {
		state = filepath.Join("..", "..", ".openskill")
	}
	var err error
	if shared, err = wasm.Open(&wasm.Options{CacheDir: filepath.Join(state, "cache", "wasm")}); err != nil {
		panic(err)
	}
	code := m.Run()
	if err := shared.Close(); err != nil {
		panic(err)
	}
	os.Exit(code)
}

// running makes a runner whose module is compiled.
func running(t testing.TB, opts Options) *Runner {
	t.Helper()
	opts.StateDir = state
	r := New(shared, &opts)
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	if _, err := os.Stat(filepath.Join(state, moduleFile)); err != nil {
		t.Skip("the shell is not built: run make runtimes, which needs Rust with the target wasm32-wasip1")
	}
	musttest.Do(t, runnertest.Ready(t.Context(), r))
	return r
}

// script is a call that runs the text as a script of an Agent Skill, with roomy limits.
func script(t testing.TB, text string, args ...string) *skill.Call {
	t.Helper()
	dir := t.TempDir()
	musttest.Do(t, os.WriteFile(filepath.Join(dir, "main.sh"), []byte(text), 0o600))
	return &skill.Call{
		SkillID: "script", Folder: dir, Entry: "main.sh", Script: true, Args: args,
		Limits: skill.Limits{Timeout: 2 * time.Minute, Memory: 256 << 20, Fuel: 1e12, Output: 1 << 20, Scratch: 16 << 20},
	}
}

func do(t testing.TB, r *Runner, c *skill.Call) *skill.Reply {
	t.Helper()
	return musttest.Get(runnertest.Do(t.Context(), r, c))(t)
}

func TestRunner(t *testing.T) {
	running(t, Options{})
	program := musttest.Get(os.ReadFile(filepath.Join("testdata", "conformance.sh")))(t)
	runnertest.Run(t, runnertest.Harness{
		New: func(testing.TB) skill.Runner { return New(shared, &Options{StateDir: state}) },
		Write: func(t testing.TB, dir string, _ runnertest.Program) string {
			t.Helper()
			musttest.Do(t, os.WriteFile(filepath.Join(dir, "main.sh"), program, 0o600))
			return "main.sh"
		},
		Metered: true, ExitBits: 8,
		Env: []string{"PWD", "OLDPWD", "SHLVL", "_", "HOME", "TMPDIR", "USER", "LOGNAME", "HOSTNAME", "PATH", "SHELL", "TERM", "LANG"},
	})
}

// A host without the module says how to get it, and nothing of its own paths.
func TestNotInstalled(t *testing.T) {
	dir := t.TempDir()
	r := New(nil, &Options{StateDir: dir})
	defer r.Close()
	_, err := r.Prepare(t.Context(), &skill.Spec{})
	var e *skill.Error
	if !errors.As(err, &e) || !strings.HasPrefix(e.Message, "the shell is not installed: run make runtimes") || strings.Contains(e.Message, dir) {
		t.Errorf("%v", err)
	}
}

// A module that was built again has another digest.
func TestModuleBuiltAgain(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, moduleFile)
	musttest.Do(t, os.MkdirAll(filepath.Dir(path), 0o700))
	of := newRuntime(dir)
	for i, content := range []string{"one", "another"} {
		musttest.Do(t, os.WriteFile(path, []byte(content), 0o600))
		m, err := of.module()
		if err != nil || m.Digest != wasm.Digest([]byte(content)) {
			t.Errorf("%d: %v, %v", i, m.Digest, err)
		}
	}
}

// Input is read as commands ask for it: 100 MiB pass through 32 MiB of memory.
func TestInputAsItComes(t *testing.T) {
	r := running(t, Options{})
	input := []byte(strings.Repeat(strings.Repeat("x", 1023)+"\n", 100<<10))
	for text, want := range map[string]string{
		"wc -c":                                       "104857600",
		"cat | wc -l":                                 "102400",
		"tr x y | grep -c yy":                         "102400",
		"head -n 1 | wc -c":                           "1024",
		"grep -m 1 x | wc -c":                         "1024",
		"read -r a; echo ${#a}":                       "1023",
		"cut -c 1 | tail -c 4":                        "x\nx",
		"cat > /dev/null; wc -c":                      "0",
		"f() { wc -l; }; f":                           "102400",
		"( wc -l )":                                   "102400",
		"x=$(head -c 3); echo $x":                     "xxx",
		"bash -c 'wc -l'":                             "102400",
		"if grep -q x; then pwd; fi":                  "/skills/script",
		"while read -r l; do break; done; echo ${#l}": "1023",
	} {
		t.Run(text, func(t *testing.T) {
			c := script(t, text)
			c.Stdin, c.Limits.Memory = input, 32<<20
			reply := do(t, r, c)
			if got := strings.TrimSpace(string(reply.Stdout)); got != want || reply.Code != "" || reply.Usage.MemoryPeak > 32<<20 {
				t.Errorf("%q, want %q; %s %s %d MiB\n%s", got, want, reply.Code, reply.Message, reply.Usage.MemoryPeak>>20, reply.Stderr)
			}
		})
	}
}
