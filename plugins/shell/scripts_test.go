package shell

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"openskill/internal/musttest"
	"openskill/plugins/runnertest"
)

var update = flag.Bool("update", false, "make testdata/scripts/*.golden by the bash of this machine")

// stdin is what every script may read.
const stdin = "l1\nl2\nl3\nl4\nstop\nl6\nl7\n"

// TestScripts holds that scripts print what they print by bash 5.2 and GNU's tools, byte for
// byte, and end with the same code.
func TestScripts(t *testing.T) {
	list, err := filepath.Glob(filepath.Join("testdata", "scripts", "*.sh"))
	if err != nil || len(list) < 40 {
		t.Fatalf("%d scripts, %v", len(list), err)
	}
	r := running(t, Options{})
	for _, path := range list {
		name := strings.TrimSuffix(filepath.Base(path), ".sh")
		t.Run(name, func(t *testing.T) {
			text := musttest.Get(os.ReadFile(path))(t)
			golden := strings.TrimSuffix(path, ".sh") + ".golden"
			if *update {
				musttest.Do(t, os.WriteFile(golden, native(t, name, text), 0o600))
			}
			want := musttest.Get(os.ReadFile(golden))(t)
			c := script(t, "")
			c.Entry = name + ".sh"
			musttest.Do(t, os.WriteFile(filepath.Join(c.Folder, c.Entry), text, 0o600))
			musttest.Do(t, os.Remove(filepath.Join(c.Folder, "main.sh")))
			c.Stdin = []byte(stdin)
			reply := musttest.Get(runnertest.Do(t.Context(), r, c))(t)
			if diff := cmp.Diff(string(want), string(reply.Stdout)+fmt.Sprintf("exit %d\n", reply.ExitCode)); diff != "" || reply.Code != "" {
				t.Errorf("code %q %s (-want +got):\n%s\nstderr: %.600s", reply.Code, reply.Message, diff, reply.Stderr)
			}
			t.Logf("%d units, %d MiB", reply.Usage.Fuel, reply.Usage.MemoryPeak>>20)
		})
	}
}

// native gives the output and the exit code of a script by bash, in an empty folder.
func native(t *testing.T, name string, text []byte) []byte {
	t.Helper()
	dir := t.TempDir()
	work := filepath.Join(dir, "script") // as the skill is called
	musttest.Do(t, os.Mkdir(work, 0o700))
	musttest.Do(t, os.WriteFile(filepath.Join(work, name+".sh"), text, 0o700))
	args := []string{"bash", "./" + name + ".sh"}
	if bwrap, err := exec.LookPath("bwrap"); err == nil {
		args = append([]string{bwrap, "--unshare-all", "--ro-bind", "/", "/", "--bind", dir, dir, "--dev", "/dev", "--"}, args...)
	}
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	cmd.Dir, cmd.Stdin, cmd.WaitDelay = work, strings.NewReader(stdin), time.Second
	cmd.Env = []string{"PATH=/usr/bin:/bin", "HOME=" + dir, "TMPDIR=" + dir, "LC_ALL=C.UTF-8"}
	var out bytes.Buffer
	cmd.Stdout = &out
	var ended *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &ended) {
		t.Fatal(err)
	}
	fmt.Fprintf(&out, "exit %d\n", cmd.ProcessState.ExitCode())
	return out.Bytes()
}
