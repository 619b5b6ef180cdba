package workers

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"openskill/internal/state"
	"openskill/sdk/skill"
)

// Heads of calls and replies are not JSON: to write and read that takes longer than
// the way between the processes. Numbers are varints of package encoding/binary, a
// text is its length and its bytes, a list its length and one more (0: none), in the
// order of the fields below. TestHeads holds that no field is left out.

// wireCall is a skill.Call; the body of the frame is its standard input, and behind that
// its files, what it is a replay of, and the state of its session.
type wireCall struct {
	Kind   skill.Kind
	Call   skill.Call
	Files  []wireGiven
	Replay int       // bytes, and one more; 0: it is none
	State  int       // bytes; 0: it has none, or the worker has it
	Tag    state.Tag // names the state; zero without one
}

// body is what stands in the body of the frame.
func (w *wireCall) body() []byte {
	c := &w.Call
	if c.Replay == nil && len(c.Files) == 0 && w.State == 0 {
		return c.Stdin
	}
	n := len(c.Stdin) + len(c.Replay) + w.State
	for i := range c.Files {
		n += len(c.Files[i].Data)
	}
	b := append(make([]byte, 0, n), c.Stdin...)
	for i := range c.Files {
		b = append(b, c.Files[i].Data...)
	}
	b = append(b, c.Replay...)
	if w.State > 0 {
		b = append(b, c.Session.State...)
	}
	return b
}

// cut gives the call what stands in the body.
func (w *wireCall) cut(body []byte) error {
	c := &w.Call
	n := max(w.Replay-1, 0)
	if w.State > len(body) || n > len(body)-w.State || w.State > 0 && c.Session == nil {
		return fmt.Errorf("%w: a replay or a state beyond its end", errFrame)
	}
	at := len(body) - w.State
	if w.State > 0 {
		c.Session.State = body[at:]
		body = body[:at:at]
	}
	at -= n
	if w.Replay > 0 {
		c.Replay = append([]byte{}, body[at:]...) // never nil: that would be a run of its own
	}
	for _, f := range slices.Backward(w.Files) {
		if f.Size > at {
			return fmt.Errorf("%w: a file beyond its end", errFrame)
		}
		at -= f.Size
		c.Files = append(c.Files, skill.File{Name: f.Name, Data: bytes.Clone(body[at : at+f.Size]), Path: f.Path})
	}
	slices.Reverse(c.Files)
	c.Stdin = body[:at:at]
	return nil
}

// wireReply is a skill.Reply; the body of the frame is standard output, standard
// error, the artifacts, the value, the state, the draws of a recording and what it says was seen, one
// after the other.
type wireReply struct {
	Refused   *Refusal // then nothing else holds
	Code      skill.Code
	Message   string
	ExitCode  uint32
	Stdout    int // bytes
	Stderr    int
	Usage     skill.Usage
	Files     []wireFile
	Removed   []string
	Value     int  // bytes, and one more; 0: it has none
	State     int  // bytes; 0: it has none
	Patch     bool // these are the difference to the state that was given
	Unknown   bool // the worker has not the state that the call names; then nothing else holds
	Processes *skill.Processes
	Differs   string
	Recorded  *wireRecording // nil: none
	Images    Images         // of the worker, also where it refused
}

// wireRecording is a skill.Recording.
type wireRecording struct {
	Draws   int // bytes, and one more; 0: there are none
	Missing string
	Seen    int // bytes
	More    bool
}

// maxFiles is what guests' file systems hold.
const maxFiles = 1024

// maxPrograms is how many programs a plan names.
const maxPrograms = 64

type wireFile struct {
	Name string
	Size int
}

// wireGiven is a skill.File. Without a path, its content is in the body.
type wireGiven struct {
	Name string
	Size int
	Path string
}

func appendText[T ~string](b []byte, s T) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func appendTexts(b []byte, list []string) []byte {
	if list == nil {
		return binary.AppendUvarint(b, 0)
	}
	b = binary.AppendUvarint(b, uint64(len(list))+1)
	for _, s := range list {
		b = appendText(b, s)
	}
	return b
}

func appendBool(b []byte, v bool) []byte {
	if v {
		return append(b, 1)
	}
	return append(b, 0)
}

// appendJSON is for what is seldom there; nothing is an empty text.
func appendJSON(b []byte, v any, there bool) []byte {
	if !there {
		return appendText(b, "")
	}
	j, err := json.Marshal(v)
	if err != nil {
		j = []byte("false") // which the other side refuses
	}
	return appendText(b, string(j))
}

func appendFiles(b []byte, list []wireFile) []byte {
	b = binary.AppendUvarint(b, uint64(len(list)))
	for _, f := range list {
		b = binary.AppendUvarint(appendText(b, f.Name), uint64(f.Size))
	}
	return b
}

func (w *wireCall) append(b []byte) []byte {
	c := &w.Call
	b = appendText(b, w.Kind)
	b = appendText(b, c.SkillID)
	b = appendText(b, c.TraceID)
	b = appendText(b, c.TraceParent)
	b = appendText(b, c.ExecutionID)
	b = appendText(b, c.Tenant)
	b = appendText(b, c.Folder)
	b = appendText(b, c.Entry)
	b = appendText(b, c.Digest)
	b = binary.AppendUvarint(b, uint64(c.Trust))
	b = appendTexts(b, c.Args)
	b = appendText(b, c.Plan.Runtime)
	b = appendTexts(b, c.Plan.Imports)
	b = appendText(b, c.Plan.Module.Digest)
	b = appendBool(b, c.Plan.Module.Trusted)
	b = binary.AppendUvarint(b, uint64(len(c.Plan.Programs)))
	for i := range c.Plan.Programs {
		p := &c.Plan.Programs[i]
		b = appendBool(appendText(appendText(appendText(b, string(p.Kind)), p.Runtime), p.Module.Digest), p.Module.Trusted)
	}
	b = appendBool(b, c.Ahead)
	b = binary.AppendVarint(b, int64(c.Limits.Timeout))
	for _, n := range []uint64{c.Limits.Memory, c.Limits.Fuel, c.Limits.Output, c.Limits.Scratch} {
		b = binary.AppendUvarint(b, n)
	}
	b = appendText(b, c.Grants.Data)
	b = appendText(b, c.Grants.DataAt)
	b = appendBool(b, c.Grants.Scratch)
	b = appendJSON(b, c.Grants.HTTP, c.Grants.HTTP != nil)
	b = appendTexts(b, c.Grants.Env)
	b = appendText(b, c.Grants.Packages)
	b = appendJSON(b, c.Grants.Skills, c.Grants.Skills != nil)
	b = appendBool(b, c.Script)
	b = appendBool(appendBool(b, c.Code), c.ReportRemoved)
	b = binary.AppendUvarint(b, uint64(len(w.Files)))
	for _, f := range w.Files {
		b = appendText(binary.AppendUvarint(appendText(b, f.Name), uint64(f.Size)), f.Path)
	}
	b = binary.AppendUvarint(b, uint64(len(c.Folders)))
	for i := range c.Folders {
		of := &c.Folders[i]
		b = appendTexts(appendText(appendText(appendText(b, of.Name), of.Path), of.Digest), of.Files)
	}
	b = binary.AppendUvarint(b, c.Record)
	b = binary.AppendUvarint(b, uint64(w.Replay))
	b = appendBool(b, c.Session != nil)
	if s := c.Session; s != nil {
		b = binary.AppendUvarint(binary.AppendVarint(appendText(b, string(s.Seed[:])), s.Made), s.Most)
	}
	return appendText(binary.AppendUvarint(b, uint64(w.State)), string(w.Tag[:]))
}

func (w *wireCall) read(head []byte) error {
	r := reader{b: head}
	c := &w.Call
	w.Kind = skill.Kind(r.text())
	c.SkillID, c.TraceID, c.TraceParent, c.ExecutionID = skill.ID(r.text()), skill.TraceID(r.text()), r.text(), r.text()
	c.Tenant, c.Folder, c.Entry, c.Digest, c.Trust = r.text(), r.text(), r.text(), r.text(), skill.Trust(r.number())
	c.Args = r.texts()
	c.Plan.Runtime, c.Plan.Imports = r.text(), r.texts()
	c.Plan.Module.Digest, c.Plan.Module.Trusted = r.text(), r.bool()
	for range min(r.length(), maxPrograms) {
		c.Plan.Programs = append(c.Plan.Programs, skill.Program{
			Kind: skill.Kind(r.text()), Runtime: r.text(), Module: skill.Module{Digest: r.text(), Trusted: r.bool()},
		})
	}
	c.Ahead = r.bool()
	c.Limits = skill.Limits{Timeout: time.Duration(r.signed()), Memory: r.number(), Fuel: r.number(), Output: r.number(), Scratch: r.number()}
	c.Grants.Data, c.Grants.DataAt, c.Grants.Scratch = r.text(), r.text(), r.bool()
	r.json(&c.Grants.HTTP)
	c.Grants.Env, c.Grants.Packages = r.texts(), r.text()
	r.json(&c.Grants.Skills)
	c.Script, c.Code, c.ReportRemoved = r.bool(), r.bool(), r.bool()
	for n := r.length(); n > 0 && !r.bad; n-- {
		w.Files = append(w.Files, wireGiven{r.text(), r.length(), r.text()})
	}
	for n := r.length(); n > 0 && !r.bad; n-- {
		c.Folders = append(c.Folders, skill.Folder{Name: r.text(), Path: r.text(), Digest: r.text(), Files: r.texts()})
	}
	c.Record, w.Replay = r.number(), r.length()
	if r.bool() {
		seed := r.bytes()
		r.bad = r.bad || len(seed) != len(skill.SessionState{}.Seed)
		c.Session = &skill.SessionState{Made: r.signed(), Most: r.number()}
		copy(c.Session.Seed[:], seed)
	}
	w.State = r.length()
	tag := r.bytes()
	r.bad = r.bad || len(tag) != len(w.Tag)
	copy(w.Tag[:], tag)
	return r.end()
}

func (w *wireReply) append(b []byte) []byte {
	b = appendJSON(b, w.Refused, w.Refused != nil)
	b = appendText(b, w.Code)
	b = appendText(b, w.Message)
	for _, n := range []uint64{uint64(w.ExitCode), uint64(w.Stdout), uint64(w.Stderr), w.Usage.Fuel, w.Usage.MemoryPeak, w.Usage.StartFuel} {
		b = binary.AppendUvarint(b, n)
	}
	b = binary.AppendVarint(b, w.Usage.Began)
	b = binary.AppendVarint(b, int64(w.Usage.Took))
	b = binary.AppendUvarint(appendTexts(appendFiles(b, w.Files), w.Removed), uint64(w.Value))
	b = appendBool(appendBool(binary.AppendUvarint(b, uint64(w.State)), w.Patch), w.Unknown)
	b = appendJSON(b, w.Processes, w.Processes != nil)
	b = appendText(b, w.Differs)
	b = appendBool(b, w.Recorded != nil)
	if rec := w.Recorded; rec != nil {
		b = binary.AppendUvarint(b, uint64(rec.Draws))
		b = appendText(b, rec.Missing)
		b = binary.AppendUvarint(b, uint64(rec.Seen))
		b = appendBool(b, rec.More)
	}
	for _, n := range []uint64{w.Images.Bytes, w.Images.Made, w.Images.Dropped, w.Images.Restored} {
		b = binary.AppendUvarint(b, n)
	}
	return b
}

func (w *wireReply) read(head []byte) error {
	r := reader{b: head}
	r.json(&w.Refused)
	w.Code, w.Message = skill.Code(r.text()), r.text()
	exit := r.number()
	w.ExitCode = uint32(exit) // compared below
	w.Stdout, w.Stderr = r.length(), r.length()
	w.Usage = skill.Usage{Fuel: r.number(), MemoryPeak: r.number(), StartFuel: r.number()}
	w.Usage.Began, w.Usage.Took = r.signed(), time.Duration(r.signed())
	r.bad = r.bad || exit != uint64(w.ExitCode)
	w.Files, w.Removed, w.Value, w.State = r.files(), r.texts(), r.length(), r.length()
	w.Patch, w.Unknown = r.bool(), r.bool()
	r.json(&w.Processes)
	w.Differs = r.text()
	if r.bool() {
		w.Recorded = &wireRecording{Draws: r.length(), Missing: r.text(), Seen: r.length(), More: r.bool()}
	}
	w.Images = Images{Bytes: r.number(), Made: r.number(), Dropped: r.number(), Restored: r.number()}
	return r.end()
}

// reader takes a head apart. After the first thing that is wrong all is zero.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) number() uint64 {
	n, size := binary.Uvarint(r.b)
	if size <= 0 || r.bad {
		r.bad = true
		return 0
	}
	r.b = r.b[size:]
	return n
}

func (r *reader) signed() int64 {
	n, size := binary.Varint(r.b)
	if size <= 0 || r.bad {
		r.bad = true
		return 0
	}
	r.b = r.b[size:]
	return n
}

// length is a number of bytes or of things: never more than a frame has.
func (r *reader) length() int {
	n := r.number()
	if n > 1<<31-1 {
		r.bad = true
		return 0
	}
	return int(n)
}

func (r *reader) text() string { return string(r.bytes()) }

func (r *reader) bytes() []byte {
	n := r.length()
	if r.bad || n > len(r.b) {
		r.bad = true
		return nil
	}
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}

func (r *reader) texts() []string {
	n := r.length()
	if r.bad || n == 0 {
		return nil
	}
	if n--; n > len(r.b) { // each takes a byte at least
		r.bad = true
		return nil
	}
	list := make([]string, n)
	for i := range list {
		list[i] = r.text()
	}
	return list
}

func (r *reader) files() (list []wireFile) {
	n := r.length()
	r.bad = r.bad || n > maxFiles
	for i := 0; i < n && !r.bad; i++ {
		list = append(list, wireFile{r.text(), r.length()})
	}
	return list
}

func (r *reader) bool() bool {
	n := r.number()
	r.bad = r.bad || n > 1
	return n == 1 && !r.bad
}

func (r *reader) json(into any) {
	b := r.bytes()
	if len(b) > 0 && !r.bad && json.Unmarshal(b, into) != nil {
		r.bad = true
	}
}

func (r *reader) end() error {
	if r.bad || len(r.b) > 0 {
		return fmt.Errorf("%w: a head", errFrame)
	}
	return nil
}
