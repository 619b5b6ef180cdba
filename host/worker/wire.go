package worker

import (
	"errors"
	"fmt"
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
	Code    skill.Code     `json:"code"`
	Op      string         `json:"op,omitempty"`
	Subject string         `json:"subject,omitempty"`
	Message string         `json:"message,omitempty"` // for callers
	Details map[string]any `json:"details,omitempty"`
	Cause   string         `json:"cause,omitempty"` // for the log
	// Uncompiled is the digest of a module that the worker has not got.
	Uncompiled string `json:"uncompiled,omitempty"`
}

// uncompiled is an error of a runner that may not compile: the digest of the module
// that it has not got.
type uncompiled interface{ NotCompiled() string }

// NotCompiled gives the digest of the module that err says is not compiled yet; ""
// where err says something else.
func NotCompiled(err error) string {
	var u uncompiled
	if errors.As(err, &u) {
		return u.NotCompiled()
	}
	return ""
}

func refusalOf(err error) *Refusal {
	if err == nil {
		return nil
	}
	r := &Refusal{Code: skill.CodeOf(err), Cause: skill.CleanText(err.Error(), 2000), Uncompiled: NotCompiled(err)}
	var e *skill.Error
	if errors.As(err, &e) {
		r.Op, r.Subject, r.Message, r.Details = e.Op, e.Subject, e.Message, e.Details
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
	if !code.Known() {
		code = skill.Internal
	}
	err := &skill.Error{
		Op: skill.CleanText(r.Op, 80), Code: code, Subject: skill.CleanText(r.Subject, 80),
		Message: skill.CleanText(r.Message, skill.MaxMessage), Details: r.Details,
		Err: errors.New("worker: " + skill.CleanText(r.Cause, 2000)),
	}
	if r.Uncompiled != "" {
		err.Err = &notCompiledError{digest: skill.CleanText(r.Uncompiled, 80)}
	}
	return err
}

// notCompiledError is what a worker said it has not got.
type notCompiledError struct{ digest string }

func (e *notCompiledError) Error() string       { return "worker: not compiled: " + e.digest }
func (e *notCompiledError) NotCompiled() string { return e.digest }

// wireCall is a skill.Call; its standard input is the body of the frame.
type wireCall struct {
	Kind skill.Kind
	Call skill.Call
}

// wireReply is a skill.Reply; the body of the frame is standard output, standard
// error and the artifacts, one after the other.
type wireReply struct {
	Refused  *Refusal    `json:"refused,omitempty"` // then nothing else holds
	Code     skill.Code  `json:"code,omitempty"`
	Message  string      `json:"message,omitempty"`
	ExitCode uint32      `json:"exit_code,omitempty"`
	Stdout   int         `json:"stdout"` // bytes
	Stderr   int         `json:"stderr"`
	Usage    skill.Usage `json:"usage"`
	Files    []wireFile  `json:"files,omitempty"`
}

type wireFile struct {
	Name string `json:"name"`
	Size int    `json:"size"`
}

func encodeReply(r *skill.Reply) (*wireReply, []byte) {
	w := &wireReply{
		Code: r.Code, Message: r.Message, ExitCode: r.ExitCode, Usage: r.Usage,
		Stdout: len(r.Stdout), Stderr: len(r.Stderr),
	}
	if len(r.Artifacts) == 0 && len(r.Stderr) == 0 {
		return w, r.Stdout
	}
	n := len(r.Stdout) + len(r.Stderr)
	for _, a := range r.Artifacts {
		n += len(a.Data)
	}
	body := append(append(make([]byte, 0, n), r.Stdout...), r.Stderr...)
	for _, a := range r.Artifacts {
		w.Files = append(w.Files, wireFile{a.Name, len(a.Data)})
		body = append(body, a.Data...)
	}
	return w, body
}

// decodeReply holds a reply against what the call allows.
func decodeReply(f *frame, call *skill.Call) (*skill.Reply, error) {
	var w wireReply
	if err := f.decode(&w); err != nil {
		return nil, err
	}
	if w.Refused != nil {
		return nil, w.Refused.error()
	}
	bad := func(what string) error { return fmt.Errorf("%w: %s", errFrame, what) }
	if w.Code != "" && !w.Code.Known() {
		return nil, bad("a code that does not exist")
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
		Code: w.Code, Message: skill.CleanText(w.Message, skill.MaxMessage), ExitCode: w.ExitCode, Usage: w.Usage,
		Stdout: cut(w.Stdout, limit), Stderr: cut(w.Stderr, limit),
	}
	if len(r.Stdout) != w.Stdout || len(r.Stderr) != w.Stderr {
		return nil, bad("more output than the limit, or than there is")
	}
	if len(w.Files) > 0 && !call.Grants.Scratch {
		return nil, bad("files that nobody could write")
	}
	left := call.Limits.Scratch
	for _, file := range w.Files {
		if file.Name == "" || len(file.Name) > 255 || file.Name == "." || file.Name == ".." || strings.ContainsAny(file.Name, "/\\\x00") {
			return nil, bad("the name of a file")
		}
		data := cut(file.Size, left)
		if len(data) != file.Size {
			return nil, bad("a file larger than the limit, or than there is")
		}
		left -= uint64(file.Size) //nolint:gosec // it was compared
		r.Artifacts = append(r.Artifacts, skill.Artifact{Name: file.Name, Data: data, Size: int64(file.Size)})
	}
	if len(rest) > 0 {
		return nil, bad("bytes that belong to nothing")
	}
	return r, nil
}
