package guest

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"
)

type inner struct {
	Lat float64 `json:"lat"`
	Lon float64 `json:"lon"`
}

type embedded struct {
	Shared string `json:"shared"`
	Name   string `json:"name"` // the outer one counts
}

type wide struct {
	embedded
	Name   string            `json:"name"`
	Small  int8              `json:"small,omitempty"`
	Byte   uint8             `json:"byte,omitempty"`
	Big    int64             `json:"big,omitempty"`
	Huge   uint64            `json:"huge,omitempty"`
	Half   float32           `json:"half,omitempty"`
	At     *inner            `json:"at"`
	Pair   [2]int            `json:"pair,omitzero"`
	Raw    json.RawMessage   `json:"raw,omitempty"`
	Any    any               `json:"any,omitempty"`
	Number json.Number       `json:"number,omitempty"`
	Bytes  []byte            `json:"bytes,omitempty"`
	Map    map[string][]int  `json:"map,omitempty"`
	When   time.Time         `json:"when,omitzero"`
	Addr   netip.Addr        `json:"addr,omitzero"`
	Words  map[string]string `json:"words,omitempty"`
	Plain  bool              `json:",omitempty"`
	Hidden string            `json:"-"`
}

// readInto reads an input as a call has it.
func readInto(text string, into any) error {
	_, _, input, err := readCall(strings.NewReader(`{"input": ` + text + `}`))
	if err != nil {
		return err
	}
	return decode(input, reflect.ValueOf(into).Elem(), "")
}

func TestDecode(t *testing.T) {
	t.Parallel()
	var got wide
	err := readInto(`{"shared": "s", "name": "n", "small": -128, "byte": 255, "big": 9223372036854775807, "huge": 18446744073709551615, "half": 1e3,
		"at": {"lat": 1, "lon": -0.5, "height": 3}, "pair": [1e2, -0], "raw": {"b": [1, null]}, "any": [9007199254740993, {"a": null}], "number": 1e400000,
		"bytes": "aGk=", "map": {"a": [1], "": []}, "when": "2026-01-02T03:04:05Z", "addr": "::1", "words": {}, "Plain": true, "Hidden": 7,  "unknown": 7}`, &got)
	var e *Error
	if !errors.As(err, &e) || e.Details["reason"] != "range" {
		t.Fatalf("a number beyond doubles: %v", err)
	}
	err = readInto(`{"shared": "s", "name": "n", "small": -128, "byte": 255, "big": 9223372036854775807, "huge": 18446744073709551615, "half": 1e3,
		"at": {"lat": 1, "lon": -0.5, "height": 3}, "pair": [1e2, -0], "raw": {"b": [1, null]}, "any": [9007199254740993, {"a": null}], "number": 1.50,
		"bytes": "aGk=", "map": {"a": [1], "": []}, "when": "2026-01-02T03:04:05Z", "addr": "::1", "words": {}, "Plain": true, "Hidden": 7,  "unknown": 7}`, &got)
	if err != nil {
		t.Fatal(err)
	}
	want := wide{
		embedded: embedded{Shared: "s"}, Name: "n", Small: -128, Byte: 255, Big: math.MaxInt64, Huge: math.MaxUint64, Half: 1000,
		At: &inner{1, -0.5}, Pair: [2]int{100, 0}, Raw: json.RawMessage(`{"b":[1,null]}`), Any: []any{json.Number("9007199254740993"), map[string]any{"a": nil}},
		Number: "1.50", Bytes: []byte("hi"), Map: map[string][]int{"a": {1}, "": {}}, When: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		Addr: netip.IPv6Loopback(), Words: map[string]string{}, Plain: true,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
}

func TestDecodeRefuses(t *testing.T) {
	t.Parallel()
	for input, want := range map[string]string{
		`{"name": "n"}`:        "missing shared: required",
		`{"shared": "s"}`:      "missing name: required",
		`{"name": 1, "at": 2}`: "type at: must be an object",
		`{"at": {"lat": 1}, "name": "n", "shared": "s"}`: "missing at.lon: required",
		`{"at": {"lat": "1"}}`:                           "type at.lat: must be a number",
		`{"small": 128}`:                                 "range small: must be an integer from -128 to 127",
		`{"byte": -1}`:                                   "range byte: must be an integer from 0 to 255",
		`{"big": 9223372036854775808}`:                   "range big: must be an integer from -9223372036854775808 to 9223372036854775807",
		`{"huge": 18446744073709551616}`:                 "range huge: must be an integer from 0 to 18446744073709551615",
		`{"huge": 1e300}`:                                "range huge: must be an integer from 0 to 18446744073709551615",
		`{"big": 0.5}`:                                   "type big: must be an integer",
		`{"big": null}`:                                  "type big: must be an integer",
		`{"half": 1e300}`:                                "range half: must be a number within the range of float32",
		`{"pair": [1]}`:                                  "length pair: must be a list of 2",
		`{"pair": [1, "2"]}`:                             "type pair[1]: must be an integer",
		`{"bytes": "%"}`:                                 "type bytes: must be bytes in base64",
		`{"map": {"b": [1], "a": [1, [2]]}}`:             "type map.a[1]: must be an integer",
		`{"when": "yesterday"}`:                          `value when: parsing time`,
		`{"addr": 1}`:                                    "type addr: must be a string",
		`{"addr": "x"}`:                                  "value addr: ParseAddr",
		`{"number": "1"}`:                                "type number: must be a number",
		`{"Plain": 0}`:                                   "type Plain: must be true or false",
		`{"words": {"` + strings.Repeat("é", 100) + `": []}}`: "type words." + strings.Repeat("é", 64) + ": must be a string",
	} {
		var e *Error
		if err := readInto(input, new(wide)); !errors.As(err, &e) || e.Code != InvalidArgument || !strings.HasPrefix(fmt.Sprint(e.Details["reason"], " ", e.Message), want) {
			t.Errorf("%s: %v, want %s", input, err, want)
		} else if field := e.Details["field"]; !strings.HasPrefix(e.Message, fmt.Sprint(field)+": ") {
			t.Errorf("%s: the field is %v", input, field)
		}
	}
	// What the skill itself is wrong about is not the caller's mistake.
	for name, into := range map[string]any{
		"a channel":       new(struct{ C chan int }),
		"an interface":    new(struct{ C fmt.Stringer }),
		"keys of numbers": new(struct{ C map[int]string }),
	} {
		var e *Error
		if err := readInto(`{"C": {}}`, into); err == nil || errors.As(err, &e) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestDecodeOfAny(t *testing.T) {
	t.Parallel()
	var in struct {
		Kind string `json:"kind"`
		Of   any    `json:"of"`
	}
	if err := readInto(`{"kind": "point", "of": {"lat": 1}}`, &in); err != nil {
		t.Fatal(err)
	}
	var p inner
	var e *Error
	if err := Decode(in.Of, "of", &p); !errors.As(err, &e) || e.Message != "of.lon: required" || p.Lat != 1 {
		t.Errorf("%v, %+v", err, p)
	}
	if err := Decode(in.Of, "of", p); err == nil || errors.As(err, &e) && e.Code == InvalidArgument && e.Message != "of.lon: required" {
		t.Errorf("no pointer: %v", err)
	}
}

// What readCall takes, encoding/json takes with the same values.
func FuzzReadCall(f *testing.F) {
	for _, s := range []string{
		`{"input": {}}`, `{"input": {"a": [1, 2.5e-3, "\u00e9\ud83d\ude00", null, true]}, "skill_id": "x", "trace_id": 1}`, `{"input": {"a": 1, "a": 2}}`,
		`{"input": {"\ud800": 1}}`, `[[[[`, `{"a":`, "\"\\", `{"input": {"a": 1e999}}`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		_, _, input, err := readCall(strings.NewReader(s))
		var e *Error
		if err != nil {
			if !errors.As(err, &e) || e.Code != InvalidArgument {
				t.Fatalf("%v", err)
			}
			return
		}
		var want map[string]any
		dec := json.NewDecoder(strings.NewReader(s))
		dec.UseNumber()
		if err := dec.Decode(&want); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(want["input"], any(input)) {
			t.Fatalf("got %v, want %v", input, want["input"])
		}
	})
}
