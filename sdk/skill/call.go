package skill

import (
	"encoding/json"
	"errors"
	"regexp"
	"time"
)

// Request is one call as an edge (HTTP, MCP, command line) hands it to the door.
// An edge copies what it takes from a pooled buffer before it fills a Request.
type Request struct {
	SkillID   ID
	Version   string          // "" for the enabled one
	Input     json.RawMessage // the value of "input"; the dispatcher checks it
	Value     map[string]any  // Input as internal/strictjson decodes it; nil: the dispatcher does
	TraceID   TraceID         // valid; the edge has made one up where the caller gave none
	Files     []FileRef       // initial files of the working folder
	Workspace WorkspaceRef    // zero: none
	Limits    Limits          // may only lower what manifest and host say; zero: no opinion
	Turn      Turn            // of the agent that asks; zero: none does
	Webhook   string          // name of the caller's webhook that is told of the end; "": none. Only of a call that is queued

	ExecutionID string // of a call that was queued; "": a new one
	Again       bool   // that call has begun before, on a host that is gone
}

// Turn is where in an agent's session a call was asked for.
type Turn struct {
	Session   string // UUID; "": no agent asked
	Iteration int    // from 0
	Tokens    int    // that models took to ask for it
	// Workspace is that of the conversation. A call that names none uses it, if its skill can.
	Workspace string
}

// Call is one run as the door hands it to a runner. It is data only, because it
// crosses a process boundary: no callback, no open handle.
type Call struct {
	SkillID     ID
	TraceID     TraceID
	TraceParent string // W3C's traceparent, for hosts that are called on behalf of this one; "": none
	ExecutionID string
	Tenant      string // of the caller; runs of two tenants share no process
	Folder      string // absolute path of the skill's folder on the host; read-only for the guest, as /skill
	Entry       string // relative to Folder, slash-separated, never out of it
	Digest      string // of the folder; runners may use it as a cache key
	Trust       Trust
	Args        []string
	Stdin       []byte
	Limits      Limits // resolved: no field is zero
	Grants      Grants
	Plan        Plan // of its target, as the runner's Prepare made it
	// Ahead says that nothing is run: what calls like this one begin with is made ready.
	// Where Folder is "" that is the runtime alone.
	Ahead bool
	// Script says that the entry is a program of the command line, as scripts of Agent
	// Skills are: its working folder is the skill's own, which it sees as if it could
	// write there, Args are its arguments, Stdin comes as it is, and it may print what it
	// likes. What it has written are its Artifacts, named by their paths.
	Script bool
	// Code says that the entry is one of Files, written by the caller, instead of a file of the skill. Script
	// is true, and the value of the last expression becomes Reply.Value.
	Code bool
	// Session has a Code call go on with the variables of an earlier one; nil: the call begins anew.
	Session *SessionState
	// Files are put into the working folder before the guest runs.
	Files []File
	// Folders are those of Agent Skills whose files a Code call sees in [AgentSkillsDir].
	Folders []Folder
	// ReportRemoved asks for Reply.Removed.
	ReportRemoved bool
	// Record is how many bytes the draws of a Recording may have; 0: none is made.
	Record uint64
	// Replay are the draws of a Recording, which the run gets in the place of clocks,
	// chance and the network; nil: the real ones.
	Replay []byte
}

// File is a file of a call with its content.
type File struct {
	Name string // a path in the working folder, slash-separated
	Data []byte
	Path string // absolute path of the content on the host; "": use Data
}

// AgentSkillsDir is where code sees the folders of Agent Skills.
const AgentSkillsDir = "/mnt/skills"

// Folder is the folder of an Agent Skill, as the code of a caller sees it.
type Folder struct {
	Name   string   // of the skill
	Path   string   // absolute path on the host
	Digest string   // of its files
	Files  []string // paths in the folder, slash-separated; no others are visible
}

// Reply is what a run left behind. Exactly one of these holds: Code is "" and
// the guest ended by itself with ExitCode, or Code says what ended it.
type Reply struct {
	Code     Code   // "" when the guest ended by itself
	Message  string // for Code, written for the caller; cleaned
	ExitCode uint32 // meaningful when Code is ""
	Stdout   []byte // what was written before the end, at most Limits.Output
	Stderr   []byte // the same
	Usage    Usage
	// Bystander says that nothing of this end is the skill's doing: it shared a process
	// that was ended for another run's sake (Code is WorkerCrashed), or its time was over
	// before it began (Timeout).
	Bystander bool
	// Artifacts are the files that the guest left in the top folder of /work,
	// in order of name; nil unless scratch was granted.
	Artifacts []Artifact
	// Removed are the names of Call.Files that the guest removed, renamed or replaced by something other than a
	// file; nil unless Call.ReportRemoved.
	Removed []string
	// Value describes the value of the last expression of a Code call, as the guest wrote it: at most
	// Limits.Output bytes, not checked; nil: no value.
	Value []byte
	// State is the memory of a call with a Session, for the next one; nil: the call failed, and the next one has
	// the same state again. What it means is between runs.
	State []byte
	// Processes are those that the run started; nil: none.
	Processes *Processes
	// Recording is nil where Call.Record is 0, and from runners that cannot make one.
	Recording *Recording
	// Differs says where the run was not as the one that Call.Replay was recorded of;
	// "" where it asked for the same, to its end.
	Differs string
}

// Usage is what a run cost.
type Usage struct {
	Fuel       uint64 // units, at most those of Limits; 0 where the runner does not meter
	MemoryPeak uint64 // bytes
	// StartFuel is what start-ups used beside Fuel, in units: those that were begun for
	// this call, and those of earlier calls of the tenant that went on after their call.
	StartFuel uint64
	// Began and Took are when the process that ran it had it, and for how long; zero where
	// that was the host's own.
	Began int64 // Unix time, in ns
	Took  time.Duration
}

// The bounds of [Processes].
const (
	MaxProcessesListed = 100
	MaxProgram         = 64 // bytes of a program's name
)

// Processes are what a script's run started.
type Processes struct {
	Started int       `json:"started"` // in all, without the script itself
	List    []Process `json:"list"`    // the first of them, in the order of their starts; at most MaxProcessesListed
}

// Process is one process that a run started.
type Process struct {
	ID      int    `json:"id"`               // from 2; 1 is the script
	Parent  int    `json:"parent"`           // id of the process that started it
	Program string `json:"program"`          // its name; arguments can have secrets, and are left out
	Exit    uint32 `json:"exit"`             // exit code
	Signal  uint8  `json:"signal,omitempty"` // that ended it, as Linux numbers them; 0: it ended by itself
}

// Artifact is one file that a run produced.
type Artifact struct {
	Name string `json:"name"` // no slash, but in those of scripts: a path in the working folder
	Data []byte `json:"-"`
	Size int64  `json:"size"`
	URL  string `json:"url,omitempty"` // of the file on the host, below its base URL; "": it is not kept
}

// Result is the Normalized Skill Result, the one answer of every runner and
// every failure. Success true means Error nil; Success false means Data null.
type Result struct {
	Success bool            `json:"success"`
	SkillID ID              `json:"skill_id"`
	TraceID TraceID         `json:"trace_id"`
	Data    json.RawMessage `json:"data"`
	Error   *ResultError    `json:"error"`
	Meta    Meta            `json:"meta"`
}

// ResultError is the error of a [Result].
type ResultError struct {
	Code    Code           `json:"code"`
	Status  int            `json:"status"`
	Message string         `json:"message"`
	Details map[string]any `json:"details,omitempty"`
}

// Meta says how the result came about.
type Meta struct {
	LatencyMS       int64      `json:"latency_ms"`
	Version         string     `json:"version"`
	ExecutionID     string     `json:"execution_id"`
	Runner          Kind       `json:"runner"`
	Digest          string     `json:"digest"`
	FuelUsed        uint64     `json:"fuel_used"`
	MemoryPeakBytes uint64     `json:"memory_peak_bytes"`
	Truncated       bool       `json:"truncated"`
	Artifacts       []Artifact `json:"artifacts,omitempty"`
	Processes       *Processes `json:"processes,omitempty"`
	// Ran says that the run began, and is on record where the host keeps one. Without it
	// the call was refused by the host, whatever a skill would have said.
	Ran bool `json:"-"`
}

// Failure is the Result of a call that failed with err. An error that is not an
// *Error becomes INTERNAL with a message that tells nothing of the host.
func Failure(id ID, trace TraceID, meta Meta, err error) *Result {
	re := &ResultError{Code: CodeOf(err), Message: "the host could not run this call; the log has the reason under this trace id"}
	var e *Error
	if errors.As(err, &e) && e.Code != Internal {
		re.Message, re.Details = CleanText(e.Message, MaxMessage), e.Details
	}
	re.Status = re.Code.Status()
	return &Result{SkillID: id, TraceID: trace, Error: re, Meta: meta}
}

// FileRef is a file of a request. It has exactly one source: Text, Base64, the ID of an uploaded file, or an Artifact
// of an earlier execution.
type FileRef struct {
	Name        string  `json:"name"` // a path in the working folder, slash-separated
	Text        *string `json:"text,omitempty"`
	Base64      *string `json:"base64,omitempty"`
	ID          string  `json:"id,omitempty"`
	ExecutionID string  `json:"execution_id,omitempty"`
	Artifact    string  `json:"artifact,omitempty"`
}

// FileInfo is the metadata of an uploaded file.
type FileInfo struct {
	ID        string    `json:"id"`   // SHA-256, 64 hex digits
	Name      string    `json:"name"` // as uploaded; may be ""
	Size      int64     `json:"size"` // bytes
	CreatedAt time.Time `json:"created_at"`
	ExpiresAt time.Time `json:"expires_at"` // use extends it
}

// WorkspaceRef is the workspace of a request.
type WorkspaceRef struct {
	ID string // [ValidWorkspace]; "": none
	// Always saves the changes of failed calls, too.
	Always bool
	// NoWait refuses the call with CONFLICT if another call uses the workspace; else it waits.
	NoWait bool
}

var workspacePattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`)

// ValidWorkspace reports whether id is a valid workspace id: 1 to 64 of a-z, A-Z, 0-9, _ and -, beginning with a
// letter or digit.
func ValidWorkspace(id string) bool { return workspacePattern.MatchString(id) }

// WorkspaceFile is a file of a workspace.
type WorkspaceFile struct {
	Name string `json:"name"`
	ID   string `json:"id"` // as in [FileInfo]
	Size int64  `json:"size"`
}

// Workspace is a working folder that calls of a principal share.
type Workspace struct {
	ID        string          `json:"id"`
	Files     []WorkspaceFile `json:"files"` // by name, never nil
	Size      int64           `json:"size"`  // bytes of all files
	Revision  int64           `json:"revision"`
	CreatedAt time.Time       `json:"created_at"`
	UpdatedAt time.Time       `json:"updated_at"`
	ExpiresAt time.Time       `json:"expires_at"` // use extends it
}
