package records

import (
	"cmp"
	"encoding/json"
	"time"

	"openskill/sdk/skill"
)

// Status says how an execution ended.
type Status string

// The statuses. The first four are those of the agent-service documents.
const (
	Success    Status = "success"
	Failed     Status = "failed"
	Terminated Status = "terminated" // ended by its caller, by the host's end, or by the agent's bounds
	TimedOut   Status = "timeout"
	Running    Status = "running" // it has no record of its end yet
	Queued     Status = "queued"  // it was accepted, and has no record yet
)

// Kinds of records.
const (
	KindStarted  = "started"
	KindFinished = "finished"
	KindPruned   = "pruned" // older records were removed: Body is a [Pruned]
)

// Payload is what a record keeps of an input or an output, by the operator's policy.
type Payload struct {
	Bytes     int64           `json:"bytes"`            // its size
	SHA256    string          `json:"sha256,omitempty"` // 64 hex digits; "" where the policy keeps none
	JSON      json.RawMessage `json:"json,omitempty"`   // redacted or whole; nil where none is kept, or it was too large
	Truncated bool            `json:"truncated,omitempty"`
}

// Started is on record before anything runs.
type Started struct {
	ExecutionID   string              `json:"execution_id"` // UUID version 7
	Tenant        string              `json:"tenant"`
	Principal     string              `json:"principal"`
	PrincipalType skill.PrincipalType `json:"principal_type"`
	Key           string              `json:"key,omitempty"` // id of the API key
	TraceID       string              `json:"trace_id"`
	Session       string              `json:"session"`          // UUID; of a call that no agent made: its execution id
	Parent        string              `json:"parent,omitempty"` // execution whose code made it
	Iteration     int                 `json:"iteration"`        // of the agent's loop, from 0
	Skill         string              `json:"skill"`
	Version       string              `json:"version"`
	Digest        string              `json:"digest"`
	Script        string              `json:"script,omitempty"` // of an Agent Skill, its path; "" of a skill's call
	Owner         string              `json:"owner,omitempty"`  // tenant that uploaded the skill; "" of the operator's
	Input         Payload             `json:"input"`
	Files         []FileInfo          `json:"files,omitempty"` // of the request
	// The workspace and its revision before the call; "": none.
	Workspace         string           `json:"workspace,omitempty"`
	WorkspaceRevision int64            `json:"workspace_revision,omitempty"`
	Limits            skill.LimitsJSON `json:"limits"`
	Instance          string           `json:"instance"`            // of the host that ran it
	ReplayOf          string           `json:"replay_of,omitempty"` // execution that this one replays
	Contested         bool             `json:"-"`                   // another host may begin it too: the database tells
	Again             bool             `json:"-"`                   // it has begun, on a host that is gone, and begins again on this one
	On                string           `json:"-"`                   // the instance that runs it now, where it began again; "": Instance
	Time              time.Time        `json:"time"`                // UTC, in microseconds
}

// host is the instance that runs it.
func (s *Started) host() string { return cmp.Or(s.On, s.Instance) }

// Finished is on record before the caller is answered.
type Finished struct {
	ExecutionID string           `json:"execution_id"`
	Status      Status           `json:"status"`
	Code        skill.Code       `json:"code,omitempty"`    // of the error; "" of a success
	Message     string           `json:"message,omitempty"` // what the caller reads; never the guest's own words where the policy keeps no outputs
	Runner      skill.Kind       `json:"runner"`
	Fuel        uint64           `json:"fuel"`
	MemoryPeak  uint64           `json:"memory_peak"` // bytes
	DurationMS  int64            `json:"duration_ms"`
	Tokens      int              `json:"tokens"`                    // of models, by the agent
	Reported    int              `json:"reported_tokens,omitempty"` // tokens by the skill's own word, by which nothing is decided; 0: none
	Output      Payload          `json:"output"`
	Artifacts   []ArtifactInfo   `json:"artifacts,omitempty"`
	Unlisted    *Unlisted        `json:"unlisted,omitempty"`  // artifacts that are not among Artifacts; nil: all are
	Processes   *skill.Processes `json:"processes,omitempty"` // of a script; nil: it started none
	Time        time.Time        `json:"time"`                // UTC, in microseconds
}

// FileInfo is what is known of a file that a call was given.
type FileInfo = ArtifactInfo

// ArtifactInfo is what is known of a file that a run left.
type ArtifactInfo struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"` // 64 hex digits
}

// Unlisted stands for the artifacts for which a record has no room.
type Unlisted struct {
	Count  int    `json:"count"`
	Bytes  int64  `json:"bytes"`  // of their content
	SHA256 string `json:"sha256"` // of the JSON of the whole list, those that are listed included
}

// Pruned says what was removed: every record of the tenant before Next.
type Pruned struct {
	Next uint64    `json:"next"` // sequence number of the first record that stayed
	Hash string    `json:"hash"` // of the last one that was removed, which that one names as Prev
	Time time.Time `json:"time"`
}

// Record is one link of a tenant's chain.
type Record struct {
	Tenant      string          `json:"tenant"`
	Seq         uint64          `json:"seq"` // from 1, without gaps
	Kind        string          `json:"kind"`
	ExecutionID string          `json:"execution_id,omitempty"` // of a [Change], its id
	Time        time.Time       `json:"time"`                   // UTC, in microseconds
	Body        json.RawMessage `json:"body"`                   // a [Started], [Finished], [Change] or [Pruned], byte for byte as it was hashed
	Prev        string          `json:"prev"`                   // hash of the record before; 64 zeros of the first
	Hash        string          `json:"hash"`                   // of all fields above, see [Link]
}

// Execution is one call as its records tell it.
type Execution struct {
	Started
	Finished *Finished // nil while it runs
	Queued   bool      // it waits for a place, and nothing of it is on record
	Damaged  string    // what the database has that cannot be read, and is left zero; "": nothing
}

// Status is the status of e.
func (e *Execution) Status() Status {
	switch {
	case e.Queued:
		return Queued
	case e.Finished == nil:
		return Running
	}
	return e.Finished.Status
}

// StatusOf is the status of an execution that ended with an error, by codes that only the host can give: what
// a guest reports has other ones.
func StatusOf(code skill.Code) Status {
	if code == skill.Timeout {
		return TimedOut
	}
	if code == skill.Cancelled || code == skill.Unauthorized { // of a run, the end of its caller's credentials
		return Terminated
	}
	return Failed
}
