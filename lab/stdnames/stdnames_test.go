package stdnames

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"openskill/plugins/python/pythontest"
	"openskill/plugins/runnertest"
	"openskill/sdk/skill"
)

var (
	update = flag.Bool("update", false, "write the table")
	shared pythontest.Shared
)

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(shared.Main(m))
}

const (
	version = "3.15" // of the runtime that is installed by default
	table   = "../../host/pysource/preflight/missing.txt"
	head    = "# What CPython " + version + " has on Linux and the sandbox has not; a module without names is not there at all.\n" +
		"# Made by go -C lab test ./stdnames -update\n"
)

// ran gives the standard output of a script on the default runtime.
func ran(t *testing.T, files map[string]string) string {
	t.Helper()
	r := shared.Runner(t, "../..")
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	reply, err := runnertest.Do(t.Context(), r, &skill.Call{
		SkillID: "stdnames", Folder: dir, Entry: "main.py", Script: true,
		Limits: skill.Limits{Timeout: 5 * time.Minute, Memory: 512 << 20, Fuel: 1e12, Output: 1 << 20, Scratch: 1 << 20},
	})
	if err != nil || reply.Code != "" || reply.ExitCode != 0 {
		t.Fatalf("%v, %+v", err, reply)
	}
	return string(reply.Stdout)
}

func text(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestTableIsWhatTheRuntimeLacks: the table that skills check asks has every name that CPython
// of the same version has and the installed runtime has not, and no other.
func TestTableIsWhatTheRuntimeLacks(t *testing.T) {
	if got := strings.TrimSpace(ran(t, map[string]string{"main.py": "import sys; print('%d.%d' % sys.version_info[:2])"})); got != version {
		t.Skipf("the runtime that is installed is Python %s; the table is of %s", got, version)
	}
	want := head + ran(t, map[string]string{"main.py": text(t, "probe.py"), "names.txt": text(t, "cpython-"+version+".txt")})
	if *update {
		if err := os.WriteFile(table, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if text(t, table) != want {
		t.Errorf("%s is not what the runtime lacks; go -C lab test ./stdnames -update writes it", table)
	}
}
