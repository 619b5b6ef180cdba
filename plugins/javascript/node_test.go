package javascript

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"openskill/internal/musttest"
)

// Each program prints what Node 20 printed, and exits as it did. With -update Node runs those
// in JavaScript again, without a network.
func TestNodePrograms(t *testing.T) {
	needsNode(t)
	run := running(t)
	all, err := filepath.Glob("testdata/node/*.txtar")
	if err != nil || len(all) < 40 {
		t.Fatalf("%d programs, %v", len(all), err)
	}
	for _, file := range all {
		name := strings.TrimSuffix(filepath.Base(file), ".txtar")
		t.Run(name, func(t *testing.T) {
			a := musttest.Get(txtar.ParseFile(file))(t)
			p := programOf(t, a)
			if *update && !strings.HasSuffix(name, ".ts") {
				p.update(t, file, name, a)
			}
			c := script(t, "", p.files...)
			c.Script, c.SkillID, c.Entry, c.Stdin, c.Args = true, "programs", name, p.stdin, p.args
			c.Limits.Memory = 64 << 20
			r := run(t, c)
			if diff := cmp.Diff(string(p.stdout), string(r.Stdout)); diff != "" {
				t.Errorf("standard output (-Node +openSkill):\n%s\nstderr: %s", diff, r.Stderr)
			}
			if r.Code != "" || r.ExitCode != p.exit {
				t.Errorf("exit code %d %s, want %d\nstderr: %s", r.ExitCode, r.Code, p.exit, r.Stderr)
			}
		})
	}
}

func needsNode(t testing.TB) {
	t.Helper()
	if !HasNode() {
		t.Skip("Node's modules are not installed: make node-modules")
	}
}

type program struct {
	files  []string
	args   []string
	stdin  []byte
	stdout []byte
	exit   uint32
}

func programOf(t *testing.T, a *txtar.Archive) *program {
	t.Helper()
	p := &program{}
	if c := bytes.TrimSpace(a.Comment); len(c) > 0 {
		musttest.Do(t, json.Unmarshal(c, &p.args))
	}
	for _, f := range a.Files {
		switch f.Name {
		case "stdin":
			p.stdin = f.Data
		case "stdout":
			p.stdout = f.Data
		case "exit":
			n := musttest.Get(strconv.ParseUint(strings.TrimSpace(string(f.Data)), 10, 8))(t)
			p.exit = uint32(n)
		default:
			p.files = append(p.files, f.Name, string(f.Data))
		}
	}
	return p
}

// update has Node run the program.
func (p *program) update(t *testing.T, file, name string, a *txtar.Archive) {
	t.Helper()
	dir := script(t, "", p.files...).Folder
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), "unshare", append([]string{"--net", "node", name}, p.args...)...)
	cmd.Dir, cmd.Env = dir, []string{"HOME=/tmp", "TMPDIR=/tmp", "PATH=/usr/bin"}
	cmd.Stdin, cmd.Stderr = bytes.NewReader(p.stdin), os.Stderr
	out, err := cmd.Output()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		t.Fatal(err)
	}
	p.stdout, p.exit = out, uint32(cmd.ProcessState.ExitCode())
	kept := a.Files[:0]
	for _, f := range a.Files {
		if f.Name != "stdout" && f.Name != "exit" {
			kept = append(kept, f)
		}
	}
	a.Files = append(kept, txtar.File{Name: "stdout", Data: out}, txtar.File{Name: "exit", Data: strconv.AppendInt(nil, int64(p.exit), 10)})
	musttest.Do(t, os.WriteFile(file, txtar.Format(a), 0o600))
}
