package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"openskill/internal/musttest"
)

// What Decode refuses beyond Object, and what it makes of the rest.
func TestDecode(t *testing.T) {
	for name, c := range map[string]struct{ src, want string }{ // want: in the error, "" for none
		"empty object":          {`{}`, ""},
		"white space":           {" \t\r\n{ \"a\" : [ 1 , 2 ] } \n", ""},
		"all kinds":             {`{"a": [true, false, null, -0, 1.5e+3, "x\u00e9\n\ud83d\ude00", {}, []]}`, ""},
		"names of another case": {`{"a": 1, "A": 2}`, ""},
		"equal names apart":     {`{"a": {"a": 1}, "b": {"a": 2}}`, ""},
		"equal names":           {`{"a": 1, "a": 1}`, "a: appears more than once at byte 9"},
		"equal names below":     {`{"x": [{"a": 1, "a": 1}]}`, "x[0].a: appears more than once"},
		"equal names, escaped":  {`{"role": 1, "\u0072ole": 2}`, "role: appears more than once"},
		"a number":              {"1", "expected a JSON object"},
		"two values":            {"{} {}", "expected nothing after"},
		"a NUL after":           {"{}\x00", "expected nothing after"},
		"NaN":                   {`{"a": NaN}`, "a: expected a JSON value"},
		"-Infinity":             {`{"a": -Infinity}`, "a: a number needs digits"},
		"a leading plus":        {`{"a": +1}`, "a: expected a JSON value"},
		"hexadecimal":           {`{"a": 0x10}`, "expected a comma or the end"},
		"half a pair":           {`{"a": "\ud800"}`, "a: half of a surrogate pair"},
		"the largest double":    {`{"a": 1.7976931348623157e308}`, ""},
		"beyond a double":       {`{"a": [1e309]}`, "a[0]: a number is beyond the range of a double at byte 7"},
		"a huge exponent":       {`{"a": 1e1000000000}`, "range of a double"},
		"a tiny exponent":       {`{"a": 1e-1000000000}`, "range of a double"},
		"an exponent over int":  {`{"a": 1e99999999999999999999}`, "range of a double"},
		"255 digits":            {`{"a": ` + strings.Repeat("9", 255) + `}`, ""},
		"257 digits":            {`{"a": ` + strings.Repeat("9", 257) + `}`, "more than 256 characters"},
		"depth 64":              {`{"a":` + strings.Repeat("[", 63) + "1" + strings.Repeat("]", 63) + "}", ""},
		"depth 65":              {`{"a":` + strings.Repeat("[", 64) + strings.Repeat("]", 64) + "}", "nested deeper than 64"},
		"depth 100,000":         {`{"a":` + strings.Repeat("[", 100_000), "nested deeper than 64"},
		"depth 100,000 of maps": {strings.Repeat(`{"a":`, 100_000), "nested deeper than 64"},
	} {
		t.Run(name, func(t *testing.T) {
			object, err := Decode([]byte(c.src), 64, nil)
			if c.want != "" {
				if e, ok := errors.AsType[*Error](err); !ok || !strings.Contains(e.Error(), c.want) || object != nil {
					t.Errorf("error %v, want %q in it", err, c.want)
				}
				return
			}
			musttest.Do(t, err)
			// cmp.Diff takes twice as long for every level of nested lists.
			if want := standard(t, []byte(c.src)); !reflect.DeepEqual(object, want) {
				t.Errorf("got %v, want %v", object, want)
			}
		})
	}
}

// standard is what encoding/json makes of the same text.
func standard(t *testing.T, src []byte) map[string]any {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(src))
	dec.UseNumber()
	var m map[string]any
	if err := dec.Decode(&m); err != nil {
		t.Fatalf("encoding/json refuses it: %v", err)
	}
	return m
}

func TestDecodeHandsOverTexts(t *testing.T) {
	got := map[string]string{}
	_, err := Decode([]byte(`{ "data" : { "b":1.50, "a": [ ] } , "x":{"data":2} }`), 10, func(key, value []byte) error {
		got[string(key)] = string(value)
		return nil
	})
	musttest.Do(t, err)
	if diff := cmp.Diff(map[string]string{"data": `{ "b":1.50, "a": [ ] }`, "x": `{"data":2}`}, got); diff != "" {
		t.Error(diff)
	}
}

// TestDecodedValuesAreBounded: the value of the largest text must not take much
// more than the 64 MiB that a run may cost the host beside its own memory.
func TestDecodedValuesAreBounded(t *testing.T) {
	const size = 16 << 20
	for name, item := range map[string]func(i int) string{
		"numbers":        func(int) string { return "0," },
		"empty lists":    func(int) string { return "[]," },
		"empty objects":  func(int) string { return "{}," },
		"small objects":  func(int) string { return `{"":0},` },
		"nested objects": func(int) string { return `{"":{"":{"":0}}},` },
		"short strings":  func(int) string { return `"a",` },
	} {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			b.WriteString(`{"a":[`)
			for i := 0; b.Len() < size; i++ {
				b.WriteString(item(i))
			}
			b.WriteString("0]}")
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			_, err := Decode(b.Bytes(), 64, nil)
			runtime.ReadMemStats(&after)
			if err == nil || !strings.Contains(err.Error(), "too many values") {
				t.Errorf("error %v", err)
			}
			if used := (after.TotalAlloc - before.TotalAlloc) >> 20; used > 64 {
				t.Errorf("%d MiB were allocated", used)
			} else {
				t.Logf("%d MiB were allocated", used)
			}
		})
	}
}

// FuzzDecode holds Decode against encoding/json, and against Object: what it accepts,
// Object accepts, and the other way round but for numbers, weight and depth.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{
		`{}`, `{"a": [1, 2.5e-3, "x\u00e9"], "b": {"c": null}}`, `{"success": true, "data": {}, "error": null}`,
		`{"a": 1, "a": 2}`, `{"a": NaN}`, `[1]`, `{"a": "\ud800"}`, `{"a": 1e400}`, strings.Repeat("[", 600),
		fmt.Sprintf(`{"a": %s}`, strings.Repeat("9", 300)),
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		members := 0
		object, err := Decode(src, MaxDepth, func(_, _ []byte) error { members++; return nil })
		scanned := Object(src, func(_, _ []byte) error { return nil })
		if err != nil {
			if object != nil {
				t.Fatal("a value with an error")
			}
			if scanned == nil && !strings.Contains(err.Error(), "a number ") && !strings.Contains(err.Error(), "too many values") {
				t.Fatalf("%v, and Object accepts it", err)
			}
			return
		}
		if scanned != nil {
			t.Fatalf("accepted, and Object refuses it: %v", scanned)
		}
		if want := standard(t, src); !reflect.DeepEqual(object, want) {
			t.Fatalf("got %v, want %v", object, want)
		}
		if members != len(object) {
			t.Fatalf("%d members of %d", members, len(object))
		}
	})
}
