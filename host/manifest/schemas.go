package manifest

import (
	"openskill/host/internal/table"
	"openskill/sdk/skill"
)

// memoryOfSchemas is the most that compiled schemas take together, in bytes. Tenants share it.
const memoryOfSchemas = 128 << 20

// slowSchema is the size of a compiled schema, in bytes, from which on to compile it takes more
// than some milliseconds.
const slowSchema = 1 << 20

// Schemas keeps schemas that were compiled to check a value, for the next one. Skills have
// theirs as text: compiled, it takes a hundred times as much memory. It is safe for concurrent
// use.
type Schemas struct{ kept *table.Cache }

// NewSchemas makes an empty one.
func NewSchemas() *Schemas { return &Schemas{table.NewCache(memoryOfSchemas)} }

// of is a schema of a tenant, compiled.
func (s *Schemas) of(tenant string, f *field) (*Schema, error) {
	if compiled := s.has(tenant, f); compiled != nil {
		return compiled, nil
	}
	compiled, problems := CompileSchema(f.text)
	if len(problems) > 0 { // it compiled when it was read; fail closed
		return nil, &skill.Error{Op: "registry.Schemas", Code: skill.Internal, Message: "the schema of the skill cannot be compiled", Err: problems[0]}
	}
	if s != nil {
		s.kept.Put(tenant, f.sum, revision{}, compiled, compiled.Size())
	}
	return compiled, nil
}

// revision is that of a schema, whose key says all.
type revision struct{}

// has is a schema that is compiled; nil: it is not.
func (s *Schemas) has(tenant string, f *field) *Schema {
	if s == nil {
		return nil
	}
	v, _ := s.kept.Get(tenant, f.sum, revision{})
	compiled, _ := v.(*Schema) // all are
	return compiled
}

// SlowToCheck reports whether a check of an input has to compile a large schema first.
func (s *Skill) SlowToCheck() bool {
	return s.input != nil && s.input.size > slowSchema && s.schemas.has(s.Owner, s.input) == nil
}
