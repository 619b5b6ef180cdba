package console

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"openskill/sdk/skill"
)

// visible makes text of strangers fit to be shown: what cannot be seen, or changes how other
// text is shown, is written out as ‹U+202E›, and what is longer than most bytes is cut, with
// how much that was. Ends of lines and tabs stay.
func visible(s string, most int) string { return visibleHead(s, len(s), most) }

// visibleHead is visible for a text of size bytes of which only the beginning is there.
func visibleHead(s string, size, most int) string {
	var b strings.Builder
	for i, r := range s {
		if b.Len() >= most {
			s = s[:i]
			break
		}
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD"):
			fmt.Fprintf(&b, "‹%02X›", s[i])
		case r == '\n' || r == '\t':
			b.WriteRune(r)
		case hidden(r):
			fmt.Fprintf(&b, "‹U+%04X›", r)
		default:
			b.WriteRune(r)
		}
	}
	if size > len(s) {
		fmt.Fprintf(&b, " … (%d more bytes)", size-len(s))
	}
	return b.String()
}

// hidden reports whether a character shows nothing, or not what it is.
func hidden(r rune) bool {
	if r >= ' ' && r < 0x7f { // most of a long text, which is looked up nowhere
		return false
	}
	return skill.Hidden(r) || !unicode.IsGraphic(r) || unicode.IsSpace(r) && r != 0x00a0 && r != 0x3000
}

// oneLine is visible for text that has no lines.
func oneLine(s string, most int) string {
	return visible(strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == '\n' || r == '\t' || r == '\r' || r == ' ' }), " "), most)
}

// mostShown is how much of a JSON value a page shows, in bytes.
const mostShown = 64 << 10

// pretty is JSON as people read it. What is no JSON, or much longer than what is shown, is
// shown as it is.
func pretty(raw json.RawMessage) string {
	if len(raw) == 0 {
		return ""
	}
	var b bytes.Buffer
	if len(raw) <= 4*mostShown && json.Indent(&b, raw, "", "  ") == nil {
		return visible(b.String(), mostShown)
	}
	return visibleHead(string(raw[:min(len(raw), mostShown+utf8.UTFMax)]), len(raw), mostShown)
}

// count is a number with its thousands apart.
func count[T int | int64 | uint64](n T) string {
	s := strconv.FormatInt(int64(n), 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + " " + s[i:]
	}
	return s
}

// counted is how many there are of what one is called so: 1 script, 2 scripts.
func counted[T int | int64 | uint64](n T, one string) string {
	if n != 1 {
		one += "s"
	}
	return count(n) + " " + one
}

// amount is a large number, short.
func amount(n uint64) string {
	switch {
	case n >= 1e12:
		return strconv.FormatFloat(float64(n)/1e12, 'f', 1, 64) + " T"
	case n >= 1e9:
		return strconv.FormatFloat(float64(n)/1e9, 'f', 1, 64) + " G"
	case n >= 1e6:
		return strconv.FormatFloat(float64(n)/1e6, 'f', 1, 64) + " M"
	case n >= 1e4:
		return strconv.FormatFloat(float64(n)/1e3, 'f', 1, 64) + " k"
	}
	return strconv.FormatUint(n, 10)
}

// size is a number of bytes.
func size[T int64 | uint64](n T) string {
	f := float64(n)
	switch {
	case f >= 1<<30:
		return strconv.FormatFloat(f/(1<<30), 'f', 1, 64) + " GiB"
	case f >= 1<<20:
		return strconv.FormatFloat(f/(1<<20), 'f', 1, 64) + " MiB"
	case f >= 1<<10:
		return strconv.FormatFloat(f/(1<<10), 'f', 1, 64) + " KiB"
	}
	return strconv.FormatFloat(f, 'f', 0, 64) + " B"
}

// length is a duration, short.
func length(d time.Duration) string {
	switch {
	case d == 0:
		return "–"
	case d < time.Millisecond:
		return strconv.FormatFloat(float64(d)/1e6, 'f', 2, 64) + " ms"
	case d < 10*time.Millisecond:
		return strconv.FormatFloat(float64(d)/1e6, 'f', 1, 64) + " ms"
	case d < time.Second:
		return strconv.FormatInt(d.Milliseconds(), 10) + " ms"
	}
	return strconv.FormatFloat(d.Seconds(), 'f', 2, 64) + " s"
}

// moment is a time as pages show it.
func moment(t time.Time) string {
	if t.IsZero() {
		return "–"
	}
	return t.UTC().Format("2006-01-02 15:04:05") + " UTC"
}

// short is the beginning of a digest or id.
func short(s string) string {
	s = strings.TrimPrefix(s, "sha256:")
	if len(s) > 12 {
		s = s[:12]
	}
	return visible(s, 40)
}
