package skill

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// ID names a skill: ^[a-z0-9](-?[a-z0-9_])*$, at most 64 bytes.
type ID string

var idPattern = regexp.MustCompile(`^[a-z0-9](-?[a-z0-9_])*$`)

// ParseID checks s against the pattern of [ID].
func ParseID(s string) (ID, error) {
	if len(s) > 64 || !idPattern.MatchString(s) {
		return "", &Error{
			Op: "skill.ParseID", Code: InvalidArgument, Subject: CleanText(s, 80),
			Message: "a skill id is 1 to 64 of a-z, 0-9, _ and single -, beginning with a letter or digit",
		}
	}
	return ID(s), nil
}

// TraceID ties the log lines, records and answer of one call together:
// 1 to 64 of 0-9 A-Z a-z . _ -
type TraceID string

var tracePattern = regexp.MustCompile(`^[0-9A-Za-z._-]{1,64}$`)

// ValidTraceID reports whether s may be taken over from a caller as it is.
func ValidTraceID(s string) bool { return tracePattern.MatchString(s) }

// Kind is how a skill is executed, as "type:runtime": wasm:wasi, wasm:python,
// wasm:javascript, wasm:shell, wasm:extism, cli:python; or as "type" where there is one runtime: http.
type Kind string

// The kinds of this release.
const (
	WasmWASI       Kind = "wasm:wasi"
	WasmPython     Kind = "wasm:python"
	WasmJavaScript Kind = "wasm:javascript"
	WasmShell      Kind = "wasm:shell"
	WasmExtism     Kind = "wasm:extism"
	CLIPython      Kind = "cli:python"
	CLIExec        Kind = "cli:exec"
	HTTP           Kind = "http"
	// Agentic is an uploaded Agent Skill. It is not called: models read it, and run its scripts.
	Agentic Kind = "agent-skill"
)

// OwnModule says that the entry of a skill of this kind is a WebAssembly module.
func (k Kind) OwnModule() bool { return k == WasmWASI || k == WasmExtism }

// File is the file that an entry names: that of a plug-in of Extism may go on with "#"
// and a function of it.
func (k Kind) File(entry string) string {
	if k == WasmExtism {
		entry, _, _ = strings.Cut(entry, "#")
	}
	return entry
}

// Trust says where a skill came from. The zero value is Community.
type Trust int //nolint:recvcheck // only what reads into a value needs its address

// The degrees of trust, lowest first.
const (
	Community Trust = iota // uploaded or pulled: sandboxed runners only
	Trusted                // in a folder of the operator's own
	Builtin                // came with openSkill
)

var trustNames = [...]string{"community", "trusted", "builtin"}

// String gives the name that manifests and answers use.
func (t Trust) String() string {
	if t < 0 || int(t) >= len(trustNames) {
		return fmt.Sprintf("trust(%d)", int(t))
	}
	return trustNames[t]
}

// MarshalText writes the name of t.
func (t Trust) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText reads a name written by MarshalText.
func (t *Trust) UnmarshalText(b []byte) error {
	for i, n := range trustNames {
		if n == string(b) {
			*t = Trust(i)
			return nil
		}
	}
	return fmt.Errorf("unknown trust %q", b)
}

// Grants are what the operator lets a run touch. The zero value grants nothing.
type Grants struct {
	Data    string     // host folder shown read-only as /data; "" for none
	DataAt  string     // where in /data it is shown, such as logs; "": it is /data
	Scratch bool       // an empty, writable /work that lives as long as the run
	HTTP    []HTTPRule // requests that the run may make; nil: none
	Env     []string   // variables of the guest's environment, NAME=value, in order of name; may hold secrets
	Secrets []Secret   // whose placeholders Env has; the host alone knows them
	Skills  []ID       // that the run may call
	// Packages is a folder of the host with packages of Python and Node, named by the digest of
	// its files and shown read-only; "": none.
	Packages string
}

// Secret is the value of a variable that guests do not get. They have a placeholder, and requests
// that a rule of For permits are sent with the value. It prints as its placeholder.
type Secret struct {
	Placeholder string
	Value       string `json:"-"`
	For         []HTTPRule
}

// String gives the placeholder.
func (s Secret) String() string { return s.Placeholder }

// GoString gives the placeholder.
func (s Secret) GoString() string { return s.Placeholder }

// Permissions are what a manifest asks for; the door turns them into [Grants]
// by what the operator allows.
type Permissions struct {
	Data        bool       `json:"data"`
	AllowedRoot string     `json:"allowed_root,omitempty"` // what of the data folder is asked for, such as data/logs; "": all
	Scratch     bool       `json:"scratch"`
	HTTP        []HTTPRule `json:"http,omitempty"`
	Env         []string   `json:"env,omitempty"`    // names
	Skills      []ID       `json:"skills,omitempty"` // that its code calls
}

// Target is one way to execute a skill: a runner and the file it starts with.
type Target struct {
	Kind  Kind   `json:"kind"`
	Entry string `json:"entry"` // relative to the folder, slash-separated
}

// File is the file of the entry.
func (t Target) File() string { return t.Kind.File(t.Entry) }

// Descriptor is a skill as the catalogue shows it: everything a caller or a
// model needs to call it, and nothing about where it lives on the host.
type Descriptor struct {
	ID           ID              `json:"id"`
	Version      string          `json:"version"`
	Description  string          `json:"description"`
	Runner       Kind            `json:"runner"`
	Fallback     Kind            `json:"fallback,omitempty"`
	Trust        Trust           `json:"trust"`
	Digest       string          `json:"digest"` // "sha256:" and 64 hex digits
	Enabled      bool            `json:"enabled"`
	State        State           `json:"state,omitempty"`      // of an uploaded version; "" for the operator's own skills
	Reason       string          `json:"reason,omitempty"`     // why it is quarantined, or cannot be called on this host
	Shared       bool            `json:"shared,omitempty"`     // approved for all tenants
	Idempotent   bool            `json:"idempotent,omitempty"` // by its author's word: a second run of a call changes nothing more
	Limits       LimitsJSON      `json:"limits"`
	Permissions  Permissions     `json:"permissions"`
	Requires     []string        `json:"requires,omitempty"` // packages that choose the runtime
	InputSchema  json.RawMessage `json:"input_schema"`
	OutputSchema json.RawMessage `json:"output_schema"`
	Cost         *Cost           `json:"cost_metadata,omitempty"`
}

// Callable reports whether the skill can be called: it is enabled, and no Agent Skill.
func (d *Descriptor) Callable() bool { return d.Enabled && d.Runner != Agentic }

// State is what became of an uploaded version.
type State string

// The states of an uploaded version.
const (
	StateEnabled     State = "enabled"
	StateDisabled    State = "disabled"
	StateQuarantined State = "quarantined" // disabled by the host; only the operator can enable it
	StateDeleted     State = "deleted"     // gone from the catalogue; its files follow
	StateDryRun      State = "dry_run"     // checked, and not kept
)

// Cost is what a manifest tells an agent about the price of a call.
type Cost struct {
	EstimatedTokens     int `json:"estimated_tokens"`
	EstimatedDurationMS int `json:"estimated_duration_ms"`
	RateLimitPerMinute  int `json:"rate_limit_per_minute"`
	// Other are the further keys of the manifest, as a JSON object; "": none. They are shown,
	// and nothing here reads them.
	Other string `json:"-"`
}

// MarshalJSON writes all keys into one object.
func (c Cost) MarshalJSON() ([]byte, error) {
	type numbers Cost
	b, err := json.Marshal(numbers(c))
	if err == nil && len(c.Other) > len("{}") {
		b = append(append(b[:len(b)-1], ','), c.Other[1:]...)
	}
	return b, err
}

// UnmarshalJSON reads what MarshalJSON writes.
func (c *Cost) UnmarshalJSON(b []byte) error {
	type numbers Cost
	var other map[string]json.RawMessage
	if err := errors.Join(json.Unmarshal(b, (*numbers)(c)), json.Unmarshal(b, &other)); err != nil {
		return err
	}
	for _, known := range []string{"estimated_tokens", "estimated_duration_ms", "rate_limit_per_minute"} {
		delete(other, known)
	}
	c.Other = ""
	if len(other) == 0 {
		return nil
	}
	text, err := json.Marshal(other) // in the order of the keys
	c.Other = string(text)
	return err
}
