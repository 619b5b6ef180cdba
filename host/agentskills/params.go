package agentskills

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"openskill/internal/ordered"
)

// maxNesting is how deep types of parameters may be nested; one that holds itself has
// no end.
const maxNesting = 8

var (
	rawType    = reflect.TypeFor[json.RawMessage]()
	timeType   = reflect.TypeFor[time.Time]()
	textReader = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// schemaOf makes the JSON Schema of the values of a Go type.
func schemaOf(t reflect.Type, depth int) (*ordered.Object, error) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case depth > maxNesting:
		return nil, fmt.Errorf("its type is nested more than %d deep", maxNesting)
	case t == rawType || t.Kind() == reflect.Interface:
		return &ordered.Object{}, nil
	case t == timeType:
		return ordered.Of("type", "string", "format", "date-time"), nil
	case reflect.PointerTo(t).Implements(textReader):
		return ordered.Of("type", "string"), nil
	}
	switch t.Kind() { //nolint:exhaustive // what is not here cannot be written as JSON
	case reflect.Bool:
		return ordered.Of("type", "boolean"), nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return ordered.Of("type", "integer"), nil
	case reflect.Float32, reflect.Float64:
		return ordered.Of("type", "number"), nil
	case reflect.String:
		return ordered.Of("type", "string"), nil
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			return ordered.Of("type", "string", "contentEncoding", "base64"), nil
		}
		items, err := schemaOf(t.Elem(), depth+1)
		return ordered.Of("type", "array", "items", items), err
	case reflect.Map:
		if t.Key().Kind() != reflect.String {
			return nil, errors.New("a map's keys must be text")
		}
		values, err := schemaOf(t.Elem(), depth+1)
		return ordered.Of("type", "object", "additionalProperties", values), err
	case reflect.Struct:
		return objectOf(t, depth)
	}
	return nil, fmt.Errorf("cannot write values of %s as JSON", t)
}

// objectOf makes the schema of a struct; what may be left out is not required.
func objectOf(t reflect.Type, depth int) (*ordered.Object, error) {
	properties, required := &ordered.Object{}, []any{}
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name != "-" {
			return nil, fmt.Errorf("the field %s is embedded; write its fields out", f.Name)
		}
		if !f.IsExported() || name == "-" {
			continue
		}
		if name == "" {
			name = f.Name
		}
		s, err := fieldOf(&f, depth)
		if err != nil {
			return nil, fmt.Errorf("the field %s: %w", f.Name, err)
		}
		properties.Set(name, s)
		optional := slices.ContainsFunc(strings.Split(options, ","), func(o string) bool { return o == "omitempty" || o == "omitzero" })
		if !optional && f.Type.Kind() != reflect.Pointer && !s.Has("default") {
			required = append(required, name)
		}
	}
	o := ordered.Of("type", "object", "properties", properties)
	if len(required) > 0 {
		o.Set("required", required)
	}
	o.Set("additionalProperties", false)
	return o, nil
}

// fieldOf makes the schema of one field, with what its tags say.
func fieldOf(f *reflect.StructField, depth int) (*ordered.Object, error) {
	s, err := schemaOf(f.Type, depth+1)
	if err != nil {
		return nil, err
	}
	of := s.Text("type")
	if d := f.Tag.Get("description"); d != "" {
		s.Set("description", d)
	}
	if list := f.Tag.Get("enum"); list != "" {
		var values []any
		for _, v := range strings.Split(list, ",") {
			w, err := tagValue(of, strings.TrimSpace(v))
			if err != nil {
				return nil, err
			}
			values = append(values, w)
		}
		s.Set("enum", values)
	}
	for _, key := range []string{"minimum", "maximum", "default"} {
		v, ok := f.Tag.Lookup(key)
		switch {
		case !ok:
			continue
		case key != "default" && of != "integer" && of != "number":
			return nil, fmt.Errorf("only numbers have a %s", key)
		case key == "default" && depth > 0:
			return nil, errors.New("only parameters have defaults, not what is within them")
		}
		w, err := tagValue(of, v)
		if err != nil {
			return nil, err
		}
		s.Set(key, w)
	}
	return s, nil
}

// tagValue is a value of a tag as JSON has it.
func tagValue(of, v string) (any, error) {
	if of == "string" {
		return v, nil
	}
	w, err := ordered.Decode([]byte(v))
	if err != nil {
		return nil, fmt.Errorf("%q is no %s", v, of)
	}
	return w, nil
}
