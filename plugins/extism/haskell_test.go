package extism

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"openskill/internal/musttest"
	"openskill/plugins/runnertest"
)

// A plug-in that Extism's PDK for Haskell made, as it stands among the tests of Extism's
// SDK for Go, runs as it does there.
func TestHaskell(t *testing.T) {
	t.Parallel()
	dir := musttest.Get(exec.CommandContext(t.Context(), "go", "-C", filepath.Join("..", "..", "lab"), "list", "-m", "-f", "{{.Dir}}", "github.com/extism/go-sdk").Output())(t)
	module := musttest.Get(os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "wasm", "hello_haskell.wasm")))(t)
	r := New(engine(t), nil)
	t.Cleanup(func() { r.Close() })
	for name, want := range map[string]string{"John": "Howdy, John", "Ada": "Howdy, Ada"} {
		call := pluginOf(t, module, "m.wasm#testing")
		call.Stdin, call.Grants.Env = []byte(name), []string{"greeting=Howdy"}
		reply, err := runnertest.Do(t.Context(), r, call)
		if err != nil || reply.Code != "" || string(reply.Stdout) != want {
			t.Errorf("%+v, %v\n%s", reply, err, reply.Stderr)
		}
	}
}
