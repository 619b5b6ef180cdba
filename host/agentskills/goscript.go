package agentskills

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"openskill/host/manifest"
	"openskill/internal/ordered"
	"openskill/internal/strictjson"
	"openskill/sdk/skill"
)

// GoScript is a script that is a function of this process.
type GoScript struct {
	info       skill.AgentFile
	err        error            // what is wrong with the function
	parameters *ordered.Object  // their schemas, by name
	checked    *manifest.Schema // of all of them
	call       func(ctx context.Context, arg []byte) (any, error)
}

// NewScript makes a script of a function whose parameters are the fields of T, a
// struct. Their tags say what callers are told:
//
//	json:"value"         the name; a field with omitempty, a pointer, or one with a
//	                     default may be left out
//	description:"…"      what it is for
//	enum:"a,b"           the values that are accepted
//	default:"1"          what it is where it is left out
//	minimum:"0" maximum:"10"
//
// Fields are booleans, numbers, text, lists, maps of text, structs, time.Time (text as
// RFC 3339) and json.RawMessage for anything. A call that does not match is refused
// before the function sees it, with every wrong field named. A function must mind its
// context: nothing else ends it.
func NewScript[T any](name, description string, function func(context.Context, T) (any, error)) *GoScript {
	return newScript(name, description, reflect.ValueOf(function))
}

var (
	contextType = reflect.TypeFor[context.Context]()
	errorType   = reflect.TypeFor[error]()

	noParameters = reflect.TypeFor[struct{}]()
)

func newScript(name, description string, f reflect.Value) *GoScript {
	s := &GoScript{info: skill.AgentFile{Name: name, Description: description}}
	if f.Kind() != reflect.Func || f.IsNil() {
		s.err = errors.New("needs a function")
		return s
	}
	t := f.Type()
	takesContext := t.NumIn() > 0 && t.In(0) == contextType
	rest := t.NumIn()
	if takesContext {
		rest--
	}
	var in reflect.Type
	if rest == 1 {
		in = t.In(t.NumIn() - 1)
	}
	fails := t.NumOut() > 0 && t.Out(t.NumOut()-1) == errorType
	gives := t.NumOut() == 1 && !fails || t.NumOut() == 2 && fails
	switch {
	case t.IsVariadic() || rest > 1 || in != nil && in.Kind() != reflect.Struct:
		s.err = errors.New("must take a context, or not, and then one struct, or none")
		return s
	case t.NumOut() > 2 || t.NumOut() == 2 && !fails:
		s.err = errors.New("must give a value, or none, and then an error, or none")
		return s
	}
	var all *ordered.Object
	if all, s.err = objectOf(cmp.Or(in, noParameters), 0); s.err != nil {
		return s
	}
	s.parameters = all.Object("properties")
	if s.info.Parameters, s.err = ordered.Encode(all); s.err != nil {
		return s
	}
	checked, problems := manifest.CompileSchema(s.info.Parameters)
	if len(problems) > 0 {
		s.err = problems[0]
		return s
	}
	s.checked = checked
	s.call = func(ctx context.Context, arg []byte) (any, error) {
		var args []reflect.Value
		if takesContext {
			args = append(args, reflect.ValueOf(ctx))
		}
		if in != nil {
			v := reflect.New(in)
			if err := json.Unmarshal(arg, v.Interface()); err != nil {
				return nil, &skill.Error{
					Op: "agentskills.run", Code: skill.InvalidArgument, Subject: name,
					Message: skill.CleanText("the arguments do not fit: "+err.Error(), skill.MaxMessage),
				}
			}
			args = append(args, v.Elem())
		}
		out := f.Call(args)
		var value any
		if gives {
			value = out[0].Interface()
		}
		if fails {
			err, _ := out[len(out)-1].Interface().(error) // nil is none
			return value, err
		}
		return value, nil
	}
	return s
}

// Info names the script, with the JSON Schema of its parameters.
func (s *GoScript) Info() skill.AgentFile { return s.info }

// Run checks the arguments and calls the function. Arguments of a command line are
// taken by name: --value 1, --value=1, --flag.
func (s *GoScript) Run(ctx context.Context, _ Skill, c *Call) (any, error) {
	object := c.Object
	if object == nil {
		var err error
		if object, err = s.named(c.Args); err != nil {
			return nil, err
		}
	}
	object, err := s.check(object)
	if err != nil {
		return nil, err
	}
	var v any
	err = guarded(func() (err error) { v, err = s.call(ctx, object); return err })
	if err != nil {
		return nil, told("script", s.info.Name, err)
	}
	return v, nil
}

// check holds an object against the schema, and adds the defaults of what it leaves
// out.
func (s *GoScript) check(object []byte) (json.RawMessage, error) {
	wrong := func(message string, details map[string]any) error {
		return &skill.Error{
			Op: "agentskills.run", Code: skill.InvalidArgument, Subject: s.info.Name,
			Message: skill.CleanText("the arguments of "+s.info.Name+" do not fit: "+message, skill.MaxMessage), Details: details,
		}
	}
	value, err := strictjson.Decode(object, 32, nil)
	if err != nil {
		return nil, wrong(err.Error(), nil)
	}
	for _, m := range s.parameters.Members {
		p, _ := m.Value.(*ordered.Object) // all are
		if _, given := value[m.Key]; !given && p.Has("default") {
			value[m.Key] = p.Get("default")
		}
	}
	if faults := s.checked.Check(value, manifest.MaxSteps); faults != nil && faults.Total > 0 {
		return nil, wrong(faults.Summary(), map[string]any{"fields": faults.Fields})
	}
	b, err := json.Marshal(value)
	if err != nil {
		return nil, wrong("they are not JSON", nil)
	}
	return b, nil
}

// named makes an object of the arguments of a command line, by the types that the
// parameters have.
func (s *GoScript) named(args []string) (json.RawMessage, error) {
	wrong := func(format string, a ...any) (json.RawMessage, error) {
		return nil, &skill.Error{
			Op: "agentskills.run", Code: skill.InvalidArgument, Subject: s.info.Name,
			Message: skill.CleanText(fmt.Sprintf(format, a...), skill.MaxMessage),
		}
	}
	values := map[string]any{}
	for i := 0; i < len(args); i++ {
		name, value, joined := strings.Cut(strings.TrimPrefix(args[i], "--"), "=")
		if !strings.HasPrefix(args[i], "--") || name == "" {
			return wrong("%s takes its arguments by name, and %q has none; its parameters are %s", s.info.Name, args[i], s.names())
		}
		p := s.parameters.Object(name)
		if p == nil {
			return wrong("%s has no parameter %q; its parameters are %s", s.info.Name, name, s.names())
		}
		switch {
		case p.Text("type") == "boolean" && !joined:
			values[name] = true
			continue
		case !joined && i+1 == len(args):
			return wrong("--%s needs a value", name)
		case !joined:
			i++
			value = args[i]
		}
		items := p.Object("items")
		if items == nil {
			values[name] = scalar(p.Text("type"), value)
			continue
		}
		list, _ := values[name].([]any) // nil the first time
		list = append(list, scalar(items.Text("type"), value))
		for !joined && i+1 < len(args) && !strings.HasPrefix(args[i+1], "--") {
			i++
			list = append(list, scalar(items.Text("type"), args[i]))
		}
		values[name] = list
	}
	b, err := json.Marshal(values)
	if err != nil {
		return wrong("the arguments cannot be read")
	}
	return b, nil
}

// scalar reads text as a value of a type; what does not fit stays text, which the
// schema then refuses.
func scalar(of, s string) any {
	switch of {
	case "string":
		return s
	default:
		dec := json.NewDecoder(strings.NewReader(s))
		dec.UseNumber()
		var v any
		if dec.Decode(&v) == nil && !dec.More() {
			return v
		}
	}
	return s
}

func (s *GoScript) names() string {
	var list []string
	for _, m := range s.parameters.Members {
		list = append(list, m.Key)
	}
	return cmp.Or(strings.Join(list, ", "), "none")
}

// compactJSON is for schemas that are written by hand.
func compactJSON(b []byte) json.RawMessage {
	var out bytes.Buffer
	if json.Compact(&out, b) != nil {
		return b
	}
	return out.Bytes()
}
