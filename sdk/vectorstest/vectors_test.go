package vectorstest

import (
	"encoding/json"
	"strings"
	"testing"
)

func all(t *testing.T) []Vector {
	t.Helper()
	vs, err := All()
	if err != nil {
		t.Fatal(err)
	}
	return vs
}

func TestTwelve(t *testing.T) {
	t.Parallel()
	vs := all(t)
	if len(vs) != 12 {
		t.Errorf("%d vectors", len(vs))
	}
	seen := map[string]bool{}
	for _, v := range vs {
		if seen[v.Name] || len(v.Shows) < 20 {
			t.Errorf("%q: a second one, or it does not say what it shows", v.Name)
		}
		seen[v.Name] = true
		if valid := json.Valid(v.Call()); valid != (v.Stdin == nil) {
			t.Errorf("%s: the call is JSON: %v", v.Name, valid)
		}
		if v.Name == "large_payload" && len(v.Call()) < 512<<10 {
			t.Errorf("the large payload has %d bytes", len(v.Call()))
		}
	}
}

// perfect is the run that a vector asks for.
func perfect(t *testing.T, v *Vector) *Got {
	t.Helper()
	stdout, err := json.Marshal(map[string]any{"success": v.Want.Success, "data": v.Want.Data, "error": v.Want.Error})
	if err != nil {
		t.Fatal(err)
	}
	return &Got{
		Stdout: stdout, Exit: v.Want.Exit, Artifacts: v.Want.Artifacts,
		Stderr: []byte("something\n" + strings.Join(v.Want.Logs, "\nbetween\n") + "\n"),
	}
}

// Each vector takes what it asks for, and misses each part of it.
func TestCheck(t *testing.T) {
	t.Parallel()
	for _, v := range all(t) {
		if err := v.Check(perfect(t, &v)); err != nil {
			t.Errorf("%s: %v", v.Name, err)
		}
		for what, spoil := range map[string]func(*Got) bool{
			"exit code":        func(g *Got) bool { g.Exit++; return true },
			"no answer":        func(g *Got) bool { g.Stdout = nil; return true },
			"a line before it": func(g *Got) bool { g.Stdout = append([]byte("hello\n"), g.Stdout...); return true },
			"a line behind it": func(g *Got) bool { g.Stdout = append(g.Stdout, "\n{}"...); return true },
			"an artifact more": func(g *Got) bool {
				g.Artifacts = append(g.Artifacts[:len(g.Artifacts):len(g.Artifacts)], Artifact{Name: "x"})
				return true
			},
			"no artifacts":       func(g *Got) bool { had := g.Artifacts; g.Artifacts = nil; return had != nil },
			"no lines":           func(g *Got) bool { g.Stderr = nil; return len(v.Want.Logs) > 0 },
			"another word":       func(g *Got) bool { g.Stdout = []byte(strings.Replace(string(g.Stdout), "a", "b", 1)); return true },
			"success of its own": func(g *Got) bool { g.Stdout = []byte(`{"success": true, "data": {}, "error": null}`); return true },
			"another large value": func(g *Got) bool {
				g.Stdout = []byte(strings.ReplaceAll(string(g.Stdout), "40993", "40992"))
				return v.Name == "numbers_and_text"
			},
		} {
			got := perfect(t, &v)
			if spoil(got) && v.Check(got) == nil {
				t.Errorf("%s: %s is not missed", v.Name, what)
			}
		}
	}
}

func TestWrongFiles(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"no JSON":            `{`,
		"a key":              `{"name": "x", "input": {}, "want": {"success": true, "data": {}, "exit": 0}, "colour": 1}`,
		"no input":           `{"name": "x", "want": {"success": true, "data": {}, "exit": 0}}`,
		"two inputs":         `{"name": "x", "input": {}, "stdin": "", "want": {"success": true, "data": {}, "exit": 0}}`,
		"success without":    `{"name": "x", "input": {}, "want": {"success": true, "exit": 0}}`,
		"success with error": `{"name": "x", "input": {}, "want": {"success": true, "data": {}, "error": {"code": "x"}, "exit": 0}}`,
		"failure without":    `{"name": "x", "input": {}, "want": {"success": false, "exit": 1}}`,
	} {
		if v, err := parse([]byte(text)); err == nil {
			t.Errorf("%s: %+v", name, v)
		}
	}
}

func TestNumbers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"1", "1.0", true},
		{"1e21", "1000000000000000000000", true},
		{"0.1", "1e-1", true},
		{"-0", "0", true},
		{"9007199254740993", "9007199254740992", false},
		{"18446744073709551615", "18446744073709552000", false},
		{"9007199254740993", "9007199254740993.0", true},
		{"1", "2", false},
		{"0.1", "0.10000000000000002", false},
	} {
		if got := different(json.Number(c.a), json.Number(c.b), "x") == ""; got != c.same {
			t.Errorf("%s and %s are the same: %v", c.a, c.b, got)
		}
	}
}
