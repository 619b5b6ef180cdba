package cases

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"openskill/sdk/skill"
)

// Disagreement is one place where two ways to run a skill answer otherwise.
type Disagreement struct {
	At       string `json:"at"` // where: data, error or artifacts, with a JSON pointer behind it
	Primary  string `json:"primary"`
	Fallback string `json:"fallback"`
}

// Comparable reports whether a fallback can be asked for the same answer. Where a limit
// ended the call, or the host, it cannot: a process has other limits than the sandbox.
func Comparable(primary *skill.Result) bool {
	if primary.Success {
		return true
	}
	switch primary.Error.Code {
	case skill.MemoryLimit, skill.TableLimit, skill.StackLimit, skill.FuelExhausted, skill.Timeout, skill.OutputLimit,
		skill.WorkerCrashed, skill.RateLimited, skill.AuditUnavailable, skill.Cancelled:
		return false
	default:
		return true
	}
}

// Parity gives the places where the answer of a fallback is another one; nil: they are
// the same. Data must be the same value; of an error its code and its details, as its
// message is for people; and the files that were made must have the same bytes.
func Parity(primary, fallback *skill.Result) []Disagreement {
	var d differences
	switch {
	case primary.Success != fallback.Success:
		d.add("", whole(primary), whole(fallback))
	case primary.Success:
		d.compare("data", decoded(primary.Data), decoded(fallback.Data))
		d.compare("artifacts", files(primary.Meta.Artifacts), files(fallback.Meta.Artifacts))
	case primary.Error.Code != fallback.Error.Code:
		d.add("error/code", coded(primary.Error), coded(fallback.Error))
	default:
		d.compare("error/details", details(primary.Error), details(fallback.Error))
	}
	list := make([]Disagreement, len(d.list))
	for i, x := range d.list {
		list[i] = Disagreement{x.At, x.Want, x.Got}
	}
	if len(list) == 0 {
		return nil
	}
	return list
}

// Change is one place where an answer is another one than before.
type Change struct {
	At  string `json:"at"`
	Was string `json:"was"`
	Is  string `json:"is"`
}

// Changes gives the places where an answer is another one than an earlier one, as [Parity]
// compares two; nil: it is the same.
func Changes(before, now *skill.Result) []Change {
	var list []Change
	for _, d := range Parity(before, now) {
		list = append(list, Change{d.At, d.Primary, d.Fallback})
	}
	return list
}

// whole is an answer in one line.
func whole(r *skill.Result) string {
	if r.Success {
		return "data " + shown(decoded(r.Data))
	}
	return "error " + coded(r.Error)
}

func coded(e *skill.ResultError) string { return string(e.Code) + ": " + e.Message }

func details(e *skill.ResultError) any {
	if len(e.Details) == 0 {
		return absent{}
	}
	b, err := json.Marshal(e.Details)
	if err != nil {
		return absent{}
	}
	return decoded(b)
}

// files are artifacts by their names, as what tells them apart.
func files(list []skill.Artifact) any {
	m := make(map[string]any, len(list))
	for _, f := range list {
		sum := sha256.Sum256(f.Data)
		m[f.Name] = fmt.Sprintf("%d bytes, sha256:%s", f.Size, hex.EncodeToString(sum[:])[:16])
	}
	return m
}
