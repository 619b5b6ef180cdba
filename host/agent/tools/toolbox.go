package tools

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"openskill/sdk/skill"
)

// Door runs skills; the host's is one. It authorizes and checks the input.
type Door interface {
	Invoke(ctx context.Context, p skill.Principal, r skill.Request) *skill.Result
}

// Catalogue says which skills a caller can find.
type Catalogue interface {
	List(p skill.Principal, cursor string, limit int) ([]skill.Descriptor, string, error)
}

// AgentSkills are the Agent Skills that a caller can find, and the tools for them.
type AgentSkills interface {
	Instructions(ctx context.Context, p skill.Principal) (string, error)
	Tools(ctx context.Context, p skill.Principal) ([]skill.Tool, error)
	CallToolIn(ctx context.Context, p skill.Principal, name string, args json.RawMessage, trace skill.TraceID, turn skill.Turn, limits skill.Limits) *skill.Result
}

// Options of a [Toolbox]. Door and Catalogue are required.
type Options struct {
	Door        Door
	Catalogue   Catalogue
	AgentSkills AgentSkills // nil: there are none
	Search      Finder      // implements the tool search_skills; nil: models do not get it
	// Parallel is how many calls of all callers' models run at once; others wait for their
	// turn, in order, as long as their context allows. 0: 16.
	Parallel int
	// Alone says that all callers are one tenant, which may have all of them.
	Alone bool
	// MaxText is the most of a result that a model reads, in bytes, at least 2 KiB; 0: 16 KiB.
	MaxText int
	// MaxTools is the maximum number of tools of a model; 0: 128, which every vendor accepts.
	// A caller with more gets [FormCode], if it may run code. Otherwise those of Agent Skills
	// come first, then skills in the order of their ids, and the log names the rest.
	MaxTools int
	Log      *slog.Logger     // nil: slog.Default()
	Now      func() time.Time // nil: the system's clock
}

// Call is one call of a tool, as a model asks for it.
type Call struct {
	ID        string // the model's
	Name      string
	Arguments string // as the model wrote them
	Turn      skill.Turn
	Trace     skill.TraceID
	Limits    skill.Limits // may only lower; zero: no opinion
}

// Outcome is what became of a call.
type Outcome struct {
	Call      Call
	Skill     string          // id of the skill, or name of the tool for Agent Skills; what the model wrote where there is no such tool
	Arguments json.RawMessage // as they were understood; {} where they were no JSON object
	Result    *skill.Result   // never nil; of a call that was not made too
	// Invalid says that nothing ran because there is no such tool or its arguments are
	// wrong, which a model can mend: Text says how.
	Invalid bool
	// Text is what the model reads: marked, cleaned, capped.
	Text string
	// Approval is the id of the approval that it waits for; "" for none.
	Approval string
	Took     time.Duration
}

// Execution is the id under which the call is on record; "" where nothing ran.
func (o *Outcome) Execution() string {
	if !o.Result.Meta.Ran {
		return ""
	}
	return o.Result.Meta.ExecutionID
}

// Set is what one caller's model can call, as they were when they were asked for.
// They are safe for concurrent use.
type Set interface {
	// List are the tools, cleaned and capped, in a stable order.
	List() []skill.Tool
	// Instructions tell a model of the Agent Skills; "" where there are none.
	Instructions() string
	// Call makes one call, and tells of it. It never returns nil. A RATE_LIMITED of the
	// host's own is waited out as long as ctx allows.
	Call(ctx context.Context, c Call) *Outcome
}
