package javascript

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"openskill/internal/musttest"
	"openskill/plugins/runnertest"
)

var update = flag.Bool("update", false, "compile the prelude, and have Node print testdata/console.js")

// What scripts run with is what the files of the prelude say, compiled by the runtime
// that runs it. Each is one function or block, so that a script sees no name of theirs.
func TestPreludeIsCompiled(t *testing.T) {
	r := New(warm(t), nil)
	defer r.Close()
	r.command = []string{"qjs", "--std"} // without the prelude, which may be what is broken
	for name, code := range map[string]struct {
		have                []byte
		before, after, list string
	}{
		"start.bin": {startCode, "{\n", "}\n", "start.js"},
		"rest.bin": {
			restCode, "(({ out, err, puts, write, group }) => {\n",
			"return { format, console: methods, locale, told };\n})\n", "inspect.js console.js locale.js errors.js",
		},
	} {
		source := code.before
		for file := range strings.FieldsSeq(code.list) {
			b := musttest.Get(os.ReadFile(filepath.Join("prelude", file)))(t)
			source += string(b)
		}
		c := script(t, `
const code = std.evalScript(std.loadFile('/skill/prelude.txt'), { compile_only: true });
const bin = bjson.write(code, bjson.WRITE_OBJ_BYTECODE | bjson.WRITE_OBJ_STRIP_SOURCE | bjson.WRITE_OBJ_STRIP_DEBUG);
std.out.write(bin, 0, bin.byteLength);
`, "prelude.txt", source+code.after)
		reply, err := runnertest.Do(t.Context(), r, c)
		if err != nil || reply.ExitCode != 0 || len(reply.Stdout) == 0 {
			t.Fatalf("%s: %v: %+v\n%s", name, err, reply, reply.Stderr)
		}
		switch {
		case *update:
			musttest.Do(t, os.WriteFile(filepath.Join("prelude", name), reply.Stdout, 0o600))
		case !bytes.Equal(reply.Stdout, code.have):
			t.Errorf("%s has %d bytes that are not what its files compile to, %d: go test ./plugins/javascript -run TestPreludeIsCompiled -update", name, len(code.have), len(reply.Stdout))
		}
	}
}
