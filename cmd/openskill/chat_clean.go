package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"openskill/sdk/skill"
)

// cleaner makes what models and skills say fit for a terminal. Nothing that it lets
// through moves the cursor but ends of lines and tabs, sets a title or the clipboard,
// turns the direction of writing, or is there without being seen: such characters are
// shown by their numbers, as \u{1b}. A text may come in parts that are cut anywhere.
type cleaner struct {
	held  []byte // the beginning of a character whose rest is in the next part
	cr    bool   // a CR was read, of which it is not known yet whether an LF follows
	last  rune   // that was written
	marks int    // in a row
}

// maxMarks is how many marks may stand on one letter: more of them cover other lines.
const maxMarks = 6

// Characters that join their neighbours or choose their form, which scripts and emoji
// need: one may stand behind a character that is no ASCII.
const (
	nonJoiner = 0x200c
	joiner    = 0x200d
	asText    = 0xfe0e
	asEmoji   = 0xfe0f
)

// part cleans the next part of the text.
func (c *cleaner) part(s string) string {
	var b strings.Builder
	if len(c.held) > 0 {
		s = string(c.held) + s
		c.held = c.held[:0]
	}
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		if r == utf8.RuneError && n == 1 && !utf8.FullRuneInString(s) {
			c.held = append(c.held, s...)
			break
		}
		s = s[n:]
		c.write(&b, r)
	}
	return b.String()
}

// end gives what the last part left over, and begins a new text.
func (c *cleaner) end() string {
	var b strings.Builder
	if len(c.held) > 0 {
		c.held = nil
		c.write(&b, utf8.RuneError)
	}
	if c.cr {
		show(&b, '\r')
	}
	*c = cleaner{}
	return b.String()
}

func (c *cleaner) write(b *strings.Builder, r rune) {
	if c.cr {
		if c.cr = false; r != '\n' {
			show(b, '\r')
		}
	}
	switch {
	case r == '\r':
		c.cr = true
		return
	case r == '\n' || r == '\t':
		b.WriteRune(r)
	case r == nonJoiner || r == joiner || r == asText || r == asEmoji:
		if c.last < 0x80 || joins(c.last) {
			show(b, r)
		} else {
			b.WriteRune(r)
		}
	case skill.Hidden(r):
		show(b, r)
	case unicode.In(r, unicode.Mn, unicode.Me):
		if c.marks++; c.marks <= maxMarks {
			b.WriteRune(r)
		}
		return
	default:
		b.WriteRune(r)
	}
	c.last, c.marks = r, 0
}

func joins(r rune) bool { return r == nonJoiner || r == joiner || r == asText || r == asEmoji }

func show(b *strings.Builder, r rune) { fmt.Fprintf(b, `\u{%x}`, r) }

// cleaned cleans a whole text.
func cleaned(s string) string {
	var c cleaner
	return c.part(s) + c.end()
}

// cleanWriter cleans what is written, each time a text of its own.
type cleanWriter struct{ w io.Writer }

// Write implements io.Writer.
func (c cleanWriter) Write(p []byte) (int, error) {
	if _, err := io.WriteString(c.w, cleaned(string(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// oneLine makes a text one line of at most so many columns; 0: as long as it is, up to
// some thousand characters.
func oneLine(s string, most int) string {
	const long = 4000
	if len(s) > 4*long { // all of it would be looked at for nothing
		s = strings.ToValidUTF8(s[:4*long], "")
	}
	s = cleaned(skill.CleanText(s, long))
	if most > 0 && columns(s) > most {
		s = snip(s, most-1) + "…"
	}
	return s
}

// cleanJSON writes v as one line of JSON in which characters that a terminal would obey
// are escaped: it stays the same JSON.
func cleanJSON(v any) (string, error) {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return "", err
	}
	var out strings.Builder
	for _, r := range strings.TrimSuffix(b.String(), "\n") {
		switch {
		case !skill.Hidden(r):
			out.WriteRune(r)
		case r > 0xffff:
			r -= 0x10000
			fmt.Fprintf(&out, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		default:
			fmt.Fprintf(&out, `\u%04x`, r)
		}
	}
	out.WriteByte('\n')
	return out.String(), nil
}
