// Package spectest reads the test scripts of the WebAssembly specification in
// the compiled form that comes with wazero, from Go's module cache: nothing of
// them is copied into this project. It is support for tests.
package spectest

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
	"sync"
	"testing"

	"openskill/internal/musttest"
)

// A Suite is a folder of scripts.
type Suite string

// The suites.
const (
	V2            Suite = "v2" // WebAssembly 2.0
	V1            Suite = "v1"
	ExtendedConst Suite = "extended-const"
	TailCall      Suite = "tail-call"
	Exceptions    Suite = "exception-handling"
)

// Script is one script: modules, and what is asserted of them, in order.
type Script struct {
	Name     string
	Commands []Command
	dir      string
}

// Command is one line of a script.
type Command struct {
	Type       string  `json:"type"`
	Line       int     `json:"line"`
	Name       string  `json:"name"`
	As         string  `json:"as"`
	Filename   string  `json:"filename"`
	ModuleType string  `json:"module_type"`
	Text       string  `json:"text"`
	Action     Action  `json:"action"`
	Expected   []Value `json:"expected"`
}

// Action calls a function or reads a global.
type Action struct {
	Type   string  `json:"type"`
	Module string  `json:"module"`
	Field  string  `json:"field"`
	Args   []Value `json:"args"`
}

// Value is an argument or an expected result.
type Value struct {
	Type     string `json:"type"`
	LaneType string `json:"lane_type"`
	Value    any    `json:"value"`
}

// wazeroDir asks the go command where wazero is, once.
var wazeroDir = sync.OnceValues(func() (string, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/tetratelabs/wazero").Output()
	return strings.TrimSpace(string(out)), err
})

// WazeroDir is the folder of wazero's source in the module cache.
func WazeroDir(tb testing.TB) string {
	tb.Helper()
	dir, err := wazeroDir()
	if err != nil || dir == "" {
		tb.Fatalf("the source of wazero is not in the module cache (%v); run: go mod download", err)
	}
	return dir
}

// Load reads all scripts of a suite, sorted by name.
func Load(tb testing.TB, s Suite) []*Script {
	tb.Helper()
	dir := filepath.Join(WazeroDir(tb), "internal", "integration_test", "spectest", string(s), "testdata")
	files, err := fs.Glob(os.DirFS(dir), "*.json")
	if err != nil || len(files) == 0 {
		tb.Fatalf("no scripts of suite %s in %s (%v)", s, dir, err)
	}
	sort.Strings(files)
	scripts := make([]*Script, 0, len(files))
	for _, f := range files {
		b := musttest.Get(os.ReadFile(filepath.Join(dir, f)))(tb)
		var doc struct {
			Commands []Command `json:"commands"`
		}
		if err := json.Unmarshal(b, &doc); err != nil {
			tb.Fatalf("%s: %v", f, err)
		}
		scripts = append(scripts, &Script{
			Name: strings.TrimSuffix(f, ".json"), Commands: doc.Commands, dir: dir,
		})
	}
	return scripts
}

// Module reads a module that a command names.
func (s *Script) Module(tb testing.TB, c *Command) []byte {
	tb.Helper()
	return musttest.Get(os.ReadFile(filepath.Join(s.dir, c.Filename)))(tb)
}

// Where gives script and line, for messages.
func (s *Script) Where(c *Command) string {
	return fmt.Sprintf("%s.wast:%d %s %s", s.Name, c.Line, c.Type, c.Action.Field)
}

// HostModule reads the module "spectest" that the scripts import from.
func HostModule(tb testing.TB) []byte {
	tb.Helper()
	return musttest.Get(os.ReadFile(filepath.Join(WazeroDir(tb), "internal", "integration_test", "spectest", "testdata", "spectest.wasm")))(tb)
}
