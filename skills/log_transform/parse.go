package main

import (
	"bytes"
	"encoding/json"
	"io"
	"regexp"
	"slices"
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

// defaultTimestamp finds ISO 8601 dates with a time, and those of web servers.
const defaultTimestamp = `\d{4}[-/]\d{2}[-/]\d{2}[T ]\d{2}:\d{2}:\d{2}(?:[.,]\d{1,9})?(?:Z|[+-]\d{2}:?\d{2})?` +
	`|\d{2}/[A-Z][a-z]{2}/\d{4}:\d{2}:\d{2}:\d{2} [+-]\d{4}`

// textLines reads lines of free text. A line is a record if it has a time or a level.
type textLines struct {
	rules     rules
	timestamp *regexp.Regexp
	level     *regexp.Regexp
}

func newTextLines(r rules) *textLines {
	names := slices.Clone(knownLevels)
	for name := range r.levels {
		names = append(names, name)
	}
	// The longer name first, where two begin at one place.
	slices.SortFunc(names, func(a, b string) int {
		if d := len([]rune(b)) - len([]rune(a)); d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	for i, name := range names {
		names[i] = regexp.QuoteMeta(name)
	}
	t := &textLines{rules: r, timestamp: r.timestamp}
	if t.timestamp == nil {
		t.timestamp = regexp.MustCompile(defaultTimestamp)
	}
	const edge = `[^A-Za-z0-9_]`
	t.level = regexp.MustCompile(`(?:^|` + edge + `)(` + strings.Join(names, "|") + `)(?:$|` + edge + `)`)
	return t
}

func (t *textLines) record(line string, number int) ([]byte, bool, error) {
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
	if m := t.timestamp.FindStringSubmatchIndex(near); m != nil {
		from, to := m[0], m[1]
		if len(m) > 2 {
			from, to = m[2], m[3]
		}
		if from >= 0 && to > from {
			s := near[from:to]
			timestamp = &s
			before, after := cut(near, m[0], m[1])
			// The level is looked for behind the time first.
			parts = []string{before, after}
		}
	}
	for i := len(parts) - 1; i >= 0 && level == nil; i-- {
		if m := t.level.FindStringSubmatchIndex(parts[i]); m != nil {
			s := t.rules.level(parts[i][m[2]:m[3]])
			level = &s
			before, after := cut(parts[i], m[2], m[3])
			parts = slices.Replace(parts, i, i+1, before, after)
		}
	}
	if timestamp == nil && level == nil {
		return nil, false, nil
	}
	parts[len(parts)-1] += far
	var words []string
	for _, part := range parts {
		if part = trim(part); part != "" {
			words = append(words, part)
		}
	}
	rec := []byte(`{"line_no":`)
	rec = appendInt(rec, number)
	rec = appendOptional(append(rec, `,"timestamp":`...), timestamp)
	rec = appendOptional(append(rec, `,"level":`...), level)
	rec = appendString(append(rec, `,"message":`...), strings.Join(words, " "))
	return append(rec, '}'), true, nil
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

func (j *jsonLines) record(line string, _ int) ([]byte, bool, error) {
	if !guest.Text([]byte(line)) {
		return nil, false, nil
	}
	dec := json.NewDecoder(strings.NewReader(line))
	dec.UseNumber()
	var object map[string]any
	if dec.Decode(&object) != nil || object == nil {
		return nil, false, nil
	}
	if _, err := dec.Token(); err != io.EOF { //nolint:errorlint // the decoder returns it bare
		return nil, false, nil
	}
	if level, ok := object["level"].(string); ok {
		object["level"] = j.rules.level(level)
	}
	rec, ok := appendValue(nil, object, 0)
	if !ok {
		return nil, false, nil
	}
	return rec, true, nil
}

// commaLines reads CSV as RFC 4180 has it, but for line breaks in quotes: a line
// of a log is a record. The first line that is not blank names the columns.
type commaLines struct {
	rules   rules
	columns []string
}

func (c *commaLines) record(line string, _ int) ([]byte, bool, error) {
	fields, ok := splitCommas(line)
	if c.columns == nil {
		if !ok || len(fields) > 256 || slices.Contains(fields, "") || len(fields) != len(unique(fields)) {
			return nil, false, guest.Invalid("format", "header",
				"format: the file is no CSV that can be read: its first line must name 1 to 256 columns, none empty and none twice")
		}
		c.columns = fields
		return nil, true, nil
	}
	if !ok || len(fields) != len(c.columns) {
		return nil, false, nil
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
	return append(rec, '}'), true, nil
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

func unique(list []string) []string {
	list = slices.Clone(list)
	slices.Sort(list)
	return slices.Compact(list)
}
