package llmtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"openskill/host/agent/llm"
	"openskill/sdk/skill"
)

// Script is what a model answers: what the first rule says that fits. A request that no
// rule fits is refused with 400 and a message that says so.
type Script struct {
	Rules []Rule `json:"rules"`
}

// Rule is one answer, and when it is given. The zero rule answers everything with nothing.
type Rule struct {
	When  When `json:"when,omitzero"`
	Times int  `json:"times,omitempty"` // it fits as often as that, over all conversations; 0: always

	// What is answered. Where the rule has a regular expression, $1 and ${name} stand for
	// what it has found, of the result if there is one for that, else of the user's text;
	// $0 is all of it, and $$ a dollar.
	Say   string   `json:"say,omitempty"`
	Calls []Call   `json:"calls,omitempty"`
	Stop  llm.Stop `json:"stop,omitempty"`  // "": calls if there are some, else end
	Usage *Usage   `json:"usage,omitempty"` // nil: an estimate
	Raw   string   `json:"raw,omitempty"`   // in place of all that: the body, whatever the client wanted

	// How it is answered.
	Status     int `json:"status,omitempty"`        // 0: 200; from 400 on the answer is an error, and Say its message
	RetryAfter int `json:"retry_after_s,omitempty"` // seconds; 0: it does not say
	DelayMS    int `json:"delay_ms,omitempty"`      // before the first byte
	Chunk      int `json:"chunk,omitempty"`         // characters of text in a part of a stream; 0: 16
	PauseMS    int `json:"pause_ms,omitempty"`      // before each part but the first; what is not streamed comes in pieces of Chunk bytes then
	CutAfter   int `json:"cut_after,omitempty"`     // the connection is cut after so many bytes of the body; -1: before the first; 0: it is not
}

// When is what a request must be for a rule to fit; everything that is set must hold.
// Regular expressions match anywhere in a text.
type When struct {
	// User matches the user's last text. A rule that names no tool, result or step fits
	// only where that is the last message.
	User      string `json:"user,omitempty"`
	AfterTool string `json:"after_tool,omitempty"` // the last message is the result of this tool
	Result    string `json:"result,omitempty"`     // the last message is a tool's result that this matches
	Step      *int   `json:"step,omitempty"`       // how often the model has answered since the user spoke; 0: it has not
	System    string `json:"system,omitempty"`     // matches the instructions
	Model     string `json:"model,omitempty"`      // the whole name of the model that is asked for
	JSON      *bool  `json:"json,omitempty"`       // whether the request wants one JSON object
}

// Call is a call of a tool.
type Call struct {
	Name      string    `json:"name"`
	Arguments Arguments `json:"arguments,omitempty"`
	Repeat    int       `json:"repeat,omitempty"` // it is made so often in one answer; 0: once
}

// Arguments are those of a call as the model writes them. In a script they are an object,
// or a text that need not be JSON at all.
type Arguments string //nolint:recvcheck // only what reads into a value needs its address

// UnmarshalJSON reads an object or a text.
func (a *Arguments) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		var s string
		if err := json.Unmarshal(b, &s); err != nil {
			return err
		}
		*a = Arguments(s)
		return nil
	}
	var out bytes.Buffer
	if err := json.Compact(&out, b); err != nil {
		return err
	}
	*a = Arguments(out.String())
	return nil
}

// MarshalJSON writes what UnmarshalJSON reads.
func (a Arguments) MarshalJSON() ([]byte, error) {
	if strings.HasPrefix(string(a), "{") && json.Valid([]byte(a)) {
		return []byte(a), nil
	}
	return json.Marshal(string(a))
}

// Usage is what an answer says that it took.
type Usage struct {
	Prompt     int  `json:"prompt_tokens"`
	Completion int  `json:"completion_tokens"`
	Unsaid     bool `json:"unsaid,omitempty"` // the answer has no usage at all
}

// MaxScript is how long the text of a script may be, in bytes.
const MaxScript = 4 << 20

// What a script may ask for.
const (
	maxRepeat = 100_000
	maxWait   = 10 * 60 * 1000 // milliseconds
	maxChunk  = 1 << 20
	maxCut    = 1 << 30
)

// Parse reads a script. The error is a *skill.Error of INVALID_ARGUMENT.
func Parse(b []byte) (Script, error) {
	var s Script
	if len(b) > MaxScript {
		return s, wrong("it has %d bytes; at most %d are accepted", len(b), MaxScript)
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&s); err != nil {
		return Script{}, wrong("%s", skill.CleanText(unread(err), 300))
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return Script{}, wrong("there is more behind the object")
	}
	return s, nil
}

// unread says why JSON could not be read in words of the file, not of this package.
func unread(err error) string {
	var syntax *json.SyntaxError
	switch kind, ok := errors.AsType[*json.UnmarshalTypeError](err); {
	case errors.As(err, &syntax):
		return fmt.Sprintf("%v, at byte %d", syntax, syntax.Offset)
	case ok:
		return fmt.Sprintf("%s cannot be a %s, at byte %d", kind.Field, kind.Value, kind.Offset)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "it ends too early; want {\"rules\": […]}"
	}
	return strings.TrimPrefix(err.Error(), "json: ")
}

func wrong(format string, args ...any) error {
	return &skill.Error{Op: "llmtest.Script", Code: skill.InvalidArgument, Subject: "script", Message: "the script: " + fmt.Sprintf(format, args...)}
}

// rule is a Rule that was checked.
type rule struct {
	Rule
	user, result, system *regexp.Regexp
}

// compile checks a rule.
func (r Rule) compile() (*rule, error) {
	c := &rule{Rule: r}
	for _, p := range []struct {
		name, text string
		to         **regexp.Regexp
	}{
		{"user", r.When.User, &c.user}, {"result", r.When.Result, &c.result}, {"system", r.When.System, &c.system},
	} {
		if p.text == "" {
			continue
		}
		re, err := regexp.Compile(p.text)
		if err != nil {
			return nil, fmt.Errorf("when.%s: %w", p.name, err)
		}
		*p.to = re
	}
	for _, n := range []struct {
		name             string
		value, low, high int
	}{
		{"times", r.Times, 0, 1 << 30},
		{"retry_after_s", r.RetryAfter, 0, 24 * 3600},
		{"delay_ms", r.DelayMS, 0, maxWait},
		{"pause_ms", r.PauseMS, 0, maxWait},
		{"chunk", r.Chunk, 0, maxChunk},
		{"cut_after", r.CutAfter, -1, maxCut},
	} {
		if n.value < n.low || n.value > n.high {
			return nil, fmt.Errorf("%s is %d; accepted are %d to %d", n.name, n.value, n.low, n.high)
		}
	}
	if r.Status != 0 && r.Status != 200 && (r.Status < 400 || r.Status > 599) {
		return nil, fmt.Errorf("status is %d; accepted are 200, and 400 to 599", r.Status)
	}
	calls := 0
	for i, call := range r.Calls {
		if call.Name == "" {
			return nil, fmt.Errorf("calls[%d] has no name", i)
		}
		if call.Repeat < 0 {
			return nil, fmt.Errorf("calls[%d].repeat is %d", i, call.Repeat)
		}
		if calls += max(call.Repeat, 1); calls > maxRepeat {
			return nil, fmt.Errorf("it makes more than %d calls", maxRepeat)
		}
	}
	switch r.Stop {
	case "", llm.StopEnd, llm.StopCalls, llm.StopLength, llm.StopRefused:
	default:
		return nil, fmt.Errorf("stop is %q; accepted are end, calls, length, refused", r.Stop)
	}
	if (r.Raw != "" || r.Status >= 400) && len(r.Calls) > 0 || r.Raw != "" && r.Say != "" {
		return nil, errors.New("calls come with neither raw nor an error's status, and say not with raw")
	}
	if r.Usage != nil && (r.Usage.Prompt < 0 || r.Usage.Completion < 0) {
		return nil, errors.New("usage is negative")
	}
	return c, nil
}
