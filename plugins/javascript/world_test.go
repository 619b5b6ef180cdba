package javascript

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"openskill/internal/musttest"
)

// Numbers of errors as os gives them: negative, or second in a pair.
const (
	noSuchFile = "44"
	outside    = "63"
	readOnly   = "69"
)

// What std and os reach for is not there, and says so by its own error.
func TestClosedWorld(t *testing.T) {
	attempts := map[string]string{
		// Outside of the mounted folders.
		"std.open('/etc/passwd', 'r')":                                      "null",
		"(e => (std.open('/etc/passwd', 'r', e), e.errno))({})":             noSuchFile,
		"os.open('/etc/passwd', os.O_RDONLY)":                               "-" + noSuchFile,
		"os.open('/skill/../../etc/passwd', os.O_RDONLY)":                   "-" + outside,
		"std.open('../../../../etc/passwd', 'r')":                           "null",
		"std.loadFile('/proc/self/environ')":                                "null",
		"std.loadFile('/skill/out')":                                        "null", // a link that leads out
		"os.readdir('/etc')[1]":                                             noSuchFile,
		"os.stat('/dev/null')[1]":                                           noSuchFile,
		"os.chdir('/etc')":                                                  "-" + noSuchFile,
		"std.loadScript('/etc/passwd')":                                     "ReferenceError: could not load '/etc/passwd'",
		"os.readdir('/')[0].filter(n => n[0] !== '.').sort().join()":        "dev,lib,os,skill,std",
		"(os.chdir('/skill'), os.getcwd()[0] + os.readdir('..')[0].length)": "/skill7",
		"std.getenv('PATH')":                                                "undefined",
		"os.exePath()":                                                      "undefined",
		"[3, 4, 5, 6, 7].map(fd => os.read(fd, new ArrayBuffer(9), 0, 9)).every(n => n < 0)": "true",

		// The skill's own folder is read-only, and so are the files of the runtime.
		"os.open('/skill/main.js', os.O_RDWR | os.O_TRUNC)": "-" + readOnly,
		"std.open('/skill/main.js', 'a')":                   "null",
		"std.open('/skill/new.js', 'w')":                    "null",
		"std.writeFile('/skill/main.js', '')":               "Error: error opening /skill/main.js for writing",
		"os.remove('/skill/main.js')":                       "-" + readOnly,
		"os.rename('/skill/main.js', '/skill/b.js')":        "-" + readOnly,
		"os.mkdir('/skill/new')":                            "-" + readOnly,
		"os.mkdir('/new')":                                  "-" + readOnly,
		"os.utimes('/skill/main.js', 0, 0)":                 "-" + readOnly,
		"os.open('/lib/prelude.js', os.O_WRONLY)":           "-" + readOnly,
		"os.remove('/std')":                                 "-" + readOnly,

		// There are no processes, threads, signals, terminals or network.
		"os.exec(['ls'])":                         "TypeError: not a function",
		"std.popen('ls', 'r')":                    "TypeError: not a function",
		"std.urlGet('http://127.0.0.1')":          "TypeError: not a function",
		"new os.Worker('./main.js')":              "TypeError: not a function",
		"os.pipe()":                               "TypeError: not a function",
		"os.kill(1, 9)":                           "TypeError: not a function",
		"os.waitpid(1, 0)":                        "TypeError: not a function",
		"os.dup(1)":                               "TypeError: not a function",
		"os.symlink('/etc', '/work/l')":           "TypeError: not a function",
		"os.ttySetRaw(0)":                         "TypeError: not a function",
		"os.isatty(0)":                            "false",
		"std.tmpfile()":                           "TypeError: not a function",
		"os.signal(os.SIGTERM, () => 0)":          "undefined", // it is taken, and no signal ever comes
		"std.setenv('A', 'b') || std.getenv('A')": "b",         // its own, and gone with the run
	}
	list := musttest.Get(json.Marshal(keys(attempts)))(t)
	run := running(t)
	c := script(t, `
const said = {};
for (const text of JSON.parse(std.in.readAsString())) {
  os.chdir('/');
  try { said[text] = String(std.evalScript(text)) } catch (e) { said[text] = String(e) }
}
print(JSON.stringify(said))`)
	c.Stdin = list
	secret := filepath.Join(t.TempDir(), "secret")
	musttest.Do(t, os.WriteFile(secret, []byte("secret"), 0o600))
	if err := os.Symlink(secret, filepath.Join(c.Folder, "out")); err != nil {
		t.Log(err) // a system without links; then it is simply not there
	}
	reply := run(t, c)
	var said map[string]string
	if err := json.Unmarshal(reply.Stdout, &said); err != nil {
		t.Fatalf("%v: %.300s\n%s", err, reply.Stdout, reply.Stderr)
	}
	if diff := cmp.Diff(attempts, said); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if b, err := os.ReadFile(filepath.Join(c.Folder, "main.js")); err != nil || !strings.HasPrefix(string(b), "\nconst said") {
		t.Errorf("the script was changed: %.40q, %v", b, err)
	}
}

func keys(m map[string]string) []string {
	list := make([]string, 0, len(m))
	for k := range m {
		list = append(list, k)
	}
	return list
}

// With scratch, a file is written, read and kept.
func TestScratch(t *testing.T) {
	c := script(t, `
std.writeFile('work/out.txt', 'kept'); os.mkdir('/work/sub');
const f = std.open('./work/sub/x', 'w+'); f.puts('abc'); f.seek(1, std.SEEK_SET);
print(f.readAsString(), std.loadFile('/work/out.txt'), os.readdir('work')[0].length); f.close();
os.remove('work/sub/x');`)
	c.Grants.Scratch = true
	reply := running(t)(t, c)
	if string(reply.Stdout) != "bc kept 4\n" || len(reply.Artifacts) != 1 || reply.Artifacts[0].Name != "out.txt" || string(reply.Artifacts[0].Data) != "kept" {
		t.Errorf("%q, %+v\n%s", reply.Stdout, reply.Artifacts, reply.Stderr)
	}
}
