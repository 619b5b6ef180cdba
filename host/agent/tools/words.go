package tools

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"openskill/sdk/skill"
)

// What others wrote is shown so that nothing in it hides, and nothing in it is a mark: of
// ours, around results, or of those in which servers of models frame what is said.

// writer takes words of others, as far as there is room. Its text is always valid UTF-8.
type writer struct {
	b    []byte
	most int  // bytes of b
	full bool // something had no room; nothing is written any more
}

// put writes text that is ours, or was made fit to be shown, whole or not at all.
func (w *writer) put(s string) bool {
	if w.full || len(w.b)+len(s) > w.most {
		w.full = true
		return false
	}
	w.b = append(w.b, s...)
	return true
}

// text writes words of others. What cannot be seen is shown as its number, \u{202e}; so
// are those signs with which a mark would begin. quoted is for text within a string of
// JSON, which stays that string: \u202e. It gives how many bytes of s had room.
func (w *writer) text(s string, quoted bool) int {
	var before rune // what was written last as it is
	for i := 0; i < len(s); {
		if j := i + run(s[i:]); j > i {
			if room := w.most - len(w.b); !w.full && j-i > room {
				for room > 0 && !utf8.RuneStart(s[i+room]) {
					room--
				}
				w.b = append(w.b, s[i:i+room]...)
				w.full = true
				return i + room
			}
			if !w.put(s[i:j]) {
				return i
			}
			before, _ = utf8.DecodeLastRuneInString(s[i:j])
			i = j
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		var shown string
		switch {
		case quoted && (r == '"' || r == '\\'):
			shown = `\` + string(r)
		case quoted && r == '\n':
			shown = `\n`
		case quoted && r == '\t':
			shown = `\t`
		case r == '\r' && strings.HasPrefix(s[i:], "\r\n") && !quoted: // one end of a line
			i += n
			continue
		case r == '\n', r == '\t', r == '"', r == '\\':
			shown = string(r)
		case opening(r) && opens(s[i+n:]), hidden(r) && !skill.Belongs(before, r, s[i+n:]):
			if !w.put(escape(r, quoted)) {
				return i
			}
			before, i = 0, i+n
			continue
		default: // U+FFFD for what is no UTF-8
			shown = string(r)
		}
		if !w.put(shown) {
			return i
		}
		before, i = r, i+n
	}
	return len(s)
}

// run is how many bytes s begins with that stand for themselves everywhere.
func run(s string) (n int) {
	for n < len(s) {
		if simple(s[n]) {
			n++
			continue
		}
		r, size := utf8.DecodeRuneInString(s[n:])
		if r < 0x4e00 || r > 0x9fff { // most of Chinese
			break
		}
		n += size
	}
	return n
}

// simple reports whether a byte stands for itself everywhere.
func simple(c byte) bool { return c >= 0x20 && c < 0x7f && c != '<' && c != '"' && c != '\\' }

func escape(r rune, quoted bool) string {
	switch {
	case !quoted:
		return fmt.Sprintf(`\u{%x}`, r)
	case r > 0xffff:
		return fmt.Sprintf(`\u%04x\u%04x`, 0xd800+(r-0x10000)>>10, 0xdc00+(r-0x10000)&0x3ff)
	}
	return fmt.Sprintf(`\u%04x`, r)
}

// hidden reports whether a character shows nothing, changes how others are shown, or is
// none that this program knows.
func hidden(r rune) bool {
	return !unicode.IsGraphic(r) || skill.Hidden(r)
}

// opening reports whether a character is, or looks like, the sign < with which marks begin.
func opening(r rune) bool {
	switch r {
	case '<', 0xff1c, 0xfe64, 0x2039, 0x2329, 0x3008, 0x27e8, 0x276e:
		return true
	}
	return false
}

// marks are what stands behind the sign < in marks: ours, those of calls and answers in
// the templates of open models, and those between which such templates put who speaks.
var marks = []string{"tool", "function", "|", "s>", "<sys>", "start_of_turn", "end_of_turn", "system>", "user>", "assistant>"}

// opens reports whether s, behind the sign <, goes on as a mark, however it is spelt.
func opens(s string) bool {
	var seen [16]byte
	n := 0
	for i, r := range s {
		if n == 0 && i < 16 && (unicode.IsSpace(r) || r == '/' || r == '\\' || r == '／') {
			continue
		}
		if r >= 0xff01 && r <= 0xff5e { // of full width
			r -= 0xfee0
		}
		if r >= 'A' && r <= 'Z' {
			r += 'a' - 'A'
		}
		if r >= 0x80 || n == len(seen) {
			break
		}
		seen[n] = byte(r) //nolint:gosec // below 0x80
		n++
	}
	return slices.ContainsFunc(marks, func(m string) bool { return strings.HasPrefix(string(seen[:n]), m) })
}

// json writes a JSON value that others wrote, without the space around its parts, and
// with its text readable: what was escaped without need is not. The value stays the same.
// What is no JSON is shown too, in some way. It gives how many bytes of data had room.
func (w *writer) json(data []byte) int {
	for i := 0; i < len(data); {
		switch c := data[i]; {
		case c == ' ' || c == '\n' || c == '\t' || c == '\r':
			i++
		case c == '"':
			room := w.most - len(w.b) + 64                      // so that what begins within the room is seen to its end
			end := ending(data[:min(len(data), i+6*room)], i+1) // no character takes more than six bytes for one
			s := unescape(data[i+1:end], room)
			if !w.put(`"`) {
				return i
			}
			if n := w.text(s, true); w.full {
				return min(i+1+n, end)
			}
			if !w.put(`"`) {
				return end
			}
			i = min(end+1, len(data))
		case simple(c):
			j := i
			for j < len(data) && simple(data[j]) && data[j] != ' ' {
				j++
			}
			if n := w.text(string(data[i:min(j, i+w.most)]), false); w.full {
				return i + n
			}
			i = j
		default: // no JSON has it there
			r, n := utf8.DecodeRune(data[i:])
			if !w.put(escape(r, false)) {
				return i
			}
			i += n
		}
	}
	return len(data)
}

// ending is where a string of JSON ends that begins at i, behind its quotation mark.
func ending(data []byte, i int) int {
	for i < len(data) && data[i] != '"' {
		if data[i] == '\\' {
			i++
		}
		i++
	}
	return min(i, len(data))
}

// unescape gives the text of a string of JSON, about most bytes of it.
func unescape(s []byte, most int) string {
	var b strings.Builder
	for i := 0; i < len(s) && b.Len() < most; i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		switch c := s[i]; c {
		case 'n':
			b.WriteByte('\n')
		case 't':
			b.WriteByte('\t')
		case 'r':
			b.WriteByte('\r')
		case 'b':
			b.WriteByte('\b')
		case 'f':
			b.WriteByte('\f')
		case 'u':
			r, n := number(s[i+1:])
			if low, m := number(s[min(i+1+n+2, len(s)):]); r&^0x3ff == 0xd800 && m == 4 && low&^0x3ff == 0xdc00 && s[i+1+n] == '\\' && s[i+2+n] == 'u' {
				r, n = 0x10000+(r&0x3ff)<<10+low&0x3ff, n+2+m
			}
			b.WriteRune(r) // U+FFFD for half a pair
			i += n
		default: // a quotation mark, a stroke
			b.WriteByte(c)
		}
	}
	return b.String()
}

// number reads the four digits of an escaped character; n is 0 where they are not there.
func number(s []byte) (r rune, n int) {
	if len(s) < 4 {
		return utf8.RuneError, 0
	}
	u, err := strconv.ParseUint(string(s[:4]), 16, 16)
	if err != nil {
		return utf8.RuneError, 0
	}
	return rune(u), 4
}
