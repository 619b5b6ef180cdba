package agentskills

import (
	"encoding/json"
	"regexp"
	"strings"

	"gopkg.in/yaml.v3"

	"openskill/internal/safeyaml"
	"openskill/sdk/skill"
)

// key begins a line with a key of the frontmatter that is in no other.
var key = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9_-]*):(?:[ \t\x{a0}]+(.*))?$`)

// mostRepaired bounds what is repaired, in bytes: each key is parsed up to three times.
const mostRepaired = 16 << 10

// repair reads a frontmatter that is not YAML, as people write it: with a colon, an @ or a
// bracket in text without quotes, or a tab before a key. Each key is looked at by itself, and the
// value of one that cannot be read is text. The remarks say how, each at the line of its key.
// The root is nil where this does not help.
func repair(front []byte) (root *yaml.Node, remarks []safeyaml.Problem) {
	if len(front) > mostRepaired {
		return nil, nil
	}
	var out, entry []string // out has as many lines as there were
	flush := func() {
		lines, remark := asYAML(entry)
		if remark != nil {
			remark.Line = len(out) + max(remark.Line, 1)
			remarks = append(remarks, *remark)
		}
		out, entry = append(out, lines...), nil
	}
	for line := range strings.Lines(string(front)) {
		line = strings.TrimRight(line, "\r\n")
		if key.MatchString(line) {
			flush()
		}
		entry = append(entry, line)
	}
	flush()
	root, _ = safeyaml.Parse([]byte(strings.Join(out, "\n") + "\n"))
	return root, remarks
}

// asYAML gives the lines of a key as they can be read, and how that was; nil: as they are.
func asYAML(lines []string) ([]string, *safeyaml.Problem) {
	if len(lines) == 0 || !key.MatchString(lines[0]) {
		return lines, nil
	}
	p := problem(lines)
	if p == nil {
		return lines, nil
	}
	spaced := make([]string, len(lines))
	for i, line := range lines {
		text := strings.TrimLeft(line, " \t\u00a0")
		spaced[i] = strings.NewReplacer("\t", "  ", "\u00a0", " ").Replace(line[:len(line)-len(text)]) + strings.ReplaceAll(text, "\u00a0", " ")
	}
	m := key.FindStringSubmatch(spaced[0])
	if problem(spaced) == nil {
		p.Message = m[1] + " has tabs or no-break spaces, which are read as spaces: " + p.Message
		return spaced, p
	}
	value := m[2]
	for _, line := range spaced[1:] {
		value += " " + strings.TrimSpace(line)
	}
	value = strings.TrimSpace(value)
	out := make([]string, len(lines)) // the others are empty
	// JSON may write an emoji as two escapes, which YAML refuses.
	var object map[string]any
	if json.Unmarshal([]byte(value), &object) == nil {
		if out[0] = m[1] + ": " + quoted(object); problem(out) == nil {
			p.Message = m[1] + " is read as JSON: " + p.Message
			return out, p
		}
	}
	if m[1] == "metadata" { // which is of no use as text
		p.Message = "metadata is left out: " + p.Message
		out[0] = "metadata: {}"
		return out, p
	}
	for _, quote := range []string{`"`, `'`} {
		if inner, ok := strings.CutPrefix(value, quote); ok {
			value = strings.TrimSuffix(inner, quote)
		}
	}
	p.Message = m[1] + " is read as text, as if in quotes: " + p.Message
	out[0] = m[1] + ": " + quoted(skill.CleanText(value, len(value)))
	return out, p
}

// problem gives the first problem of lines that should be a key with a value, nil: none.
func problem(lines []string) *safeyaml.Problem {
	root, problems := safeyaml.Parse([]byte(strings.Join(lines, "\n") + "\n"))
	switch {
	case len(problems) > 0:
		return &problems[0]
	case root.Kind != yaml.MappingNode:
		return &safeyaml.Problem{Message: "not a key with a value"}
	}
	return nil
}
