package agentskills

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
)

// params are the parameters that a struct's fields describe.
type params struct {
	schema   json.RawMessage
	names    []string // in the order of the fields
	kinds    map[string]kind
	defaults map[string]any // as package schema takes values
}

// kind is the JSON type of a parameter; "" is any.
type kind struct{ of, items string }

// maxNesting is how deep types of parameters may be nested; one that holds itself has
// no end.
const maxNesting = 8

func paramsOf(t reflect.Type) (*params, error) {
	p := &params{kinds: map[string]kind{}, defaults: map[string]any{}}
	var b bytes.Buffer
	if err := p.object(&b, t, 0); err != nil {
		return nil, err
	}
	p.schema = compactJSON(b.Bytes())
	return p, nil
}

// object writes the schema of a struct.
func (p *params) object(b *bytes.Buffer, t reflect.Type, depth int) error {
	var required []string
	b.WriteString(`{"type":"object","properties":{`)
	first := true
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name != "-" {
			return fmt.Errorf("the field %s is embedded; write its fields out", f.Name)
		}
		if !f.IsExported() || name == "-" {
			continue
		}
		if name == "" {
			name = f.Name
		}
		if !first {
			b.WriteByte(',')
		}
		first = false
		b.WriteString(quoted(name) + ":")
		preset, err := p.field(b, &f, depth)
		if err != nil {
			return fmt.Errorf("the field %s: %w", f.Name, err)
		}
		if depth == 0 {
			p.names = append(p.names, name)
			p.kinds[name] = kindOf(f.Type)
			if preset != nil {
				p.defaults[name] = preset
			}
		} else if preset != nil {
			return fmt.Errorf("the field %s: only parameters have defaults, not what is within them", f.Name)
		}
		optional := slices.Contains(strings.Split(options, ","), "omitempty") || slices.Contains(strings.Split(options, ","), "omitzero")
		if !optional && f.Type.Kind() != reflect.Pointer && preset == nil {
			required = append(required, quoted(name))
		}
	}
	b.WriteByte('}')
	if len(required) > 0 {
		b.WriteString(`,"required":[` + strings.Join(required, ",") + `]`)
	}
	b.WriteString(`,"additionalProperties":false}`)
	return nil
}

// field writes the schema of one field and gives its default, nil for none.
func (p *params) field(b *bytes.Buffer, f *reflect.StructField, depth int) (any, error) {
	var inner bytes.Buffer
	if err := p.typ(&inner, f.Type, depth+1); err != nil {
		return nil, err
	}
	text := strings.TrimSuffix(inner.String(), "}")
	var more []string
	of := kindOf(f.Type).of
	if d := f.Tag.Get("description"); d != "" {
		more = append(more, `"description":`+quoted(d))
	}
	if list := f.Tag.Get("enum"); list != "" {
		var values []string
		for _, v := range strings.Split(list, ",") {
			w, err := written(of, strings.TrimSpace(v))
			if err != nil {
				return nil, err
			}
			values = append(values, w)
		}
		more = append(more, `"enum":[`+strings.Join(values, ",")+`]`)
	}
	for _, key := range []string{"minimum", "maximum"} {
		if v, ok := f.Tag.Lookup(key); ok {
			if of != "integer" && of != "number" {
				return nil, fmt.Errorf("only numbers have a %s", key)
			}
			w, err := written(of, v)
			if err != nil {
				return nil, err
			}
			more = append(more, quoted(key)+":"+w)
		}
	}
	var preset any
	if v, ok := f.Tag.Lookup("default"); ok {
		w, err := written(of, v)
		if err != nil {
			return nil, err
		}
		more = append(more, `"default":`+w)
		preset = scalar("", w)
	}
	if len(more) > 0 && text != "{" {
		text += ","
	}
	b.WriteString(text + strings.Join(more, ",") + "}")
	return preset, nil
}

// written is a value of a tag as JSON.
func written(of, v string) (string, error) {
	switch {
	case of == "string":
		return quoted(v), nil
	case !json.Valid([]byte(v)):
		return "", fmt.Errorf("%q is no %s", v, of)
	}
	return v, nil
}

var (
	rawType    = reflect.TypeFor[json.RawMessage]()
	timeType   = reflect.TypeFor[time.Time]()
	textReader = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// kindOf is the JSON type of values of a Go type.
func kindOf(t reflect.Type) kind {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == rawType {
		return kind{}
	}
	if t == timeType || reflect.PointerTo(t).Implements(textReader) {
		return kind{of: "string"}
	}
	switch t.Kind() {
	case reflect.Bool:
		return kind{of: "boolean"}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return kind{of: "integer"}
	case reflect.Float32, reflect.Float64:
		return kind{of: "number"}
	case reflect.String:
		return kind{of: "string"}
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			return kind{of: "string"}
		}
		return kind{of: "array", items: kindOf(t.Elem()).of}
	case reflect.Struct, reflect.Map:
		return kind{of: "object"}
	default:
		return kind{}
	}
}

// typ writes the schema of a type.
func (p *params) typ(b *bytes.Buffer, t reflect.Type, depth int) error {
	if depth > maxNesting {
		return fmt.Errorf("its type is nested more than %d deep", maxNesting)
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	k := kindOf(t)
	switch {
	case t == timeType:
		b.WriteString(`{"type":"string","format":"date-time"}`)
	case k.of == "string" && t.Kind() == reflect.Slice:
		b.WriteString(`{"type":"string","contentEncoding":"base64"}`)
	case k.of == "array":
		b.WriteString(`{"type":"array","items":`)
		if err := p.typ(b, t.Elem(), depth+1); err != nil {
			return err
		}
		b.WriteByte('}')
	case k.of == "object" && t.Kind() == reflect.Map:
		if t.Key().Kind() != reflect.String {
			return errors.New("a map's keys must be text")
		}
		b.WriteString(`{"type":"object","additionalProperties":`)
		if err := p.typ(b, t.Elem(), depth+1); err != nil {
			return err
		}
		b.WriteByte('}')
	case k.of == "object":
		return p.object(b, t, depth)
	case k.of == "" && t != rawType && t.Kind() != reflect.Interface:
		return fmt.Errorf("cannot write values of %s as JSON", t)
	case k.of == "":
		b.WriteString(`{}`)
	default:
		b.WriteString(`{"type":` + quoted(k.of) + `}`)
	}
	return nil
}
