package safeyaml

import (
	"reflect"
	"testing"

	"openskill/internal/ordered"
)

// TestFormat: what is written is read back as the same JSON, whatever its strings look like.
func TestFormat(t *testing.T) {
	for text, want := range map[string]string{
		`{"id":"shout","b":[1,{"c":null}],"a":{}}`:                               "id: shout\nb:\n  - 1\n  - c: null\na: {}\n",
		`{"v":"1.0","t":"true","n":"null","e":""}`:                               "v: \"1.0\"\nt: \"true\"\nn: \"null\"\ne: \"\"\n",
		`["a\nb","\ud83d\ude00\/","# no comment","a: b","&x","*x","!x","- x"]`:   "",
		`["\u0000\u2028\u0085\ufeff","2026-11-28","0x1f","1_000","~","on","<<"]`: "",
		`{"":1,"a b":1e3,"x":-0.5,"<<":{"a":1}}`:                                 "",
		`"x"`:                                                                    "x\n",
	} {
		b, err := Format([]byte(text))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if want != "" && string(b) != want {
			t.Errorf("%s:\n%s\nexpected\n%s", text, b, want)
		}
		back, problems := Parse(b)
		if len(problems) > 0 {
			t.Logf("%s is refused: %v", text, problems)
			continue
		}
		again, problems := JSON(back)
		is, _ := ordered.Decode(again)
		was, _ := ordered.Decode([]byte(text))
		if len(problems) > 0 || !reflect.DeepEqual(is, was) {
			t.Errorf("%s was read back as %s: %v", text, again, problems)
		}
	}
	if _, err := Format([]byte(`{"a":`)); err == nil {
		t.Error("text that is no JSON was formatted")
	}
}
