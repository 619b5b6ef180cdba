package guest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"runtime"
	"runtime/debug"
)

// root is before data and work. In a WASI module Go takes the first preopened folder for the
// working folder, so a relative path would begin somewhere else with every host.
var root = map[bool]string{true: "/", false: "."}[runtime.GOOS == "wasip1"]

// Streams are where a call comes from and where its answer goes, for tests of skills.
type Streams struct {
	In  io.Reader
	Out io.Writer
	Err io.Writer // logs
	// Root is the folder with data and work; "" means that neither is granted.
	Root string
}

type answer struct {
	Success bool     `json:"success"`
	Data    any      `json:"data"`
	Error   *problem `json:"error"`
}

type problem struct {
	Code    string         `json:"code"`
	Message string         `json:"message"`
	Details map[string]any `json:"details,omitempty"`
}

// Serve reads the call from standard input, has run answer it, writes the answer to
// standard output and returns the exit code: 0 for success, 1 for an error.
func Serve[In, Out any](run func(*Call, In) (Out, error)) int {
	out := os.Stdout
	os.Stdout = os.Stderr // what is printed must not get into the answer
	defer func() { os.Stdout = out }()
	return ServeOn(&Streams{In: os.Stdin, Out: out, Err: os.Stderr, Root: root}, run)
}

// Rehearse has run answer a call that nobody made, and throws the answer away. Before
// [Serve], a host does it once for all calls of a skill, and each of them finds made
// what Go's packages make at their first use. The call has no files, and run must not
// depend on time or chance in it.
func Rehearse[In, Out any](run func(*Call, In) (Out, error), sample In) {
	out := os.Stdout
	os.Stdout = os.Stderr
	defer func() { os.Stdout = out }()
	b, err := encode(map[string]any{"input": sample})
	if err != nil {
		return // an input that no caller can send teaches nothing
	}
	_ = ServeOn(&Streams{In: bytes.NewReader(b), Out: io.Discard, Err: io.Discard}, run) // what it says is nobody's
}

// ServeOn is [Serve] on other streams.
func ServeOn[In, Out any](s *Streams, run func(*Call, In) (Out, error)) int {
	call := &Call{root: s.Root, logs: s.Err}
	var a answer
	data, err := invoke(s.In, call, run)
	if err == nil {
		a.Data, err = data, object(data)
	}
	if err != nil {
		a = answer{Error: call.problem(err)}
	}
	a.Success = a.Error == nil
	b, err := encode(a)
	if err != nil { // of details, or of a value with a marshaller of its own
		a = answer{Error: call.problem(unwritable(data, a.Error, err))}
		if b, err = encode(a); err != nil {
			return 1
		}
	}
	if _, err := s.Out.Write(b); err != nil || !a.Success {
		return 1
	}
	return 0
}

// invoke reads the call and runs it. A panic is an error.
func invoke[In, Out any](r io.Reader, call *Call, run func(*Call, In) (Out, error)) (out Out, err error) {
	var input map[string]any
	if call.SkillID, call.TraceID, input, err = readCall(r); err != nil {
		return out, err
	}
	var in In
	if err := decode(input, reflect.ValueOf(&in).Elem(), ""); err != nil {
		return out, err
	}
	defer func() {
		if cause := recover(); cause != nil {
			err = &panicked{fmt.Sprint(cause), debug.Stack()}
		}
	}()
	return run(call, in)
}

type panicked struct {
	text  string
	stack []byte
}

func (p *panicked) Error() string { return p.text }

// problem is what the caller is told of an error. What is not for callers goes to
// standard error.
func (c *Call) problem(err error) *problem {
	var e *Error
	if !errors.As(err, &e) || e.Code == "" {
		c.Error("uncaught: " + err.Error())
		var p *panicked
		if errors.As(err, &p) {
			c.write(string(p.stack))
		}
		e = failed()
	}
	return &problem{e.Code, e.Message, e.Details}
}

// object refuses data that is no object.
func object(v any) error {
	value := reflect.ValueOf(v)
	for value.Kind() == reflect.Pointer || value.Kind() == reflect.Interface {
		value = value.Elem() // of nil: no value
	}
	if k := value.Kind(); k == reflect.Struct || k == reflect.Map && !value.IsNil() {
		return nil
	}
	return &Error{Internal, "data: must be an object", map[string]any{"field": "data", "reason": "type"}}
}

// unwritable says why an answer cannot be written.
func unwritable(data any, p *problem, err error) error {
	where := noNumber(reflect.ValueOf(data), "data", 0)
	if p != nil {
		where = noNumber(reflect.ValueOf(p.Details), "details", 0)
	}
	if where == "" {
		return err
	}
	return &Error{Internal, where + ": NaN and infinite numbers are no JSON", map[string]any{"field": where, "reason": "number"}}
}
