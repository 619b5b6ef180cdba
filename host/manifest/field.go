package manifest

import (
	"crypto/sha256"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"openskill/internal/safeyaml"
)

// field is a schema as text, which compiles.
type field struct {
	text  []byte
	sum   string   // its SHA-256
	names []string // that it declares at its top, in order
	size  int      // bytes of memory, compiled
}

// schema reads and compiles a schema, and gives each problem the line of the part
// that it is about.
func (p *parser) schema(n *yaml.Node, what string) *field {
	if n.Kind != yaml.MappingNode {
		p.report(n.Line, "%s must be a map: a JSON Schema", what)
		return nil
	}
	if p.cutText(n, what) {
		return nil
	}
	text, problems := safeyaml.JSON(n)
	for _, q := range problems {
		p.report(q.Line, "%s: %s", what, q.Message)
	}
	if len(problems) > 0 {
		return nil
	}
	compiled, errs := CompileSchema(text)
	for _, e := range errs {
		p.report(lineAt(n, e.Pointer), "%s%s: %s", what, e.Pointer, e.Message)
	}
	if len(errs) > 0 {
		return nil
	}
	if !compiled.TakesObjects() {
		p.report(lineAt(n, "/type"), "%s accepts no object, but inputs and data are objects: put the value into a property", what)
		return nil
	}
	sum := sha256.Sum256(text)
	return &field{text, string(sum[:]), compiled.Properties(), compiled.Size()}
}

// cutText reports text that a comma cut in two, as in {description: One, two}. YAML
// takes the rest for a key without a value, and JSON Schema would ignore it, so a
// model would read half a sentence.
func (p *parser) cutText(n *yaml.Node, what string) (found bool) {
	for i, c := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 && n.Style&yaml.FlowStyle != 0 {
			v := n.Content[i+1]
			if v.Kind == yaml.ScalarNode && v.Tag == "!!null" && v.Value == "" && strings.ContainsAny(c.Value, " \t") {
				p.report(c.Line, "%s: %s has no value; text with a comma in it needs quotes", what, safeyaml.Quote(c.Value))
				found = true
			}
		}
		found = p.cutText(c, what) || found
	}
	return found
}

// lineAt finds the line of the node that a JSON pointer names, or of the last one
// on the way.
func lineAt(n *yaml.Node, pointer string) int {
	line := n.Line
	for _, token := range strings.Split(pointer, "/") {
		if token == "" {
			continue
		}
		token = strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
		var next *yaml.Node
		switch n.Kind {
		case yaml.MappingNode:
			for i := 0; i+1 < len(n.Content); i += 2 {
				if n.Content[i].Value == token {
					line, next = n.Content[i].Line, n.Content[i+1]
				}
			}
		case yaml.SequenceNode:
			if i, err := strconv.Atoi(token); err == nil && i >= 0 && i < len(n.Content) {
				next = n.Content[i]
				line = next.Line
			}
		default: // nothing is below a scalar
		}
		if next == nil {
			return line
		}
		n = next
	}
	return line
}
