package safeyaml

import "gopkg.in/yaml.v3"

// Kind is what a [Value] is.
type Kind int

// The kinds. Everything that is no map, list or string is Other: numbers, booleans, null.
const (
	Other Kind = iota
	Text
	List
	Map
)

// Value is a part of a document with its lines, for those who need no numbers and
// report what is wrong line by line. It shares nothing with the parser.
type Value struct {
	Kind  Kind
	Line  int
	Text  string  // of a string
	Items []Value // of a list; of a map its values
	Keys  []Key   // of a map, one for each item
}

// Key is a key of a map.
type Key struct {
	Name string
	Line int
}

// Read is [Parse] for those who do without the parser's types. With problems the value
// is empty.
func Read(src []byte) (Value, []Problem) {
	root, problems := Parse(src)
	if root == nil {
		return Value{}, problems
	}
	return valueOf(root), nil
}

func valueOf(n *yaml.Node) Value {
	v := Value{Line: n.Line}
	switch {
	case n.Kind == yaml.MappingNode:
		v.Kind = Map
		for i := 0; i+1 < len(n.Content); i += 2 {
			v.Keys = append(v.Keys, Key{n.Content[i].Value, n.Content[i].Line})
			v.Items = append(v.Items, valueOf(n.Content[i+1]))
		}
	case n.Kind == yaml.SequenceNode:
		v.Kind = List
		for _, c := range n.Content {
			v.Items = append(v.Items, valueOf(c))
		}
	case n.ShortTag() == "!!str":
		v.Kind, v.Text = Text, n.Value
	}
	return v
}
