package dispatch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"openskill/host/manifest"
	"openskill/internal/strictjson"
	"openskill/sdk/skill"
)

// How deep the JSON of callers and of guests may nest.
const (
	MaxInputDepth  = 64
	maxOutputDepth = 512
)

// The most that a guest's own words may take of an answer.
const (
	maxDetails = 2 << 10 // bytes of error.details that a guest wrote, as JSON
	maxError   = 512     // bytes of an error that the host made of a guest's end
)

// hostPath matches absolute paths, but not those that every guest sees.
var hostPath = regexp.MustCompile(`(^|[\s"'(=:,\[])((?:/[^\s/"'():,]+)+)/([^\s/"'():,]+)`)

// outcome is what became of a run that the host could do.
type outcome struct {
	data      json.RawMessage
	guest     *skill.ResultError // what the guest reported, nil for success
	truncated bool
	tokens    int // that the guest says it used; 0: none
}

// read turns what a run left behind into data or an error. The host's own word
// (Reply.Code) comes first; only then does what the guest says count.
func (d *Dispatcher) read(s *manifest.Skill, reply *skill.Reply, limits skill.Limits) (outcome, error) {
	if reply.Code != "" {
		return outcome{truncated: reply.Code == skill.OutputLimit}, d.ended(s, reply)
	}
	if uint64(len(reply.Stdout)) > limits.Output {
		return outcome{truncated: true}, endedWith(skill.OutputLimit,
			fmt.Sprintf("the skill printed more than its limit of %d bytes", limits.Output), reply.Stdout[:limits.Output])
	}
	mendPairs(reply.Stdout)
	var data []byte // of a whole result, as it was written
	object, parseErr := strictjson.Decode(reply.Stdout, maxOutputDepth, func(key, value []byte) error {
		if string(key) == "data" {
			data = value
		}
		return nil
	})
	if reply.ExitCode != 0 {
		if parseErr == nil && reportsError(object) {
			return d.envelope(s, data, object)
		}
		return outcome{}, d.exited(s, reply)
	}
	if parseErr != nil {
		return outcome{}, &skill.Error{
			Op: "dispatch.read", Code: skill.InvalidOutput,
			Message: "invalid output: print exactly one JSON object to stdout and logs to stderr: " + d.scrub(parseErr.Error(), s.Folder),
			Err:     logError("standard output is not a valid JSON object"),
		}
	}
	if isEnvelope(object) {
		return d.envelope(s, data, object)
	}
	return d.data(s, reply.Stdout, object)
}

// mendPairs puts U+FFFD in the place of escaped halves of surrogate pairs, as many
// bytes as they have. Text that JavaScript or Python cut within a character has them;
// readers of JSON disagree on them, and some refuse the whole text.
func mendPairs(text []byte) {
	for {
		i := bytes.IndexByte(text, '\\')
		if i < 0 {
			return
		}
		text = text[i:]
		switch u := escaped(text); {
		case u >= 0xd800 && u < 0xdc00 && escaped(text[6:])&^0x3ff == 0xdc00:
			text = text[12:]
		case u >= 0xd800 && u < 0xe000:
			text = text[copy(text, `\ufffd`):]
		default:
			text = text[min(2, len(text)):]
		}
	}
}

// escaped is the number of the escape \uXXXX that text begins with, else 0.
func escaped(text []byte) uint64 {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return 0
	}
	n, err := strconv.ParseUint(string(text[2:6]), 16, 16)
	if err != nil {
		return 0
	}
	return n
}

// ended is the error of a run that the host ended.
func (d *Dispatcher) ended(s *manifest.Skill, reply *skill.Reply) error {
	if !reply.Code.Known() || reply.Code == skill.Internal {
		return fmt.Errorf("the runner ended the run with %q: %s", reply.Code, reply.Message)
	}
	message := skill.CleanText(d.scrub(reply.Message, s.Folder), skill.MaxMessage)
	if message == "" {
		message = "the host ended the run: " + string(reply.Code)
	}
	return endedWith(reply.Code, message, reply.Stdout)
}

// exited is the error of a guest that ended badly and said nothing usable. The
// whole error stays within maxError.
func (d *Dispatcher) exited(s *manifest.Skill, reply *skill.Reply) error {
	details := map[string]any{"exit_code": reply.ExitCode}
	e := &skill.Error{
		Op: "dispatch.read", Code: skill.GuestExit, Details: details,
		Message: fmt.Sprintf("the skill exited with code %d and no result", reply.ExitCode),
		Err:     logError(fmt.Sprintf("exit code %d, no result", reply.ExitCode)),
	}
	for room := 320; room >= 20; room /= 2 {
		tail := d.tail(reply.Stderr, s.Folder, room)
		if tail == "" {
			break
		}
		details["stderr"] = tail
		b, err := json.Marshal(skill.ResultError{Code: e.Code, Status: e.Code.Status(), Message: e.Message, Details: details})
		if err == nil && len(b) <= maxError {
			return e
		}
	}
	delete(details, "stderr")
	return e
}

// tail is the end of standard error, fit to be shown: the last line of a
// traceback is what says why.
func (d *Dispatcher) tail(stderr []byte, folder string, room int) string {
	const window = 4 << 10
	if len(stderr) > window {
		stderr = stderr[len(stderr)-window:]
	}
	text := skill.CleanText(d.scrub(strings.ToValidUTF8(string(stderr), "\uFFFD"), folder), 2*window)
	if len(text) <= room {
		return text
	}
	cut := len(text) - room
	for cut < len(text) && !utf8.RuneStart(text[cut]) {
		cut++
	}
	return "…" + strings.TrimSpace(text[cut:])
}

// maxKept is how many bytes of the end of a guest's standard error are kept.
const maxKept = 16 << 10

// lines is the end of standard error as it is kept: with its lines and their indentation.
func (d *Dispatcher) lines(stderr []byte, folder string) string {
	if over := len(stderr) - maxKept; over > 0 {
		stderr = stderr[over:]
	}
	all := strings.Split(d.scrub(strings.ToValidUTF8(string(stderr), "\uFFFD"), folder), "\n")
	for i, line := range all {
		rest := strings.TrimLeft(line, " \t")
		all[i] = line[:len(line)-len(rest)] + skill.CleanText(rest, maxKept)
	}
	text := strings.Trim(strings.Join(all, "\n"), "\n")
	if cut := len(text) - maxKept; cut > 0 { // what was not UTF-8 has become longer
		for cut < len(text) && !utf8.RuneStart(text[cut]) {
			cut++
		}
		text = text[cut:]
	}
	return text
}

// envelopeKeys are the keys of a whole result; the last two are those of the agent service's
// SkillResult.
var envelopeKeys = map[string]bool{
	"success": true, "skill_id": true, "trace_id": true, "data": true, "error": true, "meta": true, "token_usage": true, "duration_ms": true,
}

// isEnvelope reports whether an object is a whole result and not data that happens
// to hold a field of such a name.
func isEnvelope(o map[string]any) bool {
	if _, ok := o["success"].(bool); !ok {
		return false
	}
	_, hasData := o["data"]
	_, hasError := o["error"]
	for key := range o {
		if !envelopeKeys[key] {
			return false
		}
	}
	return hasData || hasError
}

// reportsError reports whether what a guest printed before it ended badly is a
// report of an error.
func reportsError(o map[string]any) bool {
	if isEnvelope(o) {
		_, isObject := o["error"].(map[string]any)
		return isObject && o["success"] == false
	}
	if len(o) != 1 {
		return false
	}
	e, _ := o["error"].(map[string]any)
	_, hasCode := e["code"]
	_, hasMessage := e["message"]
	return hasCode || hasMessage
}

// envelope reads a whole result; raw is its data as it was written.
func (d *Dispatcher) envelope(s *manifest.Skill, raw []byte, o map[string]any) (outcome, error) {
	invalid := func(what string) (outcome, error) {
		return outcome{}, &skill.Error{Op: "dispatch.read", Code: skill.InvalidOutput, Message: "the skill's result " + what}
	}
	meta, _ := o["meta"].(map[string]any)
	truncated, _ := meta["truncated"].(bool)
	if success, _ := o["success"].(bool); !success {
		e, ok := o["error"].(map[string]any)
		if !ok {
			return invalid(`has "success": false but no "error" object`)
		}
		return outcome{guest: d.guestError(s, e), truncated: truncated, tokens: tokensOf(o)}, nil
	}
	if o["error"] != nil {
		return invalid(`has "success": true together with an "error"`)
	}
	data, ok := o["data"].(map[string]any)
	if !ok {
		return invalid(`has "success": true but no "data" object`)
	}
	out, err := d.data(s, raw, data)
	out.truncated, out.tokens = truncated, tokensOf(o)
	return out, err
}

// tokensOf is what a whole result says of tokens; 0 where that is no whole number of 31 bits,
// as many as a column has.
func tokensOf(o map[string]any) int {
	n, _ := o["token_usage"].(json.Number)
	tokens, err := strconv.ParseUint(n.String(), 10, 31)
	if err != nil {
		return 0
	}
	return int(tokens)
}

// data checks the data of a success.
func (d *Dispatcher) data(s *manifest.Skill, raw []byte, value map[string]any) (outcome, error) {
	if err := s.CheckOutput(value); err != nil {
		if e, ok := errors.AsType[*skill.Error](err); ok {
			e.Err = logError("the output does not match the skill's output_schema")
		}
		return outcome{}, err
	}
	return outcome{data: json.RawMessage(bytes.TrimSpace(raw))}, nil
}

// mayReport are the codes that mean what a skill can know.
var mayReport = map[skill.Code]bool{
	skill.InvalidArgument: true, skill.ForbiddenPath: true, skill.NetworkDenied: true, skill.NotFound: true,
	skill.Conflict: true, skill.Internal: true, skill.ToolInvocationError: true,
}

// numbers are the HTTP statuses that a skill may use as its code.
var numbers = map[string]skill.Code{
	"400": skill.InvalidArgument, "403": skill.ForbiddenPath, "404": skill.NotFound,
	"409": skill.Conflict, "500": skill.Internal, "502": skill.ToolInvocationError,
}

// guestError is a guest's error object with the host's code and status.
func (d *Dispatcher) guestError(s *manifest.Skill, e map[string]any) *skill.ResultError {
	details := map[string]any{}
	if given, ok := e["details"].(map[string]any); ok {
		details, _ = d.clean(given, s.Folder, 0).(map[string]any)
		if b, err := json.Marshal(details); err != nil || len(b) > maxDetails {
			details = map[string]any{"omitted": fmt.Sprintf("the skill's details exceed %d bytes", maxDetails)}
		}
	}
	code := skill.Internal
	switch given := e["code"].(type) {
	case string:
		switch c := skill.Code(given); {
		case mayReport[c]:
			code = c
		case c.Known():
			code = skill.ToolInvocationError
			details["guest_code"] = given
		default:
			details["guest_code"] = skill.CleanText(given, 64)
		}
	case json.Number:
		if c, ok := numbers[given.String()]; ok {
			code = c
		} else {
			details["guest_code"] = skill.CleanText(given.String(), 32)
		}
	}
	message, _ := e["message"].(string)
	if message = skill.CleanText(d.scrub(message, s.Folder), skill.MaxMessage); message == "" {
		message = "the skill reported an error without a message"
	}
	if len(details) == 0 {
		details = nil
	}
	return &skill.ResultError{Code: code, Status: code.Status(), Message: message, Details: details}
}

// clean makes a guest's value fit to be shown: text cleaned, depth and counts
// bounded.
func (d *Dispatcher) clean(v any, folder string, depth int) any {
	const most = 64
	switch v := v.(type) {
	case string:
		return skill.CleanText(d.scrub(v[:min(len(v), 4*skill.MaxMessage)], folder), skill.MaxMessage)
	case map[string]any:
		m := make(map[string]any, min(len(v), most))
		if depth >= 4 {
			return m
		}
		for key, e := range v {
			if len(m) == most {
				break
			}
			m[skill.CleanText(key, 64)] = d.clean(e, folder, depth+1)
		}
		return m
	case []any:
		list := []any{}
		if depth >= 4 {
			return list
		}
		for _, e := range v[:min(len(v), most)] {
			list = append(list, d.clean(e, folder, depth+1))
		}
		return list
	default:
		return v // a number, true, false or null
	}
}
