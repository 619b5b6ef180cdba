package main

import (
	"bytes"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"openskill/skills/internal/guest"
)

// window is how much of a line, in characters, is searched for time and level.
const window = 1000

// knownLevels are taken for levels where they stand in capitals as whole words.
var knownLevels = []string{
	"TRACE", "DEBUG", "INFO", "NOTICE", "WARN", "WARNING", "ERROR", "ERR", "SEVERE",
	"CRITICAL", "CRIT", "ALERT", "EMERG", "FATAL", "PANIC",
}

// defaultTimestamp is ISO 8601 with date and time, or the one of web servers. It
// is only tried where atTimestamp sees one: Go's matcher costs thousands of
// instructions a byte where a line has none.
var defaultTimestamp = regexp.MustCompile(`^(?:\d{4}[-/]\d{2}[-/]\d{2}[T ]\d{2}:\d{2}:\d{2}(?:[.,]\d{1,9})?(?:Z|[+-]\d{2}:?\d{2})?` +
	`|\d{2}/[A-Z][a-z]{2}/\d{4}:\d{2}:\d{2}:\d{2} [+-]\d{4})`)

func atTimestamp(s string) bool {
	return len(s) >= 19 && s[0] >= '0' && s[0] <= '9' && (s[13] == ':' || s[2] == '/' && s[11] == ':')
}

// textLines reads lines of free text. A line is a record if it has a time or a level.
type textLines struct {
	rules  rules
	levels []string // the longer name first, where two begin at one place
}

func newTextLines(r rules) *textLines {
	names := slices.Clone(knownLevels)
	for name := range r.levels {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return len(b) - len(a) })
	return &textLines{rules: r, levels: names}
}

// timestamp is where the whole match lies in s, and the timestamp in it.
func (t *textLines) timestamp(s string) (from, to int, timestamp string) {
	if t.rules.timestamp == nil {
		for i := range len(s) {
			if !atTimestamp(s[i:]) {
				continue
			}
			if m := defaultTimestamp.FindStringIndex(s[i:]); m != nil {
				return i, i + m[1], s[i : i+m[1]]
			}
		}
		return 0, 0, ""
	}
	m := t.rules.timestamp.FindStringSubmatchIndex(s)
	if m == nil {
		return 0, 0, ""
	}
	from, to = m[0], m[1]
	if len(m) > 2 {
		m = m[2:]
	}
	if m[0] < 0 {
		return 0, 0, ""
	}
	return from, to, s[m[0]:m[1]]
}

// level is where the first level of s lies; from is -1 without one.
func (t *textLines) level(s string) (from, to int) {
	from = -1
	for _, name := range t.levels {
		for at := 0; ; at++ {
			i := strings.Index(s[at:], name)
			if i < 0 {
				break
			}
			at += i
			end := at + len(name)
			if (at == 0 || !wordByte(s[at-1])) && (end == len(s) || !wordByte(s[end])) {
				if from < 0 || at < from {
					from, to = at, end
				}
				break
			}
		}
	}
	return from, to
}

func wordByte(c byte) bool { return letter(rune(c)) || digit(rune(c)) }

func (t *textLines) record(line string, number int) ([]byte, string, error) {
	near, far := line, ""
	if len(line) > window {
		chars := 0
		for i := range line {
			if chars == window {
				near, far = line[:i], line[i:]
				break
			}
			chars++
		}
	}
	var timestamp, level *string
	parts := []string{near}
	if from, to, s := t.timestamp(near); s != "" {
		timestamp = &s
		before, after := cut(near, from, to)
		// The level is looked for behind the time first.
		parts = []string{before, after}
	}
	for i := len(parts) - 1; i >= 0 && level == nil; i-- {
		if from, to := t.level(parts[i]); from >= 0 {
			s := t.rules.level(parts[i][from:to])
			level = &s
			before, after := cut(parts[i], from, to)
			parts = slices.Replace(parts, i, i+1, before, after)
		}
	}
	if timestamp == nil && level == nil {
		return nil, noMark, nil
	}
	parts[len(parts)-1] += far
	var words []string
	for _, part := range parts {
		if part = trim(part); part != "" {
			words = append(words, part)
		}
	}
	rec := []byte(`{"line_no":`)
	rec = strconv.AppendInt(rec, int64(number), 10)
	rec = appendOptional(append(rec, `,"timestamp":`...), timestamp)
	rec = appendOptional(append(rec, `,"level":`...), level)
	rec = appendString(append(rec, `,"message":`...), strings.Join(words, " "))
	return append(rec, '}'), "", nil
}

// cut takes s[from:to] out of s, with a pair of brackets directly around it.
func cut(s string, from, to int) (before, after string) {
	if from > 0 && to < len(s) {
		switch s[from-1:from] + s[to:to+1] {
		case "[]", "()", "<>":
			from--
			to++
		}
	}
	return s[:from], s[to:]
}

// trim takes off the blanks of a part and the sign that separated it from what was cut.
func trim(part string) string {
	part = strings.Trim(part, " \t")
	if part != "" && strings.Contains(":-|", part[:1]) && (len(part) == 1 || part[1] == ' ' || part[1] == '\t') {
		part = strings.Trim(part[1:], " \t")
	}
	return part
}

// jsonLines reads one JSON object a line.
type jsonLines struct{ rules rules }

func (j *jsonLines) record(line string, _ int) ([]byte, string, error) {
	raw := bytes.Trim([]byte(line), " \t\r\n")
	if len(raw) == 0 || raw[0] != '{' || !guest.Text(raw) {
		return nil, notJSON, nil
	}
	rec, ok := appendValue(nil, raw, 0, j.rules.level)
	if !ok {
		return nil, notJSON, nil
	}
	return rec, "", nil
}

// commaLines reads CSV as RFC 4180 has it, but for line breaks in quotes: a line
// of a log is a record. The first line that is not blank names the columns.
type commaLines struct {
	rules   rules
	columns []string
}

func (c *commaLines) record(line string, _ int) ([]byte, string, error) {
	fields, ok := splitCommas(line)
	if c.columns == nil {
		if !ok || len(fields) > 256 || slices.Contains(fields, "") || len(fields) != len(slices.Compact(slices.Sorted(slices.Values(fields)))) {
			return nil, "", guest.Invalid("format", "header",
				"format: the file is no CSV that can be read: its first line must name 1 to 256 columns, none empty and none twice")
		}
		c.columns = fields
		return nil, "", nil
	}
	if !ok || len(fields) != len(c.columns) {
		return nil, notARow, nil
	}
	rec := []byte{'{'}
	for i, column := range c.columns {
		if i > 0 {
			rec = append(rec, ',')
		}
		value := fields[i]
		if column == "level" {
			value = c.rules.level(value)
		}
		rec = appendString(append(appendString(rec, column), ':'), value)
	}
	return append(rec, '}'), "", nil
}

func splitCommas(line string) (fields []string, ok bool) {
	for {
		if !strings.HasPrefix(line, `"`) {
			field, rest, more := strings.Cut(line, ",")
			if strings.Contains(field, `"`) {
				return nil, false
			}
			fields = append(fields, field)
			if !more {
				return fields, true
			}
			line = rest
			continue
		}
		var field bytes.Buffer
		for line = line[1:]; ; {
			text, rest, closed := strings.Cut(line, `"`)
			if !closed {
				return nil, false
			}
			field.WriteString(text)
			line = rest
			if !strings.HasPrefix(line, `"`) {
				break
			}
			field.WriteByte('"')
			line = line[1:]
		}
		fields = append(fields, field.String())
		if line == "" {
			return fields, true
		}
		if line[0] != ',' {
			return nil, false
		}
		line = line[1:]
	}
}
