// Package examples_test calls the example skills through a host, as a caller does.
package examples_test

import (
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"openskill/host/app"
	"openskill/host/app/config"
	"openskill/sdk/skill"
)

// TestMain lets this test program be the processes of a host.
func TestMain(m *testing.M) {
	if code, is := app.Child(os.Args[1:]); is {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// open makes a host of the skills of this folder, with a state folder of its own.
func open(t *testing.T) *app.Host {
	t.Helper()
	return openIn(t, t.TempDir())
}

// openIn makes one with a state folder, and the data folder that comes with openSkill.
func openIn(t *testing.T, state string) *app.Host {
	t.Helper()
	root, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	data := filepath.Join("..", "..", "data")
	if data, err = filepath.Abs(data); err != nil {
		t.Fatal(err)
	}
	settings, err := config.Load(config.Sources{Dir: t.TempDir(), Flags: map[string]string{"state": state, "data": data}})
	if err != nil {
		t.Fatal(err)
	}
	h, err := app.Open(settings, &app.Options{Log: slog.New(slog.DiscardHandler), Roots: []string{root}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	if p := h.Problems(); len(p) > 0 {
		t.Fatalf("problems: %v", p)
	}
	return h
}

func TestJSONDiff(t *testing.T) {
	h := open(t)
	h.Prepare(t.Context(), "json_diff")
	for name, c := range map[string]struct {
		input, want string
		code        skill.Code
	}{
		"equal":   {input: `{"before": {"a": [1, {"b": null}]}, "after": {"a": [1, {"b": null}]}}`, want: `{"equal": true, "changes": [], "truncated": false}`},
		"scalars": {input: `{"before": 1, "after": "1"}`, want: `{"equal": false, "changes": [{"op": "change", "path": "", "before": 1, "after": "1"}], "truncated": false}`},
		"all three": {
			input: `{"before": {"a": 1, "b/c": [1, 2], "d": {}}, "after": {"a": 2, "b/c": [1], "d": [], "e~": false}}`,
			want: `{"equal": false, "truncated": false, "changes": [
				{"op": "change", "path": "/a", "before": 1, "after": 2}, {"op": "remove", "path": "/b~1c/1", "before": 2},
				{"op": "change", "path": "/d", "before": {}, "after": []}, {"op": "add", "path": "/e~0", "after": false}]}`,
		},
		"names that objects have": {
			input: `{"before": {}, "after": {"__proto__": 1, "toString": "x"}}`,
			want:  `{"equal": false, "changes": [{"op": "add", "path": "/__proto__", "after": 1}, {"op": "add", "path": "/toString", "after": "x"}], "truncated": false}`,
		},
		"limit":      {input: `{"before": [1, 2, 3], "after": [], "limit": 1}`, want: `{"equal": false, "changes": [{"op": "remove", "path": "/0", "before": 1}], "truncated": true}`},
		"at limit":   {input: `{"before": [1], "after": [], "limit": 1}`, want: `{"equal": false, "changes": [{"op": "remove", "path": "/0", "before": 1}], "truncated": false}`},
		"wrong type": {input: `{"before": 1, "after": 2, "limit": "x"}`, code: skill.InvalidArgument},
		"missing":    {input: `{"before": 1}`, code: skill.InvalidArgument},
	} {
		t.Run(name, func(t *testing.T) {
			r := h.Invoke(t.Context(), skill.Local(), skill.Request{SkillID: "json_diff", TraceID: "t-1", Input: json.RawMessage(c.input)})
			if c.code != "" {
				if r.Error == nil || r.Error.Code != c.code {
					t.Fatalf("%+v; want %s", r.Error, c.code)
				}
				return
			}
			if r.Error != nil || r.Meta.Runner != skill.WasmJavaScript || r.Meta.FuelUsed == 0 {
				t.Fatalf("%+v, %+v", r.Error, r.Meta)
			}
			if diff := cmp.Diff(value(t, []byte(c.want)), value(t, r.Data)); diff != "" {
				t.Errorf("data (-want +got):\n%s", diff)
			}
		})
	}
}

func value(t *testing.T, raw []byte) (v any) {
	t.Helper()
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatal(err)
	}
	return v
}
