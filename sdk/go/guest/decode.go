package guest

import (
	"bytes"
	"encoding"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Decode puts a value as it comes in an input (a field of type any) into a variable,
// by the rules for inputs: for fields whose type depends on other fields. Field is the
// value's name in errors.
func Decode(v any, field string, into any) error {
	dst := reflect.ValueOf(into)
	if dst.Kind() != reflect.Pointer || dst.IsNil() {
		return fmt.Errorf("guest.Decode: a pointer is needed, not %T", into)
	}
	return decode(v, dst.Elem(), field)
}

var (
	numberType      = reflect.TypeFor[json.Number]()
	unmarshalerType = reflect.TypeFor[json.Unmarshaler]()
	textType        = reflect.TypeFor[encoding.TextUnmarshaler]()
)

func mustBe(path, what string) error {
	if path == "" {
		path = "input"
	}
	return Invalid(path, "type", path+": must be "+what)
}

// decode sets dst to v, a value as readCall makes them.
func decode(v any, dst reflect.Value, path string) error {
	if t := dst.Type(); t != numberType && dst.Kind() != reflect.Pointer && dst.CanAddr() {
		switch p := reflect.PointerTo(t); {
		case p.Implements(unmarshalerType):
			return unmarshal(v, dst, path)
		case p.Implements(textType):
			s, ok := v.(string)
			if !ok {
				return mustBe(path, "a string")
			}
			u, _ := dst.Addr().Interface().(encoding.TextUnmarshaler)
			return accepted(path, u.UnmarshalText([]byte(s)))
		}
	}
	switch dst.Kind() {
	case reflect.Interface:
		if dst.NumMethod() > 0 {
			return fmt.Errorf("the field %s has the type %s, which cannot be read from JSON", path, dst.Type())
		}
		if v != nil {
			dst.Set(reflect.ValueOf(v))
		}
		return nil
	case reflect.Pointer:
		if v == nil {
			return nil
		}
		dst.Set(reflect.New(dst.Type().Elem()))
		return decode(v, dst.Elem(), path)
	case reflect.String:
		if dst.Type() == numberType {
			n, ok := v.(json.Number)
			if !ok {
				return mustBe(path, "a number")
			}
			dst.SetString(n.String())
			return nil
		}
		s, ok := v.(string)
		if !ok {
			return mustBe(path, "a string")
		}
		dst.SetString(s)
		return nil
	case reflect.Bool:
		b, ok := v.(bool)
		if !ok {
			return mustBe(path, "true or false")
		}
		dst.SetBool(b)
		return nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return integer(v, dst, path)
	case reflect.Float32, reflect.Float64:
		n, ok := v.(json.Number)
		if !ok {
			return mustBe(path, "a number")
		}
		f, err := n.Float64()
		if err != nil || dst.OverflowFloat(f) {
			return Invalid(path, "range", path+": must be a number within the range of "+dst.Type().String())
		}
		dst.SetFloat(f)
		return nil
	case reflect.Slice, reflect.Array:
		return list(v, dst, path)
	case reflect.Map:
		return mapping(v, dst, path)
	case reflect.Struct:
		return structure(v, dst, path)
	default:
		return fmt.Errorf("the field %s has the type %s, which cannot be read from JSON", path, dst.Type())
	}
}

// accepted is what a type's own reading says.
func accepted(path string, err error) error {
	if err == nil {
		return nil
	}
	return Invalid(path, "value", path+": "+err.Error())
}

func unmarshal(v any, dst reflect.Value, path string) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return err
	}
	u, _ := dst.Addr().Interface().(json.Unmarshaler)
	return accepted(path, u.UnmarshalJSON(raw))
}

// integer takes 3.0 for 3, as JSON Schema does. What is written with a point or an
// exponent is a double.
func integer(v any, dst reflect.Value, path string) error {
	n, ok := v.(json.Number)
	if !ok {
		return mustBe(path, "an integer")
	}
	text := n.String()
	if strings.ContainsAny(text, ".eE") {
		f, err := n.Float64()
		if err != nil || f != math.Trunc(f) {
			return mustBe(path, "an integer")
		}
		text = strconv.FormatFloat(f, 'f', -1, 64)
	}
	if text == "-0" {
		text = "0"
	}
	bits := dst.Type().Bits()
	if dst.CanInt() {
		i, err := strconv.ParseInt(text, 10, bits)
		if err != nil {
			most := int64(1)<<(bits-1) - 1
			return Invalid(path, "range", fmt.Sprintf("%s: must be an integer from %d to %d", path, -most-1, most))
		}
		dst.SetInt(i)
		return nil
	}
	u, err := strconv.ParseUint(text, 10, bits)
	if err != nil {
		return Invalid(path, "range", fmt.Sprintf("%s: must be an integer from 0 to %d", path, uint64(math.MaxUint64)>>(64-bits)))
	}
	dst.SetUint(u)
	return nil
}

func list(v any, dst reflect.Value, path string) error {
	if s, ok := v.(string); ok && dst.Kind() == reflect.Slice && dst.Type().Elem().Kind() == reflect.Uint8 {
		b, err := base64.StdEncoding.DecodeString(s)
		if err != nil {
			return mustBe(path, "bytes in base64")
		}
		dst.SetBytes(b)
		return nil
	}
	items, ok := v.([]any)
	if !ok {
		return mustBe(path, "a list")
	}
	if dst.Kind() == reflect.Slice {
		dst.Set(reflect.MakeSlice(dst.Type(), len(items), len(items)))
	} else if len(items) != dst.Len() {
		return Invalid(path, "length", fmt.Sprintf("%s: must be a list of %d", path, dst.Len()))
	}
	for i, item := range items {
		if err := decode(item, dst.Index(i), path+"["+strconv.Itoa(i)+"]"); err != nil {
			return err
		}
	}
	return nil
}

func mapping(v any, dst reflect.Value, path string) error {
	object, ok := v.(map[string]any)
	if !ok {
		return mustBe(path, "an object")
	}
	t := dst.Type()
	if t.Key().Kind() != reflect.String {
		return fmt.Errorf("the field %s is a map whose keys are no strings", path)
	}
	dst.Set(reflect.MakeMapWithSize(t, len(object)))
	for _, key := range sorted(object) {
		one := reflect.New(t.Elem()).Elem()
		if err := decode(object[key], one, below(path, key)); err != nil {
			return err
		}
		dst.SetMapIndex(reflect.ValueOf(key).Convert(t.Key()), one)
	}
	return nil
}

// structure says what is wrong with fields that are there before it says what is
// missing, as the SDKs for other languages do.
func structure(v any, dst reflect.Value, path string) error {
	object, ok := v.(map[string]any)
	if !ok {
		return mustBe(path, "an object")
	}
	fields := map[string]field{}
	var order []string
	for _, f := range fieldsOf(dst.Type(), nil) {
		if _, shadowed := fields[f.name]; !shadowed {
			fields[f.name] = f
			order = append(order, f.name)
		}
	}
	for _, key := range sorted(object) {
		f, known := fields[key]
		if !known {
			continue
		}
		if err := decode(object[key], at(dst, f.index), below(path, key)); err != nil {
			return err
		}
	}
	for _, name := range order {
		if _, there := object[name]; !there && !fields[name].optional {
			return Invalid(below(path, name), "missing", below(path, name)+": required")
		}
	}
	return nil
}

// at is the field of an index; the pointers on the way to it are made.
func at(v reflect.Value, index []int) reflect.Value {
	for i, n := range index {
		if i > 0 && v.Kind() == reflect.Pointer {
			if v.IsNil() {
				v.Set(reflect.New(v.Type().Elem()))
			}
			v = v.Elem()
		}
		v = v.Field(n)
	}
	return v
}

type field struct {
	name     string
	index    []int
	optional bool
}

// fieldsOf gives the fields of a struct by their names in JSON, those of embedded
// structs behind its own.
func fieldsOf(t reflect.Type, index []int) []field {
	var own, embedded []field
	for i := range t.NumField() {
		f := t.Field(i)
		tag := f.Tag.Get("json")
		if tag == "-" {
			continue
		}
		name, options, _ := strings.Cut(tag, ",")
		here := append(slices.Clone(index), i)
		if f.Anonymous && name == "" {
			inner := f.Type
			if inner.Kind() == reflect.Pointer {
				inner = inner.Elem()
			}
			if inner.Kind() == reflect.Struct && (f.IsExported() || f.Type.Kind() == reflect.Struct) && len(index) < 8 {
				embedded = append(embedded, fieldsOf(inner, here)...)
				continue
			}
		}
		if !f.IsExported() {
			continue
		}
		if name == "" {
			name = f.Name
		}
		words := strings.Split(options, ",")
		own = append(own, field{name, here, f.Type.Kind() == reflect.Pointer || slices.Contains(words, "omitempty") || slices.Contains(words, "omitzero")})
	}
	return append(own, embedded...)
}

func below(path, name string) string {
	name = head(name, 64)
	if path == "" {
		return name
	}
	return path + "." + name
}

func sorted(object map[string]any) []string {
	keys := make([]string, 0, len(object))
	for key := range object {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// encode is an answer as JSON, in one line.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return b.Bytes(), err
}

// noNumber finds the number that JSON has no word for: its path, "" if there is none.
func noNumber(v reflect.Value, path string, depth int) string {
	if depth > 100 {
		return ""
	}
	switch v.Kind() {
	case reflect.Float32, reflect.Float64:
		if math.IsNaN(v.Float()) || math.IsInf(v.Float(), 0) {
			return path
		}
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			return noNumber(v.Elem(), path, depth+1)
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			if p := noNumber(v.Index(i), path+"["+strconv.Itoa(i)+"]", depth+1); p != "" {
				return p
			}
		}
	case reflect.Map:
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		for _, key := range keys {
			if p := noNumber(v.MapIndex(key), below(path, fmt.Sprint(key)), depth+1); p != "" {
				return p
			}
		}
	case reflect.Struct:
		for _, f := range fieldsOf(v.Type(), nil) {
			one, err := v.FieldByIndexErr(f.index)
			if err != nil {
				continue // of an embedded struct that is not there
			}
			if p := noNumber(one, below(path, f.name), depth+1); p != "" {
				return p
			}
		}
	default: // holds no numbers, or none that are odd
	}
	return ""
}
