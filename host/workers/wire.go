package workers

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"openskill/sdk/skill"
)

// Hello is what a worker says of itself when it is ready.
type Hello struct {
	Version     int          `json:"version"` // of the protocol
	Narrows     bool         `json:"narrows"` // it can give up folders later
	Protections []Protection `json:"protections"`
}

// Protection is one thing that holds a worker, and whether the kernel granted it.
type Protection struct {
	Name   string `json:"name"`
	On     bool   `json:"on"`
	Detail string `json:"detail"` // what it keeps from whom, or why it is not there
}

// Assignment says whose calls a worker runs from now on, and what it may read for
// them. It only ever takes rights away.
type Assignment struct {
	Folders []string `json:"folders"`
}

// Refusal is an error on its way through the channel; null means none.
type Refusal struct {
	Code    skill.Code      `json:"code"`
	Op      string          `json:"op,omitempty"`
	Subject string          `json:"subject,omitempty"`
	Message string          `json:"message,omitempty"` // for callers
	Details json.RawMessage `json:"details,omitempty"` // an object
	Cause   string          `json:"cause,omitempty"`   // for the log
	// Damaged says that the module that the worker was given is of no use.
	Damaged bool `json:"damaged,omitempty"`
}

func refusalOf(err error) *Refusal {
	if err == nil {
		return nil
	}
	r := &Refusal{Code: skill.CodeOf(err), Cause: skill.CleanText(err.Error(), 2000), Damaged: errors.Is(err, skill.ErrUnusable)}
	var e *skill.Error
	if errors.As(err, &e) {
		r.Op, r.Subject, r.Message = e.Op, e.Subject, e.Message
		if len(e.Details) > 0 {
			r.Details, _ = json.Marshal(e.Details) // without them the error is still one
		}
	}
	return r
}

// error gives back what refusalOf was given, as far as a process that may be
// anybody's is believed: a code that exists, and text that is clean.
func (r *Refusal) error() error {
	if r == nil {
		return nil
	}
	code := r.Code
	if !trustedCode(code) {
		code = skill.Internal
	}
	err := &skill.Error{
		Op: skill.CleanText(r.Op, 80), Code: code, Subject: skill.CleanText(r.Subject, 80),
		Message: skill.CleanText(r.Message, skill.MaxMessage), Details: cleanDetails(r.Details),
		Err: errors.New("worker: " + skill.CleanText(r.Cause, 2000)),
	}
	if r.Damaged {
		err.Err = &damagedError{err.Err}
	}
	return err
}

// ofTheHost are the codes of what only the host knows: who calls, how many do, and
// what became of a worker.
var ofTheHost = map[skill.Code]bool{
	skill.Unauthorized: true, skill.Forbidden: true, skill.RateLimited: true, skill.AuditUnavailable: true, skill.WorkerCrashed: true,
}

// believed reports whether a worker may say a code.
func trustedCode(c skill.Code) bool { return c.Known() && !ofTheHost[c] }

// mostStartFuel is more than start-ups can use between two calls: minutes of all processors.
const mostStartFuel = 1 << 44

const (
	// maxDetails bounds the details of an error, in bytes of JSON: the report on a module
	// has some ten thousand.
	maxDetails = 256 << 10
	// maxDetailText bounds each text in them.
	maxDetailText = 4 << 10
)

// cleanDetails gives the details of an error as far as they are believed: texts that
// are clean, and nothing where there is too much.
func cleanDetails(raw json.RawMessage) map[string]any {
	var d map[string]any
	if len(raw) == 0 || len(raw) > maxDetails || json.Unmarshal(raw, &d) != nil || len(d) == 0 {
		return nil
	}
	clean, _ := cleanValue(d).(map[string]any)
	return clean
}

func cleanValue(v any) any {
	switch v := v.(type) {
	case string:
		return skill.CleanText(v, maxDetailText)
	case []any:
		for i := range v {
			v[i] = cleanValue(v[i])
		}
	case map[string]any:
		clean := make(map[string]any, len(v))
		for key, inner := range v {
			clean[skill.CleanText(key, maxDetailText)] = cleanValue(inner)
		}
		return clean
	}
	return v
}

// damagedError is what a worker says of the module that it was given.
type damagedError struct{ error }

func encodeReply(call *skill.Call, r *skill.Reply, kept *states) (*wireReply, []byte) {
	w := &wireReply{
		Code: r.Code, Message: r.Message, ExitCode: r.ExitCode, Usage: r.Usage,
		Stdout: len(r.Stdout), Stderr: len(r.Stderr),
	}
	w.Differs, w.Processes, w.Removed = r.Differs, r.Processes, r.Removed
	if len(r.Artifacts) == 0 && len(r.Stderr) == 0 && r.Value == nil && r.State == nil && r.Recording == nil {
		return w, r.Stdout
	}
	left := kept.left(w, call, r)
	n := len(r.Stdout) + len(r.Stderr) + len(r.Value) + len(left)
	var draws, seen []byte
	if r.Recording != nil {
		w.Recorded, draws, seen = recordedOf(r.Recording)
		n += len(draws) + len(seen)
	}
	for _, a := range r.Artifacts {
		n += len(a.Data)
	}
	body := append(append(make([]byte, 0, n), r.Stdout...), r.Stderr...)
	for _, a := range r.Artifacts {
		w.Files = append(w.Files, wireFile{a.Name, len(a.Data)})
		body = append(body, a.Data...)
	}
	if r.Value != nil {
		w.Value = len(r.Value) + 1
		body = append(body, r.Value...)
	}
	w.State = len(left)
	body = append(body, left...)
	return w, append(append(body, draws...), seen...)
}

// mostOf is how many bytes of head and body the answer to a call can have; limit
// bounds the body, whatever the call's limits are.
func mostOf(call *skill.Call, limit uint32) int64 {
	n := uint64(0)
	seen := uint64(0)
	if call.Record > 0 {
		seen = maxSeenBytes
	}
	for _, more := range []uint64{call.Limits.Output, call.Limits.Output, valueOf(call), stateOf(call), scratchOf(call), call.Record, seen} {
		n += min(more, uint64(limit))
	}
	return maxHead + int64(min(n, uint64(limit)))
}

// scratchOf is how many bytes of files a call can leave.
func scratchOf(call *skill.Call) uint64 {
	if !call.Grants.Scratch && !call.Script {
		return 0
	}
	return call.Limits.Scratch
}

// valueOf returns the maximum size of the value of a call in bytes.
func valueOf(call *skill.Call) uint64 {
	if !call.Code {
		return 0
	}
	return call.Limits.Output
}

// stateOf is how many bytes the state of a call can have.
func stateOf(call *skill.Call) uint64 {
	if call.Session == nil {
		return 0
	}
	return call.Session.Most
}

// fileName reports whether a run could have left a file of this name: those of
// scripts are paths in their working folder.
func fileName(name string, script bool) bool {
	if script {
		return len(name) <= 4096 && name != "." && fs.ValidPath(name) && !strings.Contains(name, "\x00")
	}
	return len(name) <= 255 && name != "." && name != ".." && !strings.ContainsAny(name, "/\x00")
}

// processesOf reports whether a run could have started these processes.
func processesOf(p *skill.Processes, call *skill.Call) bool {
	if p == nil {
		return true
	}
	if !call.Script || p.Started < 1 || p.Started > maxStarted || len(p.List) != min(p.Started, skill.MaxProcessesListed) {
		return false
	}
	for i, one := range p.List {
		if one.ID != i+2 || one.Parent < 1 || one.Parent >= one.ID || one.Program != skill.CleanText(one.Program, skill.MaxProgram) {
			return false
		}
	}
	return true
}

// maxStarted is how many processes a run may start.
const maxStarted = 1000

// reply holds a reply against what the call allows. Refused is why the runner
// gave none; err says that this is no reply of a worker of ours.
func (w *wireReply) reply(f *frame, call *skill.Call) (reply *skill.Reply, refused, err error) {
	if w.Refused != nil {
		return nil, w.Refused.error(), nil
	}
	bad := func(what string) (*skill.Reply, error, error) { return nil, nil, fmt.Errorf("%w: %s", errFrame, what) }
	if w.Unknown {
		return bad("a state that it has been given is unknown to it")
	}
	if w.Code != "" && !trustedCode(w.Code) {
		return bad("a code that is not a worker's to say")
	}
	limit := call.Limits.Output
	rest := f.body
	cut := func(n int, most uint64) []byte {
		if n < 0 || n > len(rest) || uint64(n) > most {
			rest = nil
			return nil
		}
		b := rest[:n:n]
		rest = rest[n:]
		return b
	}
	r := &skill.Reply{
		Code: w.Code, Message: skill.CleanText(w.Message, skill.MaxMessage), ExitCode: w.ExitCode,
		// What is said of a run's cost stays within what a run can cost.
		Usage: skill.Usage{
			Fuel: min(w.Usage.Fuel, call.Limits.Fuel), MemoryPeak: min(w.Usage.MemoryPeak, 1<<32),
			StartFuel: min(w.Usage.StartFuel, mostStartFuel), Began: w.Usage.Began, Took: w.Usage.Took,
		},
		Stdout: cut(w.Stdout, limit), Stderr: cut(w.Stderr, limit),
	}
	if len(r.Stdout) != w.Stdout || len(r.Stderr) != w.Stderr {
		return bad("more output than the limit, or than there is")
	}
	if len(w.Files) > 0 && !call.Grants.Scratch && !call.Script {
		return bad("files that nobody could write")
	}
	if !processesOf(w.Processes, call) {
		return bad("processes that no run can have started")
	}
	r.Processes = w.Processes
	left, last := scratchOf(call), ""
	for _, file := range w.Files {
		if file.Name <= last { // in order, and none twice
			return bad("the order of files")
		}
		last = file.Name
		if !fileName(file.Name, call.Script) {
			return bad("the name of a file")
		}
		data := cut(file.Size, left)
		if len(data) != file.Size {
			return bad("a file larger than the limit, or than there is")
		}
		left -= uint64(file.Size)
		r.Artifacts = append(r.Artifacts, skill.Artifact{Name: file.Name, Data: data, Size: int64(file.Size)})
	}
	for _, name := range w.Removed {
		if !call.ReportRemoved || !slices.ContainsFunc(call.Files, func(f skill.File) bool { return f.Name == name }) {
			return bad("a removed file that the call did not have")
		}
	}
	r.Removed = w.Removed
	if w.Value > 0 {
		if r.Value = cut(w.Value-1, valueOf(call)); !call.Code || r.Value == nil {
			return bad("a value that nobody asked for, or larger than the limit")
		}
	}
	if w.State > 0 {
		if r.State = wholeState(w, call, cut(w.State, stateOf(call))); r.State == nil {
			return bad("a state that nobody asked for, or larger than the limit")
		}
	}
	if w.Recorded != nil {
		recording, ok := w.Recorded.recording(call, cut)
		if !ok {
			return bad("a recording")
		}
		r.Recording = recording
	}
	if w.Differs != "" && call.Replay == nil {
		return bad("a difference to nothing")
	}
	r.Differs = skill.CleanText(w.Differs, skill.MaxMessage)
	if len(rest) > 0 {
		return bad("bytes that belong to nothing")
	}
	return r, nil, nil
}
