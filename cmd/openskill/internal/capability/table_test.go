package capability_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"openskill/cmd/openskill/internal/capability"
	"openskill/host/manifest"
	"openskill/internal/musttest"
	"openskill/internal/ordered"
	"openskill/plugins/runnertest"
	"openskill/sdk/skill"
)

var update = flag.Bool("update", false, "write the tables anew")

// least is how many functions the tables have at the least.
const least = 90

// The tables in testdata/functions: of each function the schema that is made of it. Every
// schema is one that manifests accept.
func TestFunctions(t *testing.T) {
	a := analyzer(t)
	files, err := filepath.Glob("testdata/functions/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	count := 0
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			table(t, file, func(name string, source []byte, _ string) string {
				count++
				base := strings.TrimSuffix(name, ".py")
				_, function, named := strings.Cut(base, "@")
				if !named {
					function = "f"
				}
				if strings.Contains(string(source), "def add_numbers") {
					function = "add_numbers"
				}
				text, err := strconv.Unquote(`"` + strings.NewReplacer(`"`, `\"`, "\n", `\n`).Replace(string(source)) + `"`)
				if err != nil || !strings.Contains(name, "invisible") {
					text = string(source)
				}
				f, problems, err := capability.Extract(t.Context(), a, "test", []byte(text), function)
				musttest.Do(t, err)
				return shown(t, f, problems)
			})
		})
	}
	if count < least {
		t.Errorf("there are %d functions in the tables; want at least %d", count, least)
	}
}

// table runs the cases of a file: for each NAME.py, with NAME.args, NAME.txt is what make
// gives.
func table(t *testing.T, file string, run func(name string, source []byte, args string) string) {
	t.Helper()
	archive := musttest.Get(txtar.ParseFile(file))(t)
	parts := map[string][]byte{}
	for _, f := range archive.Files {
		parts[f.Name] = f.Data
	}
	out := &txtar.Archive{Comment: archive.Comment}
	for _, f := range archive.Files {
		base, isCode := strings.CutSuffix(f.Name, ".py")
		if !isCode {
			continue
		}
		got := run(f.Name, f.Data, string(parts[base+".args"]))
		out.Files = append(out.Files, f)
		if args, ok := parts[base+".args"]; ok {
			out.Files = append(out.Files, txtar.File{Name: base + ".args", Data: args})
		}
		out.Files = append(out.Files, txtar.File{Name: base + ".txt", Data: []byte(got)})
		if d := cmp.Diff(string(parts[base+".txt"]), got); d != "" && !*update {
			t.Errorf("%s (-want +got):\n%s", base, d)
		}
	}
	if *update {
		musttest.Do(t, os.WriteFile(file, txtar.Format(out), 0o600))
	}
}

// shown writes a function as the tables have it.
func shown(t *testing.T, f *capability.Function, problems []capability.Problem) string {
	t.Helper()
	var b strings.Builder
	for _, p := range problems {
		fmt.Fprintf(&b, "problem: %s\n", p)
	}
	if f == nil {
		return b.String()
	}
	if f.Description != "" {
		fmt.Fprintf(&b, "description: %s\n", f.Description)
	}
	schemaLines(t, &b, f.Input)
	if string(f.Output) != `{"type":"object","properties":{"result":{}},"required":["result"]}` {
		fmt.Fprintf(&b, "gives: %s\n", f.Output)
	}
	for _, n := range f.Notes {
		fmt.Fprintf(&b, "note: %s\n", n)
	}
	if _, errs := manifest.CompileSchema(f.Output); len(errs) > 0 {
		t.Errorf("the schema of the result is not accepted: %v", errs[0])
	}
	return b.String()
}

func schemaLines(t *testing.T, b *strings.Builder, input json.RawMessage) {
	t.Helper()
	if _, errs := manifest.CompileSchema(input); len(errs) > 0 {
		t.Errorf("the schema is not accepted: %v\n%s", errs[0], input)
	}
	s := musttest.Get(ordered.DecodeObject(input))(t)
	line := func(name string, v any) {
		text := musttest.Get(ordered.Encode(v))(t)
		fmt.Fprintf(b, "%s %s\n", name, text)
	}
	for _, m := range s.Object("properties").Members {
		name := m.Key
		if slices.Contains(s.List("required"), any(m.Key)) {
			name += "!"
		}
		line(name, m.Value)
	}
	for _, m := range s.Members {
		switch m.Key {
		case "type", "properties", "required":
		case "additionalProperties":
			if m.Value != any(false) {
				line("others", m.Value)
			}
		default:
			line(m.Key, m.Value)
		}
	}
}

// parsed is what the script's own parser makes of a command line, in CPython.
func parsed(t *testing.T, source []byte, words []string) string {
	t.Helper()
	folder := t.TempDir()
	// The first parser at the top, if the script does not get so far as to use one.
	code := `
import argparse, json, sys
def show(self, args=None, namespace=None):
    print(json.dumps(vars(self.parse_known_args(args)[0]), default=str))
    sys.exit()
argparse.ArgumentParser.parse_args = show
namespace = {"__name__": "__main__", "Own": argparse._StoreAction}
exec(` + strconv.QuoteToASCII(string(source)) + `, namespace)
namespace.get("parser", namespace.get("p")).parse_args()
`
	musttest.Do(t, os.WriteFile(filepath.Join(folder, "main.py"), []byte(code), 0o600))
	reply, err := runnertest.Do(t.Context(), cpython(t), &skill.Call{
		SkillID: "x", TraceID: "t", ExecutionID: "e", Tenant: "test", Folder: folder, Entry: "main.py", Args: words, Limits: limits,
	})
	musttest.Do(t, err)
	if reply.ExitCode != 0 || reply.Code != "" {
		lines := strings.Split(strings.TrimSpace(string(reply.Stderr)), "\n")
		return "refused: " + lines[len(lines)-1]
	}
	return strings.TrimSpace(string(reply.Stdout))
}

// The table of parsers, what command lines are made of objects, and what the parsers make
// of those.
func TestParsersOfCommandLines(t *testing.T) {
	a := analyzer(t)
	table(t, "testdata/parsers/parsers.txtar", func(_ string, source []byte, args string) string {
		s, problems, err := capability.Command(t.Context(), a, "test", source)
		if err != nil || len(problems) > 0 {
			t.Fatal(err, problems)
		}
		if s == nil {
			return "no parser\n"
		}
		var b strings.Builder
		if s.Description != "" {
			fmt.Fprintf(&b, "description: %s\n", s.Description)
		}
		if s.Partial {
			b.WriteString("partial\n")
		}
		schemaLines(t, &b, s.Input)
		for line := range strings.Lines(args) {
			words, err := s.Arguments([]byte(line))
			if err != nil {
				fmt.Fprintf(&b, "> %s  %v\n", strings.TrimSpace(line), err)
				continue
			}
			text := &bytes.Buffer{}
			for _, w := range words {
				fmt.Fprintf(text, " %q", w)
			}
			fmt.Fprintf(&b, "> %s %s\n  %s\n", strings.TrimSpace(line), text, parsed(t, source, words))
		}
		return b.String()
	})
}
