package strictjson

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"openskill/internal/musttest"
)

func TestObjectHandsOverMembers(t *testing.T) {
	got := map[string]string{}
	err := Object([]byte(" { \"input\" : {\"a\": [1, 2]} ,\n\"\\u0069d\": -1.5e+3, \"o\":{}, \"l\":[] } "), func(k, v []byte) error {
		got[string(k)] = string(v)
		return nil
	})
	musttest.Do(t, err)
	want := map[string]string{"input": `{"a": [1, 2]}`, "id": "-1.5e+3", "o": "{}", "l": "[]"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestObjectReturnsTheErrorOfMember(t *testing.T) {
	stop := errors.New("stop")
	n := 0
	err := Object([]byte(`{"a":1,"b":2}`), func(_, _ []byte) error { n++; return stop })
	if !errors.Is(err, stop) || n != 1 {
		t.Errorf("error %v after %d members, want stop after 1", err, n)
	}
}

func TestObjectRefuses(t *testing.T) {
	wide := "{"
	for i := range 40 {
		wide += fmt.Sprintf("\"k%d\":%d,", i, i)
	}
	for _, tc := range []struct{ name, text, want string }{
		{"nothing", ``, "expected a JSON object, and there is nothing at byte 0"},
		{"space", " \n", "expected a JSON object, and there is nothing at byte 2"},
		{"array", `[]`, "expected a JSON object at byte 0"},
		{"byte order mark", "\xef\xbb\xbf{}", "expected a JSON object at byte 0"},
		{"two texts", `{} {}`, "expected nothing after the JSON object at byte 3"},
		{"cut", `{"a": {"b": [1, 2`, "a.b: expected a comma or the end of the array at byte 17"},
		{"trailing comma", `{"a":1,}`, "expected a key in double quotes at byte 7"},
		{"trailing comma in an array", `{"a":[1,]}`, "a[1]: expected a JSON value at byte 8"},
		{"bare key", `{a:1}`, "expected a key in double quotes at byte 1"},
		{"no colon", `{"a" 1}`, "expected a colon after a key at byte 5"},
		{"NaN", `{"a":NaN}`, "a: expected a JSON value at byte 5"},
		{"half a word", `{"a":tru}`, "a: expected a JSON value at byte 5"},
		{"leading zero", `{"a":01}`, "expected a comma or the end of the object at byte 6"},
		{"bare minus", `{"a":-}`, "a: a number needs digits at byte 6"},
		{"bare point", `{"a":1.}`, "a: a number needs digits after its point at byte 7"},
		{"bare exponent", `{"a":1e+}`, "a: a number needs digits in its exponent at byte 8"},
		{"same key", `{"a":1,"b":2,"a":3}`, "a: appears more than once at byte 13"},
		{"same key, spelled with an escape", `{"a":1,"\u0061":3}`, "a: appears more than once at byte 7"},
		{"same key deep down", `{"in":{"rows":[0,{"x":1,"x":2}]}}`, "in.rows[1].x: appears more than once at byte 24"},
		{"same key among many", wide + `"k20":1}`, "k20: appears more than once"},
		{"newline in a string", "{\"a\":\"\n\"}", "a: a control character in a string must be escaped at byte 6"},
		{"bad UTF-8", "{\"a\":\"\xff\"}", "a: a string is not valid UTF-8 at byte 6"},
		{"bad UTF-8 in a key", "{\"\xc0\x80\":1}", "a string is not valid UTF-8 at byte 2"},
		{"half a pair", `{"a":"\ud800"}`, "a: half of a surrogate pair in a string at byte 6"},
		{"a pair the wrong way round", `{"a":"\udc00\ud800"}`, "a: half of a surrogate pair"},
		{"two second halves", `{"a":"\udc00\udc00"}`, "a: half of a surrogate pair"},
		{"two first halves", `{"a":"\ud800\ud800"}`, "a: half of a surrogate pair"},
		{"half a pair, then another character", `{"a":"\ud800\ue000"}`, "a: half of a surrogate pair"},
		{"half a pair, then an escape", `{"a":"\ud800\ndc00"}`, "a: half of a surrogate pair"},
		{"half a pair, then u", `{"a":"\ud800/udc00"}`, "a: half of a surrogate pair"},
		{"half a pair, then text", `{"a":"\ud800xxdc00"}`, "a: half of a surrogate pair"},
		{"short hex", `{"a":"\u12"}`, `a: \u needs four hex digits at byte 6`},
		{"unknown escape", `{"a":"\x"}`, "a: an unknown escape in a string at byte 6"},
		{"endless string", `{"a":"b`, "a: a string does not end at byte 7"},
		{"endless escape", `{"a":"\`, "a: a string does not end at byte 6"},
		{"too deep", strings.Repeat(`{"a":`, MaxDepth+1) + "1" + strings.Repeat("}", MaxDepth+1), "nested deeper than 256"},
		{"much too deep", `{"a":` + strings.Repeat("[", 100_000), "nested deeper than 256"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := Object([]byte(tc.text), nil)
			var e *Error
			if !errors.As(err, &e) {
				t.Fatalf("Object = %v, want an *Error", err)
			}
			if !strings.Contains(e.Error(), tc.want) {
				t.Errorf("error %.300q\n want %q", e.Error(), tc.want)
			}
			if len(e.Path) > 1000 {
				t.Errorf("the path has %d bytes", len(e.Path))
			}
		})
	}
}

func TestObjectAcceptsTheDeepestAndTheWidest(t *testing.T) {
	deep := strings.Repeat(`{"a":`, MaxDepth) + "1" + strings.Repeat("}", MaxDepth)
	if err := Object([]byte(deep), nil); err != nil {
		t.Error(err)
	}
	var wide strings.Builder
	wide.WriteString("{")
	for i := range 50_000 {
		fmt.Fprintf(&wide, "\"k%d\":{\"k%d\":1},", i, i)
	}
	wide.WriteString(`"end":null}`)
	if err := Object([]byte(wide.String()), nil); err != nil {
		t.Error(err)
	}
}

// FuzzObject holds the scanner against encoding/json: what it accepts, the
// standard library accepts too and reads as the same members; what it refuses
// is either refused there or falls under one of the stricter rules.
func FuzzObject(f *testing.F) {
	for _, s := range []string{
		`{}`, `{"input":{"a":[1,-0.5e3,true,false,null,"\u00e9\ud83d\ude00"]},"version":"1"}`, `{"a":1,"a":2}`, `{"a":01}`, `[1]`,
		"{\"a\":\"\xff\"}", `{"a":"\ud800"}`, ` {"a" : [ ] } `, `{"a":{"b":{"b":1}}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		got := map[string]string{}
		err := Object(b, func(k, v []byte) error { got[string(k)] = string(v); return nil })
		var raw map[string]json.RawMessage
		stdErr := json.Unmarshal(b, &raw)
		if err == nil {
			if stdErr != nil {
				t.Fatalf("accepted %q, which encoding/json refuses: %v", b, stdErr)
			}
			want := map[string]string{}
			for k, v := range raw {
				want[k] = string(v)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("members of %q differ:\n%s", b, diff)
			}
			return
		}
		if stdErr == nil && raw != nil {
			stricter := false
			for _, rule := range []string{"more than once", "UTF-8", "surrogate", "nested deeper"} {
				stricter = stricter || strings.Contains(err.Error(), rule)
			}
			if !stricter {
				t.Fatalf("refused %q, which encoding/json accepts: %v", b, err)
			}
		}
	})
}
