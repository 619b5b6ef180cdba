package dispatch

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"openskill/host/registry"
	"openskill/host/runner"
	"openskill/sdk/skill"
)

func TestParseObject(t *testing.T) {
	for name, c := range map[string]struct{ src, want string }{ // want: in the error, "" for none
		"empty object":            {`{}`, ""},
		"white space":             {" \t\r\n{ \"a\" : [ 1 , 2 ] } \n", ""},
		"all kinds":               {`{"a": [true, false, null, -0, 1.5e+3, "x\u00e9\n\ud83d\ude00", {}]}`, ""},
		"names of another case":   {`{"a": 1, "A": 2}`, ""},
		"equal names apart":       {`{"a": {"a": 1}, "b": {"a": 2}}`, ""},
		"equal names":             {`{"a": 1, "a": 1}`, "twice in one object at byte 9"},
		"equal names below":       {`{"x": [{"a": 1, "a": 1}]}`, "twice"},
		"equal names, escaped":    {`{"role": 1, "\u0072ole": 2}`, "twice"},
		"equal names, surrogates": {`{"\ud800": 1, "\ud801": 2}`, "twice"}, // both become U+FFFD
		"nothing":                 {"", "nothing"},
		"spaces":                  {"  ", "nothing"},
		"a number":                {"1", "not an object"},
		"a string":                {`"x"`, "not an object"},
		"two values":              {"{} {}", "more text"},
		"a comma after":           {"{},", "more text"},
		"a NUL after":             {"{}\x00", "more text"},
		"a byte order mark":       {"\ufeff{}", "not JSON"},
		"a comma at the end":      {`{"a": 1,}`, "no name"},
		"a comma in a list":       {`{"a": [1,]}`, "not JSON"},
		"no comma":                {`{"a": 1 "b": 2}`, "neither"},
		"no colon":                {`{"a" 1}`, "colon"},
		"no quotes":               {`{a: 1}`, "no name"},
		"single quotes":           {`{'a': 1}`, "no name"},
		"a comment":               {`{"a": 1 /* x */}`, "neither"},
		"cut":                     {`{"a": [1, {"b"`, "colon"},
		"cut in a string":         {`{"a": "x`, "without an end"},
		"cut after a backslash":   {`{"a": "x\`, "without an end"},
		"cut in a word":           {`{"a": tru`, "not JSON"},
		"cut before a value":      {`{"a":`, "unexpected end"},
		"NaN":                     {`{"a": NaN}`, "not JSON"},
		"Infinity":                {`{"a": Infinity}`, "not JSON"},
		"-Infinity":               {`{"a": -Infinity}`, "a number that is not JSON"},
		"a leading zero":          {`{"a": 01}`, "a number that is not JSON"},
		"a leading plus":          {`{"a": +1}`, "not JSON"},
		"a bare point":            {`{"a": 1.}`, "a number that is not JSON"},
		"a bare exponent":         {`{"a": 1e}`, "a number that is not JSON"},
		"hexadecimal":             {`{"a": 0x10}`, "neither"},
		"the largest double":      {`{"a": 1.7976931348623157e308}`, ""},
		"beyond a double":         {`{"a": 1e309}`, "range of a double"},
		"a huge exponent":         {`{"a": 1e1000000000}`, "range of a double"},
		"a tiny exponent":         {`{"a": 1e-1000000000}`, "range of a double"},
		"an exponent over int":    {`{"a": 1e99999999999999999999}`, "range of a double"},
		"255 digits":              {`{"a": ` + strings.Repeat("9", 255) + `}`, ""},
		"257 digits":              {`{"a": ` + strings.Repeat("9", 257) + `}`, "more than 256 characters"},
		"a raw line end":          {"{\"a\": \"x\ny\"}", "control character"},
		"a wrong escape":          {`{"a": "\x"}`, "wrong escape"},
		"a short escape":          {`{"a": "\u12"}`, "wrong escape"},
		"not UTF-8":               {"{\"a\": \"\xff\"}", "not UTF-8"},
		"not UTF-8, a name":       {"{\"\xc3\x28\": 1}", "not UTF-8"},
		"depth 64":                {`{"a":` + strings.Repeat("[", 63) + strings.Repeat("]", 63) + "}", ""},
		"depth 65":                {`{"a":` + strings.Repeat("[", 64) + strings.Repeat("]", 64) + "}", "deeper than 64"},
		"depth 100,000":           {`{"a":` + strings.Repeat("[", 100_000), "deeper than 64"},
		"depth 100,000 of maps":   {strings.Repeat(`{"a":`, 100_000), "deeper than 64"},
		"depth without an object": {strings.Repeat("[", 100_000), "deeper than 64"},
	} {
		t.Run(name, func(t *testing.T) {
			_, object, err := parseObject([]byte(c.src), 64)
			if c.want != "" {
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("error %v, want %q in it", err, c.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
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

func TestMembersKeepTheirText(t *testing.T) {
	members, _, err := parseObject([]byte(`{ "data" : { "b":1.50, "a": [ ] } , "x":{"data":2} }`), 10)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(members["data"].raw); got != `{ "b":1.50, "a": [ ] }` {
		t.Errorf("got %q", got)
	}
	if len(members) != 2 {
		t.Errorf("%d members", len(members))
	}
}

// TestParsedValuesAreBounded: the value of the largest text must not take much
// more than the 64 MiB that a run may cost the host beside its own memory.
func TestParsedValuesAreBounded(t *testing.T) {
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
			_, _, err := parseObject(b.Bytes(), 64)
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

func FuzzParseObject(f *testing.F) {
	for _, s := range []string{
		`{}`, `{"a": [1, 2.5e-3, "x\u00e9"], "b": {"c": null}}`, `{"success": true, "data": {}, "error": null}`,
		`{"a": 1, "a": 2}`, `{"a": NaN}`, `[1]`, `{"a": "\ud800"}`, `{"a": 1e400}`, strings.Repeat("[", 600),
		fmt.Sprintf(`{"a": %s}`, strings.Repeat("9", 300)),
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		members, object, err := parseObject(src, maxOutputDepth)
		if err != nil {
			if object != nil || members != nil {
				t.Fatal("a value with an error")
			}
			return
		}
		if want := standard(t, src); !reflect.DeepEqual(object, want) {
			t.Fatalf("got %v, want %v", object, want)
		}
		for name, m := range members {
			if !json.Valid(m.raw) || object[name] == nil && m.value != nil {
				t.Fatalf("member %q is %q", name, m.raw)
			}
		}
		if len(members) != len(object) {
			t.Fatalf("%d members of %d", len(members), len(object))
		}
	})
}

// FuzzGuest holds the door to its word whatever a guest prints: exactly one of data
// and error, only codes that a guest may say, and text that is fit to be shown.
func FuzzGuest(f *testing.F) {
	for _, s := range []string{
		`{"mean": 1}`, `{"success": true, "data": {"mean": 1}, "error": null}`, `{"success": false, "error": {"code": "TIMEOUT", "message": "m"}}`,
		`{"error": {"code": 404, "details": {"a": ["\u001b[0m", {"b": 1}]}}}`, `{"success": true, "data": []}`, `{"mean": "x"}`, `null`,
	} {
		f.Add(uint32(0), []byte(s), []byte("warning\n"))
		f.Add(uint32(1), []byte(s), []byte("Traceback /srv/x/y.py \x1b[31m"))
	}
	d, s := guestDoor(f)
	f.Fuzz(func(t *testing.T, exit uint32, stdout, stderr []byte) {
		c := &call{skill: s, reply: &skill.Reply{ExitCode: exit, Stdout: stdout, Stderr: stderr}}
		var err error
		c.outcome, err = d.read(s, c.reply, skill.Limits{Output: 1 << 20})
		r := d.result(c, err)
		if r.Success != (r.Error == nil) || r.Success != (r.Data != nil) {
			t.Fatalf("success %v, data %s, error %v", r.Success, r.Data, r.Error)
		}
		b, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		if r.Success {
			if _, _, err := parseObject(r.Data, maxOutputDepth); err != nil || exit != 0 {
				t.Fatalf("exit %d, data %q: %v", exit, r.Data, err)
			}
			return
		}
		switch code := r.Error.Code; {
		case mayReport[code], code == skill.GuestExit && exit != 0, code == skill.InvalidOutput, code == skill.OutputLimit:
		default:
			t.Fatalf("code %s", code)
		}
		if r.Error.Status != r.Error.Code.Status() || r.Error.Message == "" || len(r.Error.Message) > 512 {
			t.Fatalf("error %s", b)
		}
		var e any
		if err := json.Unmarshal(b, &e); err != nil {
			t.Fatal(err)
		}
		if text := unfit(e); text != "" {
			t.Fatalf("the answer holds %q: %s", text, b)
		}
	})
}

// unfit finds text that cleaning would change.
func unfit(v any) string {
	switch v := v.(type) {
	case string:
		if s := strings.TrimSpace(v); skill.CleanText(s, len(s)+8) != s {
			return v
		}
	case map[string]any:
		for key, e := range v {
			if bad := unfit(key) + unfit(e); bad != "" {
				return bad
			}
		}
	case []any:
		for _, e := range v {
			if bad := unfit(e); bad != "" {
				return bad
			}
		}
	}
	return ""
}

// guestDoor is a door and a skill to read outputs with.
func guestDoor(tb testing.TB) (*Dispatcher, *registry.Skill) {
	tb.Helper()
	dir := tb.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "skill.yaml"), []byte(manifest), 0o600); err != nil {
		tb.Fatal(err)
	}
	one := skill.Limits{Timeout: 1, Memory: 1, Fuel: 1, Output: 1, Scratch: 1}
	reg, err := registry.Open(registry.Options{Roots: []registry.Root{{Path: dir, Trust: skill.Trusted}}, Defaults: one, Caps: one})
	if err != nil {
		tb.Fatal(err)
	}
	s, err := reg.Get("stats", "")
	if err != nil {
		tb.Fatal(err)
	}
	set, err := runner.New()
	if err != nil {
		tb.Fatal(err)
	}
	d, err := New(Options{Skills: registry.Shared{Registry: reg}, Runners: set})
	if err != nil {
		tb.Fatal(err)
	}
	return d, s
}
