package ordered_test

import (
	"encoding/json"
	"strings"
	"testing"

	"openskill/internal/musttest"
	"openskill/internal/ordered"
)

func TestOrderIsKept(t *testing.T) {
	for text, want := range map[string]string{
		`{"b":1,"a":{"z":[1.50,true,null,"<&>\u00e4"],"y":{}}}`: `{"b":1,"a":{"z":[1.50,true,null,"<&>ä"],"y":{}}}`,
		`{"a":1,"b":2,"a":3}`:   `{"a":3,"b":2}`,
		` [ { } , [ ] ] `:       `[{},[]]`,
		`123456789012345678901`: `123456789012345678901`,
		`"x"`:                   `"x"`,
	} {
		v := musttest.Get(ordered.Decode([]byte(text)))(t)
		if got, err := ordered.Encode(v); err != nil || string(got) != want {
			t.Errorf("%s: %s, %v; want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"", "{", `{"a"}`, "[1,]", "{} {}", "nul", strings.Repeat("[", 100) + strings.Repeat("]", 100)} {
		if v, err := ordered.Decode([]byte(text)); err == nil {
			t.Errorf("%s: %v, want an error", text, v)
		}
	}
	if _, err := ordered.DecodeObject([]byte("[]")); err == nil {
		t.Error("a list is no object")
	}
}

func TestObject(t *testing.T) {
	o := ordered.Of("a", 1, "b", "text", "c", ordered.Of("d", []any{"x"}))
	c := o.Clone()
	o.Set("a", 2)
	o.Delete("b")
	o.First("z", nil)
	o.Object("c").List("d")[0] = "changed"
	if b, err := json.Marshal(o); err != nil || string(b) != `{"z":null,"a":2,"c":{"d":["changed"]}}` {
		t.Errorf("%s, %v", b, err)
	}
	if b, err := json.Marshal(c); err != nil || string(b) != `{"a":1,"b":"text","c":{"d":["x"]}}` {
		t.Errorf("the copy changed too: %s, %v", b, err)
	}
	if !o.Has("z") || o.Has("b") || o.Text("a") != "" || o.Object("a") != nil || o.List("z") != nil {
		t.Error("what is there is not told right")
	}
}
