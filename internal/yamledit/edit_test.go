package yamledit

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"openskill/internal/safeyaml"
)

func TestSet(t *testing.T) {
	t.Parallel()
	wide := strings.Repeat("x", 60)
	at := func(path ...any) []any { return path }
	for name, c := range map[string]struct {
		src, want string
		at        []any
		key       string
		value     string
		err       string
	}{
		"one value, and what is beside it stays": {
			"# first\n- name: a # one\n  data: {b: 1, \"c\": 'it''s', d: x} # kept\n\n# of the next\n- name: b\n",
			"# first\n- name: a # one\n  data: {b: 1, \"c\": \"new, {x}\", d: x} # kept\n\n# of the next\n- name: b\n",
			at(0, "data"), "data", `{"b":1,"c":"new, {x}","d":"x"}`, "",
		},
		"lines of its own, with comments": {
			"- data:\n    # why\n    a: 1 # one\n    b: [1, 2] # two\n    c:\n      - x\n      - {y: z}\n  # end\n  name: n\n",
			"- data:\n    # why\n    a: 2 # one\n    b: [1, 3] # two\n    c:\n      - x\n      - {y: null}\n  # end\n  name: n\n",
			at(0, "data"), "data", `{"a":2,"b":[1,3],"c":["x",{"y":null}]}`, "",
		},
		"another name": {
			"- name: a\n  data: {x: 1} # was\n  input: {}\n", "- name: a\n  error: TRAP # was\n  input: {}\n",
			at(0, "data"), "error", `"TRAP"`, "",
		},
		"another name, of lines": {
			"- data:\n    x: 1\n\n    # last\n\n# of the next\n- name: b\n", "- error: {code: TRAP}\n\n    # last\n\n# of the next\n- name: b\n",
			at(0, "data"), "error", `{"code":"TRAP"}`, "",
		},
		"within brackets": {
			"- {name: a, error: TIMEOUT}\n- {error: {code: TRAP}, name: b}", "- {name: a, data: {x: [1, 2]}}\n- {error: {code: TRAP}, name: b}",
			at(0, "error"), "data", `{"x":[1,2]}`, "",
		},
		"a word":                      {"- {error: TIMEOUT, name: a}", "- {error: TRAP, name: a}", at(0, "error"), "error", `"TRAP"`, ""},
		"a word that reads otherwise": {"- error: TIMEOUT", "- error: \"no\"", at(0, "error"), "error", `"no"`, ""},
		"other keys":                  {"a: {x: 1, y: {z: 2}}\n", "a: {\"no\": 1, x: 1}\n", at("a"), "a", `{"x":1,"no":1}`, ""},
		"other keys, in lines": {
			"a:\n  x: 1\nb: 2\n", "a:\n  w:\n    - " + wide + "\n    - " + wide + "\n  x: 1\n  z: []\nb: 2\n",
			at("a"), "a", `{"x":1,"w":["` + wide + `","` + wide + `"],"z":[]}`, "",
		},
		"too wide for one line": {
			"- a: {}\n", "- a:\n    b:\n      - c: " + wide + "\n        d: " + wide + "\n    e: 1\n",
			at(0, "a"), "a", `{"b":[{"c":"` + wide + `","d":"` + wide + `"}],"e":1}`, "",
		},
		"literal text": {
			"a:\n  b: |\n    one\n    two\n  c: 1\n", "a:\n  b: |-\n    three\n\n      four: \"#\"\n  c: 1\n",
			at("a"), "a", `{"b":"three\n\n  four: \"#\"","c":1}`, "",
		},
		"literal text that cannot stay one": {"b: |\n  one\nc: 1\n", "b: \" two\\n\\n\"\nc: 1\n", at("b"), "b", `" two\n\n"`, ""},
		"wide characters before it":         {"- {名: 技能, data: {x: 1}}\n", "- {名: 技能, data: {x: 2}}\n", at(0, "data"), "data", `{"x":2}`, ""},
		"line ends of another system":       {"- a: 1\r\n- b: 2\r\n", "- a: 3\r\n- b: 2\r\n", at(0, "a"), "a", `3`, ""},
		"brackets over lines": {
			"a: {x: 1, # {\n  y: [1,\n  ], # ]\n}\nb: 1", "a: {x: 1, # {\n  y: [1, 2], # ]\n}\nb: 1", at("a"), "a", `{"x":1,"y":[1,2]}`, "",
		},
		"without a line end":   {"a:\n  b: c", "a:\n  b: 1", at("a"), "a", `{"b":1}`, ""},
		"nothing to change":    {"a: {b: 0x10}  # hex\n", "a: {b: 0x10}  # hex\n", at("a"), "a", `{"b":16}`, ""},
		"entry not found":      {"a: 1", "", at("b"), "b", `1`, "entry not found"},
		"no such place":        {"- a: 1", "", at(1, "a"), "a", `1`, "entry not found"},
		"a missing list index": {"- a", "", at(0), "a", `1`, "entry not found"},
		"an entry of the name": {"a: 1\nb: 2", "", at("a"), "b", `1`, "already"},
		"not YAML":             {"a: [", "", at("a"), "a", `1`, "not valid YAML"},
		"not JSON":             {"a: 1", "", at("a"), "a", `{`, "not JSON"},
		"no text of a file":    {"a: x", "", at("a"), "a", `"\u001b[2J"`, "invisible or control"},
		"over many lines":      {"a: x\n  y\nb: 1", "", at("a"), "a", `"z"`, "surrounding text"},
		"too large":            {"a: x", "", at("a"), "a", `"` + strings.Repeat("x", safeyaml.MaxBytes) + `"`, "the limit is 65536"},
		"too many keys":        {"a: {}", "", at("a"), "a", `{"k":1` + manyKeys(safeyaml.MaxKeys+1) + `}`, "the limit is 256"},
	} {
		got, err := Set([]byte(c.src), c.at, c.key, []byte(c.value))
		switch {
		case c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err) || got != nil):
			t.Errorf("%s: %v, %.200q; want %q", name, err, got, c.err)
		case c.err == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		default:
			if diff := cmp.Diff(c.want, string(got)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		}
	}
}

// manyKeys are entries of an object, behind one that is there.
func manyKeys(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,"k%d":1`, i)
	}
	return b.String()
}

// FuzzSet: whatever the document is, it reads back as wanted or is not changed.
func FuzzSet(f *testing.F) {
	for _, src := range []string{"- data: {a: 1}\n", "- data:\n    a: |\n      x\n", "- {data: 'x', b: [1,]}", "- data: \"\\\"\"", "-  data: >-\n    x\n# y\n", "- data:\n  - - x\n  -\n"} {
		f.Add([]byte(src), `{"a": ["x\ny", null]}`)
		f.Add([]byte(src), `"y"`)
	}
	f.Fuzz(func(t *testing.T, src []byte, value string) {
		out, err := Set(src, []any{0, "data"}, "data", []byte(value))
		if err != nil {
			return
		}
		_, problems := safeyaml.Parse(out)
		if len(problems) > 0 {
			t.Fatalf("%q became %q: %v", src, out, problems)
		}
		if again, err := Set(out, []any{0, "data"}, "data", []byte(value)); err != nil || string(again) != string(out) {
			t.Errorf("%q became %q, and then %q: %v", src, out, again, err)
		}
	})
}
