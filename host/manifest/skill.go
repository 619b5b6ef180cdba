package manifest

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"openskill/sdk/skill"
)

// Skill is one skill of this host, ready to be called. It is not changed after
// [Open] and may be shared.
type Skill struct {
	Descriptor  skill.Descriptor
	Owner       string           // the tenant whose upload it is; "" for the operator's own
	Folder      string           // absolute path on the host
	Primary     skill.Target     // how it is executed
	Fallback    *skill.Target    // used when the primary's runner is not ready; nil for none
	Limits      skill.Limits     // what the manifest asks, held below the host's caps; no field is zero
	Asked       skill.LimitsJSON // as the manifest has them; zero is what it leaves to the host
	Permissions skill.Permissions
	Granted     *skill.Grants // what the operator allowed these files alone, beside what the settings allow; nil: nothing
	Packages    string        // folder of the packages that its scripts see; "": none
	Code        bool          // it is run_code
	Language    string        // build.language of the manifest; "" where it says nothing

	input, output *field // nil: any object
	schemas       *Schemas
	sums          map[string]string // digests of the files that it starts with; nil: nobody has read them
}

// keepSums keeps the digests of the files that the skill starts with, of those of its folder.
func (s *Skill) keepSums(all map[string]string) {
	s.sums = map[string]string{s.Primary.File(): all[s.Primary.File()]}
	if s.Fallback != nil {
		s.sums[s.Fallback.File()] = all[s.Fallback.File()]
	}
}

// Spec is what a runner is asked to prepare for calls of a target on behalf of a tenant. The
// files of a stranger's skill are those that were admitted; an owner may edit the others.
func (s *Skill) Spec(of skill.Target, tenant string) *skill.Spec {
	d := &s.Descriptor
	spec := &skill.Spec{
		SkillID: d.ID, Tenant: tenant, Folder: s.Folder, Entry: of.Entry, Digest: d.Digest, Trust: d.Trust, Requires: d.Requires,
	}
	if d.Trust < skill.Trusted {
		spec.Module = s.sums[of.File()]
	}
	return spec
}

// anyObject is the schema in the catalogue of a skill that has none.
var anyObject = json.RawMessage(`{"type":"object"}`)

// CheckInput reports what is wrong with the input of a call, as an *skill.Error
// with the code INVALID_ARGUMENT, or FORBIDDEN_PATH where a field of the format
// [DataPath] leaves the data folder. Details hold {"fields": […]}, and
// "total" where there are more than are listed. The numbers in value are
// json.Number, with bounded exponents. A check that would take more steps is such an
// error too, and wraps [ErrSteps].
func (s *Skill) CheckInput(value any, steps int) error {
	object, ok := value.(map[string]any)
	if !ok {
		return s.fault(skill.InvalidArgument, &Faults{Total: 1, Fields: []Field{{
			Problem: "is not an object", Expected: "a JSON object with the fields of the skill's input_schema",
		}}})
	}
	if s.input == nil {
		return nil
	}
	compiled, err := s.schemas.of(s.Owner, s.input)
	if err != nil {
		return err
	}
	faults := compiled.Check(value, steps)
	if faults == nil {
		faults = &Faults{}
	}
	s.twins(object, faults)
	switch {
	case faults.Total == 0:
		return nil
	case faults.Forbidden:
		return s.fault(skill.ForbiddenPath, faults)
	}
	return s.fault(skill.InvalidArgument, faults)
}

// twins refuses a field that the schema does not declare and that differs from a
// declared one only in case. Some guests match names without case, and would take
// the undeclared, unchecked field for the declared one.
func (s *Skill) twins(object map[string]any, faults *Faults) {
	if len(object) == 0 {
		return
	}
	declared := map[string]string{}
	for _, name := range s.input.names {
		declared[folded(name)] = name
	}
	for given := range object {
		name, ok := declared[folded(given)]
		if _, known := slices.BinarySearch(s.input.names, given); !ok || known {
			continue
		}
		faults.Total++
		if len(faults.Fields) < MaxFields {
			faults.Fields = append(faults.Fields, Field{
				Field: skill.CleanText("/"+given, 200), Problem: "is not known", Expected: "the name written as " + name,
			})
		}
	}
}

// folded is the same text for names that differ in case alone, as strings.EqualFold has it.
func folded(name string) string {
	return strings.Map(func(r rune) rune {
		least := r
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			least = min(least, f)
		}
		return least
	}, name)
}

// ErrSteps is why a check ended that would take more steps than it may.
var ErrSteps = errors.New("the check takes too many steps")

func (s *Skill) fault(code skill.Code, faults *Faults) error {
	var why error
	if faults.Over {
		why = ErrSteps
	}
	details := map[string]any{"fields": faults.Fields}
	if faults.Total > len(faults.Fields) {
		details["total"] = faults.Total
	}
	what := "the input does not match the skill's schema: "
	if code == skill.ForbiddenPath {
		what = "the input names a path outside the data folder: "
	}
	return &skill.Error{
		Op: "registry.CheckInput", Code: code, Subject: string(s.Descriptor.ID),
		Message: skill.CleanText(what+faults.Summary(), skill.MaxMessage), Details: details, Err: why,
	}
}

// CheckOutput reports what is wrong with the data of a result, as an *skill.Error
// with the code INVALID_OUTPUT.
func (s *Skill) CheckOutput(value any) error {
	if s.output == nil {
		return nil
	}
	compiled, err := s.schemas.of(s.Owner, s.output)
	if err != nil {
		return err
	}
	faults := compiled.Check(value, MaxSteps)
	if faults == nil {
		return nil
	}
	details := map[string]any{"fields": faults.Fields}
	if faults.Total > len(faults.Fields) {
		details["total"] = faults.Total
	}
	return &skill.Error{
		Op: "registry.CheckOutput", Code: skill.InvalidOutput, Subject: string(s.Descriptor.ID),
		Message: skill.CleanText("the skill's output does not match its schema: "+faults.Summary(), skill.MaxMessage),
		Details: details,
	}
}

// build makes the Skill of a checked manifest.
func (o *Options) build(m *manifest, folder, digest string, trust skill.Trust) *Skill {
	want := m.limits.Limits()
	limits := want.Or(o.Defaults).Lower(o.Caps)
	s := &Skill{
		Folder: folder, Primary: m.primary, Fallback: m.fallback, Limits: limits, Asked: m.limits, Language: m.language,
		schemas: o.Schemas,
	}
	if m.permissions != nil {
		s.Permissions = *m.permissions
	}
	s.Descriptor = skill.Descriptor{
		ID: m.id, Version: m.version, Description: m.description,
		Runner: m.primary.Kind, Trust: trust, Digest: digest, Enabled: m.enabled, Idempotent: m.idempotent,
		Limits: limits.JSON(), Permissions: s.Permissions,
		InputSchema: anyObject, OutputSchema: anyObject, Cost: m.cost, Requires: m.requires,
	}
	if m.fallback != nil {
		s.Descriptor.Fallback = m.fallback.Kind
	}
	if m.input != nil {
		s.input, s.Descriptor.InputSchema = m.input, m.input.text
	}
	if m.output != nil {
		s.output, s.Descriptor.OutputSchema = m.output, m.output.text
	}
	return s
}

// incomplete says which limit of the host is not set.
func incomplete(what string, l skill.Limits) error {
	if name := l.Unset(); name != "" {
		return fmt.Errorf("registry: %s: %s is zero; every limit of the host must be set", what, name)
	}
	return nil
}
