package skill

import (
	"slices"
	"strings"
	"time"
)

// Principal is who calls. The zero value may do nothing.
type Principal struct {
	ID     string        // "" is nobody
	Name   string        // for people to read, and nothing else: its holder may choose it; "": none
	Type   PrincipalType // human, agent, operator or anonymous
	Tenant string
	Scopes []string
	Key    string // id of the API key that was shown; "" where none was

	Until time.Time // when the token expires that was shown; zero where none was
}

// PrincipalType is the kind of a caller.
type PrincipalType string

// The types of principal.
const (
	Operator  PrincipalType = "operator"  // the owner of the process, on its own machine
	Human     PrincipalType = "human"     // showed a JWT
	Agent     PrincipalType = "agent"     // showed an API key
	Anonymous PrincipalType = "anonymous" // showed nothing, where the operator allows that
)

// The scopes. [ScopeInvoke] with a colon and a skill's id behind it allows calls of
// that skill alone.
const (
	ScopeRead          = "skills:read"         // the catalogue
	ScopeInvoke        = "skills:invoke"       // calls
	ScopeUpload        = "skills:upload"       // uploads, and what becomes of one's own
	ScopeAdmin         = "skills:admin"        // the operator's word on skills of every tenant
	ScopeAgent         = "agent:run"           // the agent, with the caller's other scopes
	ScopeExecutions    = "executions:read"     // records of one's own calls
	ScopeAllExecutions = "executions:read:all" // records of all calls of one's tenant
	ScopeMetrics       = "metrics:read"        // the numbers of the whole host
	ScopeHost          = "admin"               // keys, and the records of every tenant
)

// Scopes lists the scopes, but for those that name a skill.
func Scopes() []string {
	return []string{ScopeRead, ScopeInvoke, ScopeUpload, ScopeAdmin, ScopeAgent, ScopeExecutions, ScopeAllExecutions, ScopeMetrics, ScopeHost}
}

// RunCode is the skill that runs code of its caller.
const RunCode = "run_code"

// ValidScope reports whether s is one of [Scopes], or allows calls of one skill.
func ValidScope(s string) bool {
	if id, ok := strings.CutPrefix(s, ScopeInvoke+":"); ok {
		_, err := ParseID(id)
		return err == nil
	}
	return slices.Contains(Scopes(), s)
}

// May reports whether p holds the scope. Nobody (an empty ID) holds none.
func (p Principal) May(scope string) bool {
	return p.ID != "" && slices.Contains(p.Scopes, scope)
}

// MayInvoke reports whether p may call the skill. The scope skills:invoke does not include [RunCode]: it requires
// skills:invoke:run_code, or admin in addition.
func (p Principal) MayInvoke(id ID) bool {
	return p.May(ScopeInvoke+":"+string(id)) || p.May(ScopeInvoke) && (id != RunCode || p.May(ScopeHost))
}

// MayInvokeSome reports whether there can be a skill that p may call.
func (p Principal) MayInvokeSome() bool {
	return p.ID != "" && slices.ContainsFunc(p.Scopes, func(s string) bool {
		return s == ScopeInvoke || strings.HasPrefix(s, ScopeInvoke+":")
	})
}

// Local is the operator on the host's own machine.
func Local() Principal {
	return Principal{ID: "local", Type: Operator, Tenant: "local", Scopes: Scopes()}
}
