package main

import (
	"bytes"
	"unicode/utf8"

	"openskill/skills/internal/guest"
)

// Why a line is not a record, as it is counted in dropped_reasons.
const (
	tooLong  = "too_long"
	notText  = "not_text"
	noMark   = "no_time_or_level"
	notJSON  = "not_a_json_object"
	notARow  = "not_a_csv_row"
	sniffing = 20 // lines that are looked at to tell the format
)

// lines goes through the lines of a file.
type lines struct {
	data   []byte // what is left of it
	mended bool   // a line held bytes that are not UTF-8
}

// next returns the next line in UTF-8 and without colours; it is "" for a blank
// line. why is the reason for which a line cannot be read.
func (l *lines) next() (line, why string) {
	raw, rest, _ := bytes.Cut(l.data, []byte("\n"))
	l.data = rest
	raw = bytes.TrimSuffix(raw, []byte("\r"))
	if len(raw) > maxLine && !blank(raw) {
		return "", tooLong
	}
	if !utf8.Valid(raw) {
		var ok bool
		if raw, ok = guest.Mend(raw); !ok {
			return "", notText
		}
		l.mended = true
	}
	if raw = plain(raw); blank(raw) {
		return "", ""
	}
	return string(raw), ""
}

func blank(line []byte) bool { return len(bytes.Trim(line, " \t")) == 0 }

// plain takes the escape sequences of terminals out of a line: control sequences
// such as colours, operating system commands such as links, and character sets.
func plain(line []byte) []byte {
	at := bytes.IndexByte(line, 0x1b)
	if at < 0 {
		return line
	}
	var out []byte
	for ; at >= 0; at = bytes.IndexByte(line, 0x1b) {
		n := sequence(line[at:])
		if n == 0 { // an escape character alone stays
			out = append(out, line[:at+1]...)
			line = line[at+1:]
			continue
		}
		out = append(out, line[:at]...)
		line = line[at+n:]
	}
	return append(out, line...)
}

// sequence is the length of the escape sequence at the start of s, or 0.
func sequence(s []byte) int {
	if len(s) < 3 {
		return 0
	}
	at, low := 2, byte('@')
	switch {
	case s[1] == ']':
		at += span(s[at:], func(c byte) bool { return c != 0x07 && c != 0x1b })
		switch {
		case at < len(s) && s[at] == 0x07:
			return at + 1
		case at+1 < len(s) && s[at+1] == '\\':
			return at + 2
		}
		return 0
	case s[1] == '[':
		at += span(s[at:], func(c byte) bool { return c >= '0' && c <= '?' })
	case s[1] >= ' ' && s[1] <= '/':
		low = '0'
	default:
		return 0
	}
	at += span(s[at:], func(c byte) bool { return c >= ' ' && c <= '/' })
	if at == len(s) || s[at] < low || s[at] > '~' {
		return 0
	}
	return at + 1
}

// span is how many bytes at the start of s are of a kind.
func span(s []byte, of func(byte) bool) int {
	for i, c := range s {
		if !of(c) {
			return i
		}
	}
	return len(s)
}

// mixedLines reads JSON lines, and as text the lines that are not.
type mixedLines struct {
	json jsonLines
	text *textLines
}

func (m *mixedLines) record(line string, number int) (rec []byte, why string, err error) {
	if rec, _, err = m.json.record(line, number); rec == nil && err == nil {
		if rec, _, err = m.text.record(line, number); rec == nil {
			why = notJSON
		}
	}
	return rec, why, err
}

// sniff tells JSON lines from text where the name does not: of the first lines
// more are JSON objects than are records as text.
func (m *mixedLines) sniff(data []byte) bool {
	l := lines{data: data}
	seen, objects := 0, 0
	for read := 0; seen < sniffing && read < maxLines && len(l.data) > 0; read++ {
		line, why := l.next()
		if line == "" && why == "" {
			continue
		}
		seen++
		if rec, _, _ := m.json.record(line, 0); rec != nil {
			objects++
		} else if rec, _, _ = m.text.record(line, 0); rec != nil {
			objects--
		}
	}
	return objects > 0
}
