package agentskills

import (
	"regexp"
	"strings"

	"gopkg.in/yaml.v3"

	"openskill/host/registry/safeyaml"
	"openskill/sdk/skill"
)

// key begins a line with a key of the frontmatter that is in no other.
var key = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9_-]*):(?:[ \t\x{a0}]+(.*))?$`)

// mostRepaired bounds what is repaired, in bytes: each key is parsed up to three times.
const mostRepaired = 16 << 10

// repair makes YAML of a frontmatter that is none, as people write it: with a colon, an @ or a
// bracket in text without quotes, or a tab before a key. Each key is looked at by itself, and the
// value of one that cannot be read is text. What is repaired is on as many lines as before.
func repair(front []byte) []byte {
	if len(front) > mostRepaired {
		return front
	}
	var out, entry []string
	flush := func() {
		out = append(out, whole(entry)...)
		entry = nil
	}
	for line := range strings.Lines(string(front)) {
		line = strings.TrimRight(line, "\r\n")
		if key.MatchString(line) {
			flush()
		}
		entry = append(entry, line)
	}
	flush()
	return []byte(strings.Join(out, "\n") + "\n")
}

// whole gives the lines of a key as they can be read.
func whole(lines []string) []string {
	if len(lines) == 0 || isYAML(lines) {
		return lines
	}
	spaced := make([]string, len(lines))
	for i, line := range lines {
		text := strings.TrimLeft(line, " \t\u00a0")
		spaced[i] = strings.NewReplacer("\t", "  ", "\u00a0", " ").Replace(line[:len(line)-len(text)]) + strings.ReplaceAll(text, "\u00a0", " ")
	}
	if isYAML(spaced) {
		return spaced
	}
	m := key.FindStringSubmatch(spaced[0])
	if m == nil {
		return lines
	}
	value := m[2]
	for _, line := range spaced[1:] {
		value += " " + strings.TrimSpace(line)
	}
	value = strings.TrimSpace(value)
	for _, quote := range []string{`"`, `'`} {
		if inner, ok := strings.CutPrefix(value, quote); ok {
			value = strings.TrimSuffix(inner, quote)
		}
	}
	text := make([]string, len(lines)) // the others are empty
	text[0] = m[1] + ": " + quoted(skill.CleanText(value, len(value)))
	return text
}

// isYAML reports whether lines are a key with a value.
func isYAML(lines []string) bool {
	root, problems := safeyaml.Parse([]byte(strings.Join(lines, "\n") + "\n"))
	return len(problems) == 0 && root.Kind == yaml.MappingNode
}
