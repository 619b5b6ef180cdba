package cases

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"openskill/internal/safeyaml"
	"openskill/internal/yamledit"
	"openskill/sdk/skill"
)

// Own reports whether an answer is the skill's own, or its schema's: what belongs into a
// file of cases. How a limit, a crash or the host ended a call does not.
func Own(got *skill.Result) bool {
	if got.Success {
		return true
	}
	switch got.Error.Code {
	case skill.InvalidArgument, skill.ForbiddenPath, skill.NetworkDenied, skill.NotFound, skill.Conflict:
		return true
	case skill.ToolInvocationError, skill.Internal: // hosts say these too
		_, says := got.Error.Details["guest_code"]
		return says
	default:
		return false
	}
}

// Expecting is the case with what the skill answers as what belongs to it: of an error
// as much as was given of the one before, and for an answer that was none its code, and
// its details if there are some.
func (c *Case) Expecting(got *skill.Result) (Case, error) {
	now := *c
	if got.Success {
		now.Data, now.Error = got.Data, nil
		return now, nil
	}
	e := &Error{Code: got.Error.Code}
	if c.Error != nil && c.Error.Message != "" {
		e.Message = got.Error.Message
	}
	if got.Error.Details != nil && (c.Error == nil || c.Error.Details != nil) {
		b, err := json.Marshal(got.Error.Details)
		if err != nil {
			return now, err
		}
		e.Details = b
	}
	now.Data, now.Error = nil, e
	return now, nil
}

// Write gives a file of cases with what belongs to one of them changed to that of now,
// a case with the same name; the rest of the text stays as it is.
func Write(src []byte, now Case) ([]byte, error) {
	list, problems := Parse(src)
	if len(problems) > 0 {
		return nil, errors.New(problems[0].String())
	}
	at := -1
	for i := range list {
		if list[i].Name == now.Name {
			at = i
		}
	}
	if at < 0 {
		return nil, fmt.Errorf("case %s no longer exists", safeyaml.Quote(now.Name))
	}
	old := "data"
	if list[at].Error != nil {
		old = "error"
	}
	key, value := "data", []byte(now.Data)
	if now.Error != nil {
		key = "error"
		var err error
		if value, err = now.Error.write(list[at].Error); err != nil {
			return nil, err
		}
	}
	out, err := yamledit.Set(src, []any{at, old}, key, value)
	if err != nil {
		return nil, err
	}
	again, problems := Parse(out)
	if len(problems) > 0 {
		return nil, errors.New(problems[0].String())
	}
	// The other cases are as they were, and so is the rest of this one.
	for i := range again {
		was := list[i]
		again[i].Line = was.Line
		if i == at {
			was.Data, was.Error = again[i].Data, again[i].Error
		}
		if !reflect.DeepEqual(was, again[i]) {
			return nil, errors.New("another case would change with it")
		}
	}
	return out, nil
}

// write gives an expected error as it stands in a file: a code alone where nothing else
// is expected, and was not before.
func (e *Error) write(old *Error) ([]byte, error) {
	if e.Message == "" && e.Details == nil && (old == nil || old.Message == "" && old.Details == nil) {
		return json.Marshal(e.Code)
	}
	m := map[string]any{"code": e.Code}
	if e.Message != "" {
		m["message"] = e.Message
	}
	if e.Details != nil {
		m["details"] = e.Details
	}
	return json.Marshal(m)
}
