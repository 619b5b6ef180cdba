package safeyaml

import (
	"bytes"

	"gopkg.in/yaml.v3"

	"openskill/internal/ordered"
)

// Format writes JSON as YAML for people: one key a line, in the order of the text, and strings without quotes where they
// need none.
func Format(text []byte) ([]byte, error) {
	v, err := ordered.Decode(text)
	if err != nil {
		return nil, err
	}
	if text, err = ordered.Encode(v); err != nil { // escapes that YAML does not know
		return nil, err
	}
	var root yaml.Node
	if err := yaml.Unmarshal(text, &root); err != nil {
		return nil, err
	}
	plain(&root)
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(&root); err != nil {
		return nil, err
	}
	return b.Bytes(), enc.Close()
}

func plain(n *yaml.Node) {
	if len(n.Content) > 0 || n.Kind == yaml.ScalarNode {
		n.Style = 0 // {} and [] keep theirs
	}
	for _, c := range n.Content {
		plain(c)
	}
}
