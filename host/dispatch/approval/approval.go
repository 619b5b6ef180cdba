package approval

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"openskill/sdk/skill"
)

// Policy says what an approval is good for.
type Policy string

// The policies. The empty one counts as Never.
const (
	Never      Policy = "never"   // nothing asks
	PerVersion Policy = "version" // a skill asks once, and again when it has changed
	PerCall    Policy = "call"    // every run asks
	// Enabling is not a policy of scripts: the approval enables a version of a skill that a model proposed.
	Enabling Policy = "enable"
)

// ParsePolicy reads the name of a policy; "" is Never.
func ParsePolicy(s string) (Policy, error) {
	switch p := Policy(s); p {
	case "":
		return Never, nil
	case Never, PerVersion, PerCall:
		return p, nil
	case Enabling:
	}
	return "", &skill.Error{
		Op: "approval.ParsePolicy", Code: skill.InvalidArgument, Subject: skill.CleanText(s, 80),
		Message: "scripts are approved never, by version or by call; accepted: never, version, call",
	}
}

// State is what became of an ask.
type State string

// The states.
const (
	Pending  State = "pending"
	Approved State = "approved"
	Denied   State = "denied"
	Expired  State = "expired" // nobody decided in time, or the approval was not used in time
	Used     State = "used"    // by the one run that it was for
)

// ParseState reads the name of a state.
func ParseState(s string) (State, error) {
	switch st := State(s); st {
	case Pending, Approved, Denied, Expired, Used:
		return st, nil
	}
	return "", &skill.Error{
		Op: "approval.ParseState", Code: skill.InvalidArgument, Subject: skill.CleanText(s, 80),
		Message: "unknown state; accepted: pending, approved, denied, expired, used",
	}
}

// Ask is one run of a script, before it begins, or a proposed version of a skill.
type Ask struct {
	Skill, Script, Digest string
	Version               string // of a proposal; "": a script asks
	Previous              string // digest of the version that a proposal replaces; "": none
	Tenant, Caller        string
	Trust                 skill.Trust
	Arguments             []string // capped when kept
	Input                 []byte   // standard input; only its hash is kept
}

// Approval is one ask and what became of it.
type Approval struct {
	ID     string `json:"id"` // UUID version 7
	State  State  `json:"state"`
	Policy Policy `json:"policy"`

	Skill          string      `json:"skill"`
	Version        string      `json:"version,omitempty"`         // that is to be enabled; "" of scripts
	Script         string      `json:"script"`                    // the one that asked; by the policy version all of the skill's are approved. Of a proposal its program
	Digest         string      `json:"digest"`                    // of the skill that asks
	PreviousDigest string      `json:"previous_digest,omitempty"` // that was approved before, if it is another
	Trust          skill.Trust `json:"trust"`
	Arguments      []string    `json:"arguments"`               // as one reads them, see Shown; never nil
	ArgumentsCut   bool        `json:"arguments_cut,omitempty"` // there were more, or longer ones
	CallHash       string      `json:"call_hash"`               // "sha256:" over script, arguments and standard input, whole

	Tenant    string    `json:"tenant"`
	Caller    string    `json:"caller"`
	AskedAt   time.Time `json:"asked_at"`
	ExpiresAt time.Time `json:"expires_at,omitzero"` // zero: does not expire
	DecidedBy string    `json:"decided_by,omitempty"`
	DecidedAt time.Time `json:"decided_at,omitzero"`
	UsedAt    time.Time `json:"used_at,omitzero"`
}

// Dir is the folder of approvals in a state folder.
func Dir(stateDir string) string { return filepath.Join(stateDir, "approvals") }

// The bounds of what is kept of an ask, in bytes but for the first.
const (
	maxArguments     = 64
	maxArgument      = 400
	maxArgumentsSize = 8 << 10
	maxName          = 1024
)

// Shown gives an argument as a person should read it: as it is where it shows all that
// it has, and quoted as in Go where it has what cannot be seen, such as control
// characters, or could be taken for a quoted one.
func Shown(arg string) string {
	if arg != "" && arg[0] != '"' && skill.CleanText(arg, len(arg)+1) == arg && !strings.ContainsRune(arg, '\\') {
		return arg
	}
	return strconv.QuoteToASCII(arg)
}

// shownAll caps what it shows.
func shownAll(args []string) (shown []string, cut bool) {
	shown = []string{}
	size := 0
	for i, arg := range args {
		if i == maxArguments {
			return shown, true
		}
		if len(arg) > maxArgument {
			arg, cut = strings.ToValidUTF8(arg[:maxArgument], "")+"…", true
		}
		s := Shown(arg)
		if size += len(s); size > maxArgumentsSize {
			return shown, true
		}
		shown = append(shown, s)
	}
	return shown, cut
}

// callHash names a run: two of them have the same one if script, arguments and standard
// input are the same.
func callHash(a *Ask) string {
	parts := [][]byte{[]byte(a.Script), a.Input}
	for _, arg := range a.Arguments {
		parts = append(parts, []byte(arg))
	}
	return hashed(parts)
}

// Key names what an approval is for: asks with equal keys are the same ask.
func (a *Approval) Key() string {
	parts := []string{string(a.Policy), a.Tenant, a.Skill, a.Digest}
	switch a.Policy {
	case PerCall:
		parts = append(parts, a.CallHash, a.Caller)
	case Enabling:
		parts = append(parts, a.PreviousDigest) // where another version is enabled meanwhile, it is another question
	case Never, PerVersion:
	}
	return hashed(parts)
}

// hashed is a SHA-256 over parts, with the length of each before it.
func hashed[T string | []byte](parts []T) string {
	h := sha256.New()
	for _, p := range parts {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(p)))
		h.Write(n[:])
		h.Write([]byte(p))
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

// at gives the approval as it is at a time: what is pending, or approved and for one
// call, is expired when its time has come.
func (a *Approval) at(now time.Time) Approval {
	out := *a
	if (a.State == Pending || a.State == Approved) && !a.ExpiresAt.IsZero() && !now.Before(a.ExpiresAt) {
		out.State = Expired
	}
	return out
}

// holds reports whether the approval answers an ask of its key: it is open or decided,
// and not over. A denial is over when it has expired.
func (a *Approval) holds(now time.Time) bool {
	switch a.at(now).State {
	case Pending:
		return true
	case Approved:
		return a.Policy != Enabling // the version was enabled by that, and somebody has disabled it since
	case Denied:
		return now.Before(a.ExpiresAt)
	case Expired, Used:
	}
	return false
}
