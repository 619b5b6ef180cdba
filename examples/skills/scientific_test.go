package examples_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"openskill/host/app"
	"openskill/plugins/python/runtimes"
	"openskill/sdk/skill"
)

// scientific opens a host on the scientific runtime of the repository's state folder,
// with the skill ready. The runtime takes minutes to compile the first time, and
// seconds to load, so its tests run where they are asked for.
func scientific(t *testing.T, id skill.ID) *app.Host {
	t.Helper()
	if os.Getenv("OPENSKILL_TEST_SCIENTIFIC") == "" {
		t.Skip("OPENSKILL_TEST_SCIENTIFIC is not set")
	}
	state, err := filepath.Abs(filepath.Join("..", "..", ".openskill"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := runtimes.New(state).Open(runtimes.Scientific); err != nil {
		t.Skip(err)
	}
	h := openIn(t, state)
	h.Prepare(t.Context(), id)
	return h
}

// golden is a case with what another engine answers: wasmtime, with the same module.
// scripts/scientific-golden.py makes the file, and says how to compare it with pandas
// outside the sandbox, which was done with pandas 3.1.1 on CPython 3.11.
type golden struct {
	Skill skill.ID          `json:"skill"`
	Input json.RawMessage   `json:"input"`
	Data  json.RawMessage   `json:"data"`
	Files map[string]string `json:"files"` // SHA-256 by name
}

// Skills with packages answer, value for value and byte for byte, what another
// engine does with the same Python.
func TestScientificSkills(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "scientific.json"))
	if err != nil {
		t.Fatal(err)
	}
	var cases []golden
	if err := json.Unmarshal(text, &cases); err != nil {
		t.Fatal(err)
	}
	h := scientific(t, "sales_summary")
	// Twice: the second run of a case finds what others did to the image, if anything.
	for range 2 {
		for _, c := range cases {
			r := h.Invoke(t.Context(), skill.Local(), skill.Request{SkillID: c.Skill, TraceID: "t", Input: c.Input})
			if r.Error != nil || r.Meta.Runner != skill.WasmPython || r.Meta.FuelUsed == 0 {
				t.Fatalf("%s %s: %+v, %+v", c.Skill, c.Input, r.Error, r.Meta)
			}
			t.Logf("%s: %d ms, fuel %d, %d MiB", c.Skill, r.Meta.LatencyMS, r.Meta.FuelUsed, r.Meta.MemoryPeakBytes>>20)
			if diff := cmp.Diff(value(t, c.Data), value(t, r.Data)); diff != "" {
				t.Errorf("%s %s: data (-want +got):\n%s", c.Skill, c.Input, diff)
			}
			files := map[string]string{}
			for _, a := range r.Meta.Artifacts {
				sum := sha256.Sum256(a.Data)
				files[a.Name] = hex.EncodeToString(sum[:])
				if _, err := png.Decode(bytes.NewReader(a.Data)); err != nil {
					t.Errorf("%s: %v", a.Name, err)
				}
			}
			if diff := cmp.Diff(c.Files, files); diff != "" {
				t.Errorf("%s %s: files (-want +got):\n%s", c.Skill, c.Input, diff)
			}
		}
	}
}

// A caller's mistakes come back in words that say what is accepted.
func TestScientificSkillsRefuse(t *testing.T) {
	h := scientific(t, "sales_summary")
	for name, c := range map[string]struct {
		id, input string
		code      skill.Code
		says      string
	}{
		"no column":       {"sales_summary", `{"csv": "a,b\nx,1\n", "by": ["c"], "value": "b"}`, skill.InvalidArgument, "there are: a, b"},
		"no numbers":      {"sales_summary", `{"csv": "a,b\nx,y\n", "by": ["a"], "value": "b"}`, skill.InvalidArgument, "other things than numbers"},
		"value in by":     {"sales_summary", `{"csv": "a,b\nx,1\n", "by": ["b"], "value": "b"}`, skill.InvalidArgument, "must not be one of by"},
		"no table":        {"sales_summary", `{"csv": "a,b\n1,2,3\n1,2,3,4\n", "by": ["a"], "value": "b"}`, skill.InvalidArgument, "not a table"},
		"empty":           {"sales_summary", `{"csv": "", "by": ["a"], "value": "b"}`, skill.InvalidArgument, "not a table"},
		"no file":         {"sales_summary", `{"path": "./data/none.csv", "by": ["a"], "value": "b"}`, skill.NotFound, "no such file"},
		"out of the data": {"sales_summary", `{"path": "./data/../x", "by": ["a"], "value": "b"}`, skill.ForbiddenPath, "data folder"},
		"two tables":      {"sales_summary", `{"path": "./data/prices.csv", "csv": "", "by": ["a"], "value": "b"}`, skill.InvalidArgument, ""},
		"no series":       {"plot", `{"series": {}}`, skill.InvalidArgument, ""},
		"no number":       {"plot", `{"series": {"a": [null]}}`, skill.InvalidArgument, "/series/a/0"},
		"huge picture":    {"plot", `{"series": {"a": [1]}, "width": 100000}`, skill.InvalidArgument, "/width"},
	} {
		t.Run(name, func(t *testing.T) {
			r := h.Invoke(t.Context(), skill.Local(), skill.Request{SkillID: skill.ID(c.id), TraceID: "t", Input: json.RawMessage(c.input)})
			if r.Error == nil || r.Error.Code != c.code || !strings.Contains(r.Error.Message, c.says) {
				t.Errorf("%+v, %s; want %s, %q", r.Error, r.Data, c.code, c.says)
			}
		})
	}
}

// Where the scientific runtime is not installed, the answer says how to get it.
func TestScientificIsNotInstalled(t *testing.T) {
	h := open(t)
	for _, id := range []skill.ID{"sales_summary", "plot"} {
		input := `{"csv": "a,b\nx,1\n", "by": ["a"], "value": "b"}`
		if id == "plot" {
			input = `{"series": {"a": [1]}}`
		}
		r := h.Invoke(t.Context(), skill.Local(), skill.Request{SkillID: id, TraceID: "t", Input: json.RawMessage(input)})
		if r.Error == nil || r.Error.Code != skill.ToolInvocationError || !strings.Contains(r.Error.Message, "openskill runtime install scientific") {
			t.Errorf("%s: %+v; want the command that installs what is missing", id, r.Error)
		}
	}
}
