package javascript

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"openskill/internal/musttest"
)

// frames are lines of a stack trace, which are not the same in any two engines.
var frames = regexp.MustCompile(`(?m)(^ *at .*?( \{)?\n)+`)

func withoutFrames(out []byte) string {
	return frames.ReplaceAllString(strings.TrimRight(string(out), "\n")+"\n", "    at …$2\n")
}

// What console prints is what Node prints.
func TestPrintsAsNode(t *testing.T) {
	program := musttest.Get(os.ReadFile(filepath.Join("testdata", "console.js")))(t)
	for _, stream := range []string{"stdout", "stderr"} {
		name := filepath.Join("testdata", "console."+stream+".txt")
		if *update {
			node := exec.CommandContext(t.Context(), "node", filepath.Join("testdata", "console.js"))
			node.Env = append(os.Environ(), "TZ=UTC", "LC_ALL=en_US.UTF-8")
			var out bytes.Buffer
			if node.Stdout = &out; stream == "stderr" {
				node.Stdout, node.Stderr = nil, &out
			}
			if err := node.Run(); err != nil {
				t.Fatalf("%v\n%s", err, out.Bytes())
			}
			musttest.Do(t, os.WriteFile(name, []byte(withoutFrames(out.Bytes())), 0o600))
		}
		want := musttest.Get(os.ReadFile(name))(t)
		c := script(t, string(program))
		reply := running(t)(t, c)
		if reply.Code != "" || reply.ExitCode != 0 {
			t.Fatalf("%s %s, exit code %d\n%s", reply.Code, reply.Message, reply.ExitCode, reply.Stderr)
		}
		got := reply.Stdout
		if stream == "stderr" {
			got = reply.Stderr
		}
		said := map[string]string{}
		for part := range strings.SplitSeq(withoutFrames(got), "== ") {
			name, text, _ := strings.Cut(part, "\n")
			said[name] = text
		}
		cases := 0
		for part := range strings.SplitSeq(string(want), "== ") {
			name, text, ok := strings.Cut(part, "\n")
			if !ok {
				continue
			}
			cases++
			if diff := cmp.Diff(text, said[name]); diff != "" {
				t.Errorf("%s on %s (-node +here):\n%s", name, stream, diff)
			}
		}
		if cases < 100 {
			t.Errorf("%d cases on %s", cases, stream)
		}
	}
}
