package admission

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"openskill/host/manifest"
	"openskill/sdk/skill"
)

// The verdicts.
const (
	Accepted = "accepted"
	Refused  = "refused"
)

// Report says what an upload holds, asks and gets, or why it was refused. Where it
// was refused it goes as far as admission came. All text of strangers in it is
// cleaned and cut.
type Report struct {
	Verdict  string          `json:"verdict"` // accepted or refused
	ID       skill.ID        `json:"id"`      // "" where the manifest could not be read
	Version  string          `json:"version"`
	Digest   string          `json:"digest"` // "sha256:" and 64 hex digits; "" before all was read
	Files    []File          `json:"files"`  // in the order of the archive; of a refused one the first hundred
	Asks     *Asks           `json:"asks"`   // what the manifest says; null where it could not be read
	Gets     *Asks           `json:"gets"`   // after the host's caps and the operator's grants
	Refused  []Refusal       `json:"refused"`
	Warnings []string        `json:"warnings"`
	Module   json.RawMessage `json:"module"` // the checker's report; null for scripts, or before the check
	// Preflight says what the scripts of what was accepted need that the sandbox has not,
	// as package preflight does; missing where there are none.
	Preflight json.RawMessage `json:"preflight,omitempty"`
	// Packages is the lock of the packages that the operator gave the version; missing where it
	// has none.
	Packages json.RawMessage `json:"packages,omitempty"`
}

// File is one file of a skill.
type File struct {
	Path string `json:"path"` // relative, with /
	Size int64  `json:"size"` // bytes
}

// Asks are permissions and limits. A limit that is zero is left to the host.
type Asks struct {
	Permissions skill.Permissions `json:"permissions"`
	Limits      skill.LimitsJSON  `json:"limits"`
	Requires    []string          `json:"requires"`
}

// Refusal is one reason for which an upload is refused.
type Refusal struct {
	File    string     `json:"file"` // of the upload; "" for the whole of it
	Line    int        `json:"line"` // 0: the file as a whole
	Code    skill.Code `json:"code"`
	Message string     `json:"message"`
}

// String gives file:line: message.
func (r *Refusal) String() string { return r.place() + r.Message }

func (r *Refusal) place() string {
	switch {
	case r.File == "":
		return ""
	case r.Line == 0:
		return r.File + ": "
	default:
		return fmt.Sprintf("%s:%d: ", r.File, r.Line)
	}
}

// refusalError is a reason on its way to the report.
type refusalError Refusal

func (r *refusalError) Error() string { return (*Refusal)(r).String() }

// reject refuses an archive for one of its entries, "" for the whole.
func reject(entry, format string, args ...any) error {
	return &refusalError{File: skill.CleanText(entry, maxShown), Code: skill.ArchiveRejected, Message: fmt.Sprintf(format, args...)}
}

// errRefused says that the reasons are in the report.
var errRefused = errors.New("refused")

// What a report holds at most.
const (
	maxShown    = 200 // bytes of a name
	maxReason   = 400 // bytes of a reason
	maxReasons  = 50
	maxWarnings = 20
	maxFiles    = 100 // of an upload that was refused
)

func newReport() *Report {
	return &Report{Verdict: Refused, Files: []File{}, Refused: []Refusal{}, Warnings: []string{}}
}

func (r *Report) refuse(why *Refusal) {
	if len(r.Refused) == maxReasons {
		return
	}
	c := *why
	c.File, c.Message = skill.CleanText(c.File, maxShown), skill.CleanText(c.Message, maxReason)
	r.Refused = append(r.Refused, c)
}

func (r *Report) warn(text ...string) {
	for _, w := range text {
		if len(r.Warnings) < maxWarnings {
			r.Warnings = append(r.Warnings, skill.CleanText(w, maxReason))
		}
	}
}

// read takes over what a manifest says.
func (r *Report) read(s *manifest.Skill, grant func(*manifest.Skill) skill.Permissions) {
	d := &s.Descriptor
	r.ID, r.Version, r.Digest = d.ID, d.Version, d.Digest
	requires := d.Requires
	if requires == nil {
		requires = []string{}
	}
	r.Asks = &Asks{Permissions: s.Permissions, Limits: s.Asked, Requires: requires}
	r.Gets = &Asks{Limits: s.Limits.JSON(), Requires: requires}
	if grant != nil {
		r.Gets.Permissions = grant(s)
	}
	gets := r.Gets.Limits.Fields()
	for i, asked := range r.Asks.Limits.Fields() {
		if most := *gets[i].Value; most < *asked.Value {
			r.warn(fmt.Sprintf("limits.%s: %d is above the host's maximum of %d", asked.Name, *asked.Value, most))
		}
	}
	if !reflect.DeepEqual(r.Asks.Permissions, r.Gets.Permissions) {
		r.warn("permissions: the operator of this host does not grant everything")
	}
}

// err is the report as an error, with a cause for the log.
func (r *Report) err(cause error) error {
	if len(r.Files) > maxFiles {
		r.Files = r.Files[:maxFiles]
	}
	for i := range r.Files {
		r.Files[i].Path = skill.CleanText(r.Files[i].Path, maxShown)
	}
	e := &skill.Error{Op: "upload.Admit", Code: skill.ArchiveRejected, Details: map[string]any{"report": r}, Err: cause}
	if len(r.Refused) > 0 {
		first := r.Refused[0]
		e.Code, e.Subject = first.Code, first.File
		text := "the upload is refused: " + first.String()
		if n := len(r.Refused) - 1; n > 0 {
			text = skill.CleanText(text, skill.MaxMessage-40) + fmt.Sprintf(" (and %d more in the report)", n)
		}
		e.Message = skill.CleanText(text, skill.MaxMessage)
	}
	return e
}

// Text is the report for a person, a line each: first the verdict, then the reasons
// as file:line: code: message, last what the upload asks and gets.
func (r *Report) Text() string {
	var b strings.Builder
	b.WriteString(r.Verdict)
	if r.ID != "" {
		fmt.Fprintf(&b, ": %s %s", r.ID, r.Version)
	}
	b.WriteByte('\n')
	for i := range r.Refused {
		c := &r.Refused[i]
		fmt.Fprintf(&b, "%s%s: %s\n", c.place(), c.Code, c.Message)
	}
	for _, w := range r.Warnings {
		fmt.Fprintf(&b, "warning: %s\n", w)
	}
	if r.Digest != "" {
		fmt.Fprintf(&b, "digest: %s\n", r.Digest)
	}
	if r.Asks != nil {
		fmt.Fprintf(&b, "asks: %s\n", r.Asks)
		fmt.Fprintf(&b, "gets: %s\n", r.Gets)
	}
	if text := moduleText(r.Module); text != "" {
		fmt.Fprintf(&b, "module: %s\n", text)
	}
	if len(r.Files) > 0 {
		b.WriteString("files:\n")
	}
	for _, f := range r.Files {
		fmt.Fprintf(&b, "  %10d  %s\n", f.Size, skill.CleanText(f.Path, maxShown))
	}
	return b.String()
}

// String gives it as JSON without what is not asked for.
func (a *Asks) String() string {
	b, err := json.Marshal(a)
	if err != nil { // numbers, booleans and strings
		return ""
	}
	return string(b)
}

// moduleText is the gist of a checker's report.
func moduleText(report json.RawMessage) string {
	var m struct {
		Digest   string            `json:"digest"`
		Size     int64             `json:"size"`
		Accepted bool              `json:"accepted"`
		Features []string          `json:"features"`
		Imports  []json.RawMessage `json:"imports"`
	}
	if len(report) == 0 || json.Unmarshal(report, &m) != nil || m.Digest == "" {
		return ""
	}
	verdict := Refused
	if m.Accepted {
		verdict = Accepted
	}
	text := fmt.Sprintf("%s, %d bytes, %d imports", verdict, m.Size, len(m.Imports))
	if len(m.Features) > 0 {
		text += ", uses " + strings.Join(m.Features, " ")
	}
	return skill.CleanText(text, maxReason)
}
