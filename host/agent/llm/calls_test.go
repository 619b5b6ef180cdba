package llm

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"openskill/internal/musttest"
)

func part(index int, id, name, arguments string) callPart {
	return callPart{Index: index, Indexed: index >= 0, ID: id, Name: name, Arguments: arguments}
}

func TestAdd(t *testing.T) {
	for name, c := range map[string]struct {
		parts []callPart
		want  string // name(arguments) of each
	}{
		"by the rules":           {[]callPart{part(0, "a", "f", ""), part(1, "b", "g", ""), part(1, "", "", "{}"), part(0, "", "", "{1"), part(0, "", "", "}")}, "f({1}) g({})"},
		"index always 0":         {[]callPart{part(0, "a", "f", "{}"), part(0, "b", "g", "{"), part(0, "", "", "}"), part(0, "b", "", " ")}, "f({}) g({} )"},
		"no index":               {[]callPart{part(-1, "a", "f", "{"), part(-1, "", "", "}"), part(-1, "b", "g", "{"), part(-1, "a", "", "!"), part(-1, "b", "", "}")}, "f({}!) g({})"},
		"no index and no id":     {[]callPart{part(-1, "", "f", "{}"), part(-1, "", "g", "{"), part(-1, "", "", "}")}, "f({}) g({})"},
		"an id for each part":    {[]callPart{part(0, "a", "f", ""), part(0, "b", "", "{"), part(0, "c", "", "}")}, "f({})"},
		"the id comes late":      {[]callPart{part(0, "", "f", ""), part(0, "a", "", "{}")}, "f({})"},
		"the name in parts":      {[]callPart{part(0, "a", "calc", ""), part(0, "", "ulator", ""), part(0, "", "", "{}")}, "calculator({})"},
		"the name repeated":      {[]callPart{part(0, "a", "f", "{"), part(0, "a", "f", "}"), part(0, "", "g", " ")}, "f({} )"},
		"the name comes late":    {[]callPart{part(0, "a", "", ""), part(0, "a", "f", "{}")}, "f({})"},
		"indices of all kinds":   {[]callPart{part(1<<40, "a", "f", "1"), part(5, "b", "g", "2"), part(1<<40, "", "", "3")}, "f(13) g(2)"},
		"empty parts of nothing": {[]callPart{part(-1, "", "", ""), part(-1, "", "", "{}"), part(3, "", "", "")}, ""},
	} {
		b := newCalls(&Request{})
		for _, p := range c.parts {
			if err := b.add(p); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		list, err := b.list()
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		var got []string
		for _, c := range list {
			got = append(got, c.Name+"("+c.Arguments+")")
		}
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("%s: %s, want %s", name, s, c.want)
		}
	}
}

func TestNegativeIndex(t *testing.T) {
	b := newCalls(&Request{})
	for _, p := range []callPart{{Index: -7, Indexed: true, ID: "a", Name: "f"}, {Index: -7, Indexed: true, Arguments: "{}"}} {
		musttest.Do(t, b.add(p))
	}
	if list, err := b.list(); err != nil || len(list) != 1 || list[0].Arguments != "{}" {
		t.Errorf("%+v, %v", list, err)
	}
}

func TestBounds(t *testing.T) {
	b := newCalls(&Request{})
	for range mostCalls {
		musttest.Do(t, b.whole("", "f", ""))
	}
	if err := b.whole("", "f", ""); !errors.Is(err, errManyCalls) {
		t.Errorf("%v", err)
	}
	if err := b.add(part(0, "", "f", "")); !errors.Is(err, errManyCalls) {
		t.Errorf("%v", err)
	}
	n := newCalls(&Request{})
	musttest.Do(t, n.whole("a", "", "{}"))
	if _, err := n.list(); !errors.Is(err, errNameless) {
		t.Errorf("%v", err)
	}
}

// Ids are the model's where they can be, and otherwise made up; each is one of its own in
// the whole conversation.
func TestIDs(t *testing.T) {
	b := newCalls(&Request{Messages: []Message{{Calls: []Call{{ID: "taken"}}}}})
	for _, id := range []string{"mine", "taken", "mine", "", "with space", "line\n", "é", strings.Repeat("x", 129), strings.Repeat("x", 128), "functions.f:0"} {
		musttest.Do(t, b.whole(id, "f", ""))
	}
	list := musttest.Get(b.list())(t)
	kept := map[int]string{0: "mine", 8: strings.Repeat("x", 128), 9: "functions.f:0"}
	seen := map[string]bool{"taken": true}
	for i, c := range list {
		if want, ok := kept[i]; ok && c.ID != want || !ok && !strings.HasPrefix(c.ID, "call_") || seen[c.ID] {
			t.Errorf("%d: %q", i, c.ID)
		}
		seen[c.ID] = true
	}
}

func TestSentBack(t *testing.T) {
	for _, id := range []string{"", "a", "call_abc-1", "functions.f:0", strings.Repeat("x", 41), strings.Repeat("x", 500), "é", "a b"} {
		short, plainly := shortID(id), plainID(id)
		if len(short) > 40 || short == "" || len(plainly) > 64 || plain(plainly) != plainly {
			t.Errorf("%q: %q, %q", id, short, plainly)
		}
		if short != shortID(id) || plainly != plainID(id) {
			t.Errorf("%q differs from time to time", id)
		}
	}
	if shortID("call_1") != "call_1" || plainID("toolu_01-x") != "toolu_01-x" {
		t.Error("ids that need no change are changed")
	}
	for name, want := range map[string]string{"f": "f", "": "_", "no such/tool": "no_such_tool", "名": "_", strings.Repeat("n", 70): strings.Repeat("n", 64)} {
		if got := plainName(name); got != want {
			t.Errorf("%q: %q", name, got)
		}
	}
}

func TestObject(t *testing.T) {
	for arguments, want := range map[string]string{
		"": "{}", " \n": "{}", "{}": "{}", ` {"a":1} `: `{"a":1}`, `{"a":1`: `{"not_json":"{\"a\":1"}`,
		"[1]": `{"not_json":"[1]"}`, "12": `{"not_json":"12"}`, `"<b>"`: `{"not_json":"\"<b>\""}`, "{}{}": `{"not_json":"{}{}"}`,
		"{\"a\":\"\xff\"}": "{\"a\":\"\ufffd\"}",
	} {
		if got := string(object(arguments)); got != want {
			t.Errorf("%q: %s, want %s", arguments, got, want)
		}
	}
}

func FuzzObject(f *testing.F) {
	f.Add(`{"a":1}`)
	f.Fuzz(func(t *testing.T, arguments string) {
		var o map[string]any
		if raw := object(arguments); json.Unmarshal(raw, &o) != nil || o == nil {
			t.Fatalf("%q: %s", arguments, raw)
		}
	})
}
