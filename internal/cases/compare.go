package cases

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"openskill/sdk/skill"
)

// maxDifferences is how many differences of one case are told.
const maxDifferences = 20

// Difference is one place where an answer is not what its case wants.
type Difference struct {
	At   string `json:"at"` // where: data or error, with a JSON pointer behind it
	Want string `json:"expected"`
	Got  string `json:"got"`
}

const nothing = "nothing"

// Compare gives the differences of an answer; nil: it is what the case wants.
func (c *Case) Compare(got *skill.Result) []Difference {
	var d differences
	switch {
	case c.Data != nil && !got.Success:
		d.add("", "data "+shown(decoded(c.Data)), whole(got))
	case c.Data != nil:
		d.compare("data", decoded(c.Data), decoded(got.Data))
	case got.Success:
		d.add("", "error "+string(c.Error.Code), whole(got))
	default:
		d.error(c.Error, got.Error)
	}
	return d.list
}

func (d *differences) error(want *Error, got *skill.ResultError) {
	if want.Code != got.Code {
		d.add("error/code", string(want.Code), coded(got))
		return
	}
	if want.Message != "" && want.Message != got.Message {
		d.differ("error/message", want.Message, got.Message)
	}
	if want.Details != nil {
		b, err := json.Marshal(got.Details)
		if err != nil || got.Details == nil {
			b = nil
		}
		d.compare("error/details", decoded(want.Details), decoded(b))
	}
}

// decoded reads JSON with its numbers as they are written; absent where there is none.
func decoded(b []byte) any {
	if len(b) == 0 {
		return absent{}
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil {
		return string(b)
	}
	return v
}

// absent is a value that is not there.
type absent struct{}

type differences struct{ list []Difference }

func (d *differences) add(at, want, got string) {
	if len(d.list) < maxDifferences {
		d.list = append(d.list, Difference{at, want, got})
	}
}

func (d *differences) compare(at string, want, got any) {
	switch w := want.(type) {
	case map[string]any:
		if g, ok := got.(map[string]any); ok {
			d.objects(at, w, g)
			return
		}
	case []any:
		if g, ok := got.([]any); ok {
			for i := range max(len(w), len(g)) {
				d.compare(at+"/"+strconv.Itoa(i), item(w, i), item(g, i))
			}
			return
		}
	case json.Number:
		if g, ok := got.(json.Number); ok && sameNumber(w, g) {
			return
		}
	default:
		if want == got { // strings, booleans, null and absent: all can be compared
			return
		}
	}
	d.differ(at, want, got)
}

// differ adds two values, each from a little before where they begin to differ: the end
// of a long text must not be cut off on both sides.
func (d *differences) differ(at string, want, got any) {
	w, g := text(want), text(got)
	same := 0
	for same < min(len(w), len(g)) && w[same] == g[same] {
		same++
	}
	const before = 40
	if same > 2*before {
		from := same - before
		for from < same && !utf8.RuneStart(w[from]) {
			from++
		}
		w, g = "…"+w[from:], "…"+g[from:]
	}
	d.add(at, skill.CleanText(w, maxShown), skill.CleanText(g, maxShown))
}

func item(list []any, i int) any {
	if i < len(list) {
		return list[i]
	}
	return absent{}
}

var escape = strings.NewReplacer("~", "~0", "/", "~1")

func (d *differences) objects(at string, want, got map[string]any) {
	all := maps.Clone(want)
	maps.Copy(all, got)
	for _, key := range slices.Sorted(maps.Keys(all)) {
		w, inWant := want[key]
		g, inGot := got[key]
		if !inWant {
			w = absent{}
		}
		if !inGot {
			g = absent{}
		}
		d.compare(at+"/"+escape.Replace(key), w, g)
	}
}

// sameNumber reports whether two numbers are written alike, or are the same double with
// a point or exponent in one of them: 1 and 1.0 are the same, and 2^53 and 2^53+1 are not.
func sameNumber(a, b json.Number) bool {
	if a == b {
		return true
	}
	if !strings.ContainsAny(string(a)+string(b), ".eE") {
		return string(a) == "-0" && b == "0" || string(b) == "-0" && a == "0"
	}
	x, errA := a.Float64()
	y, errB := b.Float64()
	return errA == nil && errB == nil && x == y
}

// maxShown is how much of a value is shown, in bytes.
const maxShown = 400

// shown is a value for a person: JSON in one line, cut where it is long.
func shown(v any) string { return skill.CleanText(text(v), maxShown) }

func text(v any) string {
	if _, none := v.(absent); none {
		return nothing
	}
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Sprint(v)
	}
	return strings.TrimSuffix(b.String(), "\n")
}
