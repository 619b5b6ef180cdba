package agentskills

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"openskill/sdk/skill"
)

// InlineSkill is a skill made in Go. It is put together before it is used, and not
// changed afterwards. What is wrong with it is told by [InlineSkill.Err]; [NewInMemory]
// refuses it then.
type InlineSkill struct {
	front        Frontmatter
	instructions string
	resources    []Resource
	scripts      []Script
	errs         []error
}

// NewInline makes a skill of instructions in Markdown.
func NewInline(f Frontmatter, instructions string) *InlineSkill {
	s := &InlineSkill{front: f, instructions: instructions}
	for _, p := range s.front.Problems() {
		s.fail("%s", p)
	}
	if len(s.Content()) > MaxContent {
		s.fail("the instructions have more than %d bytes", MaxContent)
	}
	return s
}

// Frontmatter is what NewInline was given.
func (s *InlineSkill) Frontmatter() Frontmatter { return s.front }

// Content is a SKILL.md of the frontmatter and the instructions.
func (s *InlineSkill) Content() string { return render(&s.front, s.instructions) }

// Resources are those that were added.
func (s *InlineSkill) Resources() []Resource { return s.resources }

// Scripts are those that were added.
func (s *InlineSkill) Scripts() []Script { return s.scripts }

// Err is nil if the skill can be used.
func (s *InlineSkill) Err() error { return errors.Join(s.errs...) }

func (s *InlineSkill) fail(format string, args ...any) {
	s.errs = append(s.errs, fmt.Errorf("agentskills: skill %s: "+format, append([]any{skill.CleanText(s.front.Name, 64)}, args...)...))
}

// AddResource adds something to read: text, bytes, any value as JSON, or a function
// that gives one each time it is read: func(context.Context) (any, error), or one
// without the context or without the error.
func (s *InlineSkill) AddResource(name string, value any, description string) *InlineSkill {
	read, err := readerOf(value)
	switch {
	case checkName("resource", name) != nil:
		s.fail("%q cannot be the name of a resource", name)
	case err != nil:
		s.fail("resource %s: %w", name, err)
	case slices.ContainsFunc(s.resources, func(r Resource) bool { return r.Info().Name == name }):
		s.fail("there are two resources %s", name)
	default:
		s.resources = append(s.resources, &goResource{skill.AgentFile{Name: name, Description: description, MediaType: mediaType(name)}, read})
	}
	return s
}

// AddScript adds a function that callers can run. It takes a context, or not, and a
// struct whose fields are the parameters, or none; it gives a value, or none, and an
// error, or none. See [NewScript] for the fields.
func (s *InlineSkill) AddScript(name string, function any, description string) *InlineSkill {
	return s.Add(newScript(name, description, reflect.ValueOf(function)))
}

// Add adds a script as [NewScript] makes them, or any other.
func (s *InlineSkill) Add(script Script) *InlineSkill {
	name := script.Info().Name
	g, _ := script.(*GoScript)
	switch {
	case g != nil && g.err != nil:
		s.fail("script %s: %w", name, g.err)
	case checkName("script", name) != nil:
		s.fail("%q cannot be the name of a script", name)
	case slices.ContainsFunc(s.scripts, func(o Script) bool { return o.Info().Name == name }):
		s.fail("there are two scripts %s", name)
	default:
		s.scripts = append(s.scripts, script)
	}
	return s
}

// Typed makes a skill of a struct, or a pointer to one: of each exported field with a
// tag resource:"name" or script:"name" one of these, with the description of its tag
// description:"…". Fields of resources hold values or functions, those of scripts
// functions, methods of the struct among them. An empty name is that of the field, in
// lower case with hyphens.
func Typed(f Frontmatter, instructions string, members any) *InlineSkill {
	s := NewInline(f, instructions)
	v := reflect.Indirect(reflect.ValueOf(members))
	if v.Kind() != reflect.Struct {
		s.fail("Typed needs a struct or a pointer to one, not %T", members)
		return s
	}
	for i := range v.NumField() {
		field := v.Type().Field(i)
		if !field.IsExported() {
			continue
		}
		description := field.Tag.Get("description")
		name, is := field.Tag.Lookup("resource")
		if is {
			s.AddResource(nameOr(name, field.Name), v.Field(i).Interface(), description)
		}
		if name, is = field.Tag.Lookup("script"); is {
			s.Add(newScript(nameOr(name, field.Name), description, underlying(v.Field(i))))
		}
	}
	return s
}

// underlying gives what an interface field holds.
func underlying(v reflect.Value) reflect.Value {
	if v.Kind() == reflect.Interface {
		return v.Elem()
	}
	return v
}

// nameOr turns ConversionTable into conversion-table where there is no name.
func nameOr(name, field string) string {
	if name != "" {
		return name
	}
	var b strings.Builder
	for i, c := range field {
		if c >= 'A' && c <= 'Z' {
			if i > 0 {
				b.WriteByte('-')
			}
			c += 'a' - 'A'
		}
		b.WriteRune(c)
	}
	return b.String()
}

// goResource is a value of this process.
type goResource struct {
	info skill.AgentFile
	read func(ctx context.Context) (any, error)
}

func (r *goResource) Info() skill.AgentFile { return r.info }

// Read gives the value as bytes.
func (r *goResource) Read(ctx context.Context) ([]byte, error) {
	var v any
	err := guarded(func() (err error) { v, err = r.read(ctx); return err })
	if err != nil {
		return nil, told("resource", r.info.Name, err)
	}
	t, err := textOf(v)
	if err == nil && len(t) > DefaultMaxResource {
		return nil, &skill.Error{
			Op: "agentskills.read", Code: skill.PayloadTooLarge, Subject: r.info.Name,
			Message: fmt.Sprintf("%s is too large: %s, the limit is %s", r.info.Name, sized(int64(len(t))), sized(DefaultMaxResource)),
		}
	}
	return []byte(t), err
}

// readerOf makes one function of the forms that a resource may have.
func readerOf(value any) (func(context.Context) (any, error), error) {
	switch f := value.(type) {
	case nil:
		return nil, errors.New("has no value")
	case func(context.Context) (any, error):
		return f, nil
	case func(context.Context) (string, error):
		return func(ctx context.Context) (any, error) { return f(ctx) }, nil
	case func(context.Context) ([]byte, error):
		return func(ctx context.Context) (any, error) { return f(ctx) }, nil
	}
	v := reflect.ValueOf(value)
	if v.Kind() != reflect.Func {
		if _, err := textOf(value); err != nil {
			return nil, err
		}
		return func(context.Context) (any, error) { return value, nil }, nil
	}
	s := newScript("resource", "", v)
	if s.err != nil {
		return nil, s.err
	}
	if len(s.parameters.Members) > 0 {
		return nil, errors.New("a resource's function takes no parameters")
	}
	return func(ctx context.Context) (any, error) { return s.call(ctx, nil) }, nil
}

// guarded runs code of an operator's own program, which may panic; the host must not
// end for it.
func guarded(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &skill.Error{Op: "agentskills", Code: skill.Internal, Err: fmt.Errorf("panic: %v", p)}
		}
	}()
	return f()
}

// told makes an error of a function one for the caller.
func told(kind, name string, err error) error {
	switch _, ok := errors.AsType[*skill.Error](err); {
	case ok:
		return err
	case errors.Is(err, context.DeadlineExceeded):
		return &skill.Error{Op: "agentskills.run", Code: skill.Timeout, Subject: name, Message: fmt.Sprintf("the %s %s timed out", kind, name), Err: err}
	case errors.Is(err, context.Canceled):
		return cancelled(err)
	}
	return &skill.Error{
		Op: "agentskills.run", Code: skill.ToolInvocationError, Subject: name,
		Message: skill.CleanText(fmt.Sprintf("the %s %s failed: %v", kind, name, err), skill.MaxMessage), Err: err,
	}
}

// MaxOutput is the size in bytes of what a script made in Go may give.
const MaxOutput = 1 << 20

// textOf is what callers read of a value.
func textOf(v any) (string, error) {
	switch v := v.(type) {
	case nil:
		return "", nil
	case string:
		return v, nil
	case []byte:
		return string(v), nil
	}
	b, err := json.Marshal(v)
	if err != nil {
		return "", &skill.Error{Op: "agentskills.run", Code: skill.InvalidOutput, Message: "cannot write the value as JSON", Err: err}
	}
	return string(b), nil
}
