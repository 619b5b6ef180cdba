package react

import (
	"encoding/json"

	"openskill/internal/ordered"
)

// shape is a schema without its words: which members there are, of which types, and what
// is required. It takes a third of what the whole takes, and a model that gets more than
// that wrong is told what was expected. The order is the schema's.
func shape(schema json.RawMessage) string {
	o, err := ordered.DecodeObject(schema)
	if err != nil {
		return "{}"
	}
	b, err := ordered.Encode(bones(o))
	if err != nil {
		return "{}"
	}
	return string(b)
}

// bones gives what shape keeps of a value in the place of a schema.
func bones(v any) any {
	o, ok := v.(*ordered.Object)
	if !ok {
		return v // true or false
	}
	out := &ordered.Object{}
	for _, m := range o.Members {
		switch m.Key {
		case "type", "required", "enum", "const", "minimum", "maximum", "$ref":
			out.Set(m.Key, m.Value)
		case "items", "additionalProperties":
			if of, ok := m.Value.(*ordered.Object); ok { // what is not said may be anything
				out.Set(m.Key, bones(of))
			}
		case "properties", "$defs", "definitions":
			if named, ok := m.Value.(*ordered.Object); ok {
				all := &ordered.Object{}
				for _, n := range named.Members {
					all.Members = append(all.Members, ordered.Member{Key: n.Key, Value: bones(n.Value)})
				}
				out.Set(m.Key, all)
			}
		case "anyOf", "oneOf", "allOf", "prefixItems":
			if list, ok := m.Value.([]any); ok {
				all := make([]any, len(list))
				for i := range list {
					all[i] = bones(list[i])
				}
				out.Set(m.Key, all)
			}
		}
	}
	return out
}
