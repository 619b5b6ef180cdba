// Package ordered holds JSON whose objects keep the order of their members: models read
// a schema from its beginning, and what an author puts first matters most.
package ordered

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Member is one member of an object.
type Member struct {
	Key   string
	Value any // *Object, []any, string, json.Number or another number, bool, nil, json.RawMessage
}

// Object is a JSON object. The zero value is an empty one. It is not safe for concurrent
// use.
type Object struct{ Members []Member }

// Of makes an object of keys and values in turn.
func Of(pairs ...any) *Object {
	o := &Object{}
	for i := 0; i+1 < len(pairs); i += 2 {
		key, _ := pairs[i].(string)
		o.Set(key, pairs[i+1])
	}
	return o
}

// Get gives a member's value, nil where there is none.
func (o *Object) Get(key string) any {
	for i := range o.Members {
		if o.Members[i].Key == key {
			return o.Members[i].Value
		}
	}
	return nil
}

// Has reports whether there is a member.
func (o *Object) Has(key string) bool {
	for i := range o.Members {
		if o.Members[i].Key == key {
			return true
		}
	}
	return false
}

// Text gives a member that is a text, "" where there is none.
func (o *Object) Text(key string) string {
	s, _ := o.Get(key).(string)
	return s
}

// Object gives a member that is an object, nil where there is none.
func (o *Object) Object(key string) *Object {
	m, _ := o.Get(key).(*Object)
	return m
}

// List gives a member that is an array, nil where there is none.
func (o *Object) List(key string) []any {
	l, _ := o.Get(key).([]any)
	return l
}

// Set changes a member in its place, or adds it at the end.
func (o *Object) Set(key string, value any) {
	for i := range o.Members {
		if o.Members[i].Key == key {
			o.Members[i].Value = value
			return
		}
	}
	o.Members = append(o.Members, Member{key, value})
}

// First puts a member before all others.
func (o *Object) First(key string, value any) {
	o.Delete(key)
	o.Members = append([]Member{{key, value}}, o.Members...)
}

// Delete takes a member away.
func (o *Object) Delete(key string) {
	for i := range o.Members {
		if o.Members[i].Key == key {
			o.Members = append(o.Members[:i:i], o.Members[i+1:]...)
			return
		}
	}
}

// Clone copies an object and all in it.
func (o *Object) Clone() *Object {
	c := &Object{Members: make([]Member, len(o.Members))}
	for i, m := range o.Members {
		c.Members[i] = Member{m.Key, clone(m.Value)}
	}
	return c
}

func clone(v any) any {
	switch v := v.(type) {
	case *Object:
		return v.Clone()
	case []any:
		c := make([]any, len(v))
		for i := range v {
			c[i] = clone(v[i])
		}
		return c
	}
	return v
}

// MarshalJSON writes the members in their order, and text as it is: no character is
// escaped for HTML.
func (o *Object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range o.Members {
		if i > 0 {
			b.WriteByte(',')
		}
		if err := write(&b, m.Key); err != nil {
			return nil, err
		}
		b.WriteByte(':')
		if err := write(&b, m.Value); err != nil {
			return nil, err
		}
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

func write(b *bytes.Buffer, v any) error {
	switch v := v.(type) {
	case *Object: // by itself, since the encoder would escape what it gives
		text, err := v.MarshalJSON()
		b.Write(text)
		return err
	case []any:
		b.WriteByte('[')
		for i, e := range v {
			if i > 0 {
				b.WriteByte(',')
			}
			if err := write(b, e); err != nil {
				return err
			}
		}
		b.WriteByte(']')
		return nil
	}
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	b.Truncate(b.Len() - 1) // the line end
	return nil
}

// maxDepth is how deep objects and arrays may nest.
const maxDepth = 64

// Decode reads one JSON value: objects as *Object, arrays as []any, numbers as
// json.Number. Of members of one name the last counts, in the place of the first.
func Decode(text []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	v, err := decode(dec, 0)
	if err != nil {
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one JSON value")
	}
	return v, nil
}

// DecodeObject is Decode for an object.
func DecodeObject(text []byte) (*Object, error) {
	v, err := Decode(text)
	if err != nil {
		return nil, err
	}
	o, ok := v.(*Object)
	if !ok {
		return nil, errors.New("not a JSON object")
	}
	return o, nil
}

func decode(dec *json.Decoder, depth int) (any, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("nested more than %d deep", maxDepth)
	}
	t, err := dec.Token()
	if err != nil {
		return nil, err
	}
	switch t {
	case json.Delim('{'):
		o := &Object{}
		at := map[string]int{}
		for dec.More() {
			k, err := dec.Token()
			if err != nil {
				return nil, err
			}
			v, err := decode(dec, depth+1)
			if err != nil {
				return nil, err
			}
			key, _ := k.(string) // a decoder gives nothing else there
			if i, again := at[key]; again {
				o.Members[i].Value = v
				continue
			}
			at[key] = len(o.Members)
			o.Members = append(o.Members, Member{key, v})
		}
		_, err := dec.Token()
		return o, err
	case json.Delim('['):
		list := []any{}
		for dec.More() {
			v, err := decode(dec, depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err := dec.Token()
		return list, err
	}
	return t, nil
}

// Encode writes a value of the kinds of [Member] as JSON, text as it is.
func Encode(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	if err := write(&b, v); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
