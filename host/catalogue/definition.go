package catalogue

import (
	"bytes"
	"encoding/json"
	"math/big"
	"slices"
	"strings"
	"time"

	"openskill/host/manifest"
	"openskill/sdk/skill"
)

// The sources of a definition.
const (
	Seeded  = "seed" // files of a host
	Created = "edge" // HTTP or the command line
)

// Definition is one row.
type Definition struct {
	ID       string // UUID
	Name     skill.ID
	Version  string
	Digest   string
	Kind     skill.Kind
	Entry    string // relative to the folder
	Source   string // Seeded or Created
	Place    string // file, and line of a list, that seeded it last, as that host names it; "" of Created
	Manifest []byte // of Created: the entry as JSON; else nil

	Values                       // what holds
	Seed         Values          // what the seed, or its creation, said last
	Changed      []string        // names of the fields of Values that the operator changed, in order
	InputSchema  json.RawMessage // never empty
	OutputSchema json.RawMessage

	CreatedAt time.Time // UTC, in microseconds, as all times here
	UpdatedAt time.Time
	UpdatedBy string    // principal; "" of a seed
	DeletedAt time.Time // zero: it is there
	Revision  uint64    // grows with each change of any definition; set by the store
}

// Values are what can be changed of a definition.
type Values struct {
	Description string      `json:"description"`
	Enabled     bool        `json:"is_enabled"`
	Cost        *skill.Cost `json:"cost_metadata"` // nil: nothing is said
}

// The names of Values in [Definition.Changed], in JSON and in the database.
const (
	fieldDescription = "description"
	fieldEnabled     = "is_enabled"
	fieldCost        = "cost_metadata"
)

func (d *Definition) changed(field string) bool { return slices.Contains(d.Changed, field) }

// mark notes that a field was changed, or given back.
func (d *Definition) mark(field string, changed bool) {
	d.Changed = slices.DeleteFunc(slices.Clone(d.Changed), func(s string) bool { return s == field })
	if changed {
		d.Changed = append(d.Changed, field)
		slices.Sort(d.Changed)
	}
}

// settle brings what was not changed to what the seed says.
func (d *Definition) settle() {
	if !d.changed(fieldDescription) {
		d.Description = d.Seed.Description
	}
	if !d.changed(fieldEnabled) {
		d.Enabled = d.Seed.Enabled
	}
	if !d.changed(fieldCost) {
		d.Cost = d.Seed.Cost
	}
}

// clone is a copy that may be changed.
func (d *Definition) clone() *Definition {
	c := *d
	c.Changed = slices.Clone(d.Changed)
	return &c
}

// same reports whether two say the same, apart from when, by whom, and where the files
// lie.
func (d *Definition) same(o *Definition) bool {
	return d.Version == o.Version && d.Digest == o.Digest && d.Kind == o.Kind && d.Entry == o.Entry && d.Source == o.Source &&
		bytes.Equal(d.Manifest, o.Manifest) && d.Values.same(o.Values) && d.Seed.same(o.Seed) && slices.Equal(d.Changed, o.Changed) &&
		sameJSON(d.InputSchema, o.InputSchema) && sameJSON(d.OutputSchema, o.OutputSchema) && d.DeletedAt.Equal(o.DeletedAt)
}

func (v Values) same(o Values) bool {
	if (v.Cost == nil) != (o.Cost == nil) || v.Cost != nil && !sameCost(*v.Cost, *o.Cost) {
		return false
	}
	return v.Description == o.Description && v.Enabled == o.Enabled
}

func sameCost(a, b skill.Cost) bool {
	other := sameJSON(json.RawMessage(a.Other), json.RawMessage(b.Other))
	a.Other, b.Other = "", ""
	return a == b && other
}

// sameJSON compares values and not text: a database may write JSON its own way.
func sameJSON(a, b json.RawMessage) bool {
	if bytes.Equal(a, b) {
		return true
	}
	ca, errA := canonical(a)
	cb, errB := canonical(b)
	return errA == nil && errB == nil && bytes.Equal(ca, cb)
}

// canonical writes JSON with the keys of objects in order, and each number in one way.
func canonical(b []byte) ([]byte, error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	return marshal(plainNumbers(v))
}

// number is how canonical writes one, and no string.
type number struct{ N string }

// plainNumbers turns numbers into fractions: 1e2, 100 and 100.0 are one. Those with an
// exponent that no schema of a manifest has, which would be long, stay as they are.
func plainNumbers(v any) any {
	switch v := v.(type) {
	case json.Number:
		_, exponent, _ := strings.Cut(strings.ToLower(v.String()), "e")
		if len(exponent) > 4 {
			return v
		}
		if r, ok := new(big.Rat).SetString(v.String()); ok {
			return number{r.RatString()}
		}
	case []any:
		for i := range v {
			v[i] = plainNumbers(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = plainNumbers(v[k])
		}
	}
	return v
}

// marshal writes a value without escapes that YAML has not.
func marshal(v any) ([]byte, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSpace(out.Bytes()), nil
}

// of is what a seed says of a skill.
func of(s *manifest.Skill, place string) *Definition {
	d := &s.Descriptor
	v := Values{Description: d.Description, Enabled: d.Enabled, Cost: d.Cost}
	return &Definition{
		Name: d.ID, Version: d.Version, Digest: d.Digest, Kind: s.Primary.Kind, Entry: s.Primary.Entry,
		Source: Seeded, Place: place, Values: v, Seed: v, InputSchema: d.InputSchema, OutputSchema: d.OutputSchema,
	}
}

// Type is the first part of the kind.
func (d *Definition) Type() string { t, _, _ := strings.Cut(string(d.Kind), ":"); return t }

// Runtime is its second part.
func (d *Definition) Runtime() string { _, r, _ := strings.Cut(string(d.Kind), ":"); return r }
