package replay

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"openskill/host/records"
	"openskill/sdk/skill"
)

// Report says whether a run ended as it did when it was recorded.
type Report struct {
	ExecutionID string `json:"execution_id"`        // that was replayed
	ReplayID    string `json:"replay_id,omitempty"` // of the run that was made for it; "" if none was
	Skill       string `json:"skill_id"`
	Version     string `json:"version"`
	Identical   bool   `json:"identical"`
	Draws       int    `json:"draws_bytes"` // of clocks, chance and answers that were given again
	// Differences are what the run could not be given again, or the first thing of each
	// field in which it ended otherwise.
	Differences []Difference `json:"differences,omitempty"`
	Notes       []string     `json:"notes,omitempty"` // what was not compared
}

// Difference is one thing that is not as it was.
type Difference struct {
	// Field is skill, digest, runner, limits, granted, folder, file, session (before a run), or draws,
	// status, code, message, data, artifacts, fuel (of its end).
	Field   string `json:"field"`
	Name    string `json:"name,omitempty"`    // which one: of a limit, a grant, a file, an artifact
	Pointer string `json:"pointer,omitempty"` // within the data, RFC 6901; "" is the whole
	Then    string `json:"then"`
	Now     string `json:"now"`
}

// String says it to people, in a line.
func (d Difference) String() string {
	at := d.Field
	if d.Name != "" {
		at += " " + d.Name
	}
	if d.Pointer != "" {
		at += " at " + d.Pointer
	}
	return fmt.Sprintf("%s: then %s, now %s", at, d.Then, d.Now)
}

// maxShown bounds either side of a difference, in bytes, and maxDifferences their number.
const (
	maxShown       = 300
	maxDifferences = 100
)

func (r *Report) differ(d Difference) {
	if len(r.Differences) >= maxDifferences {
		return
	}
	d.Name, d.Pointer = skill.CleanText(d.Name, maxShown), skill.CleanText(d.Pointer, 2*maxShown)
	d.Then, d.Now = skill.CleanText(d.Then, maxShown), skill.CleanText(d.Now, maxShown)
	r.Differences = append(r.Differences, d)
}

// compareGiven holds what a run would be given now against what it was given.
func (r *Replayer) compareGiven(ctx context.Context, report *Report, rec *Recording, plan *Plan) {
	if plan.Digest != rec.Started.Digest {
		report.differ(Difference{Field: "digest", Then: rec.Started.Digest, Now: plan.Digest})
	}
	if was := (skill.Target{Kind: rec.Runner, Entry: rec.Entry}); plan.Target != was {
		report.differ(Difference{Field: "runner", Then: string(was.Kind) + " " + was.Entry, Now: string(plan.Target.Kind) + " " + plan.Target.Entry})
	}
	then, now := rec.Limits, Limits(plan.Limits)
	for _, l := range []struct {
		name      string
		then, now uint64
	}{
		{"timeout_ms", uint64(then.Timeout.Milliseconds()), uint64(now.Timeout.Milliseconds())}, // not negative
		{"memory", then.Memory, now.Memory}, {"fuel", then.Fuel, now.Fuel}, {"output", then.Output, now.Output}, {"scratch", then.Scratch, now.Scratch},
	} {
		if l.then != l.now {
			report.differ(Difference{Field: "limits", Name: l.name, Then: strconv.FormatUint(l.then, 10), Now: strconv.FormatUint(l.now, 10)})
		}
	}
	report.compareFolders(rec.Started.Files, plan.Folders)
	r.compareGrants(report, &rec.Granted, grantedOf(&plan.Grants, r.o.Key))
	if rec.Granted.Data && plan.Grants.Data != "" {
		report.compareFiles(ctx, rec, plan.Grants.Data)
	}
}

// compareFolders holds the folders of Agent Skills against those on record.
func (r *Report) compareFolders(then []records.FileInfo, now []skill.Folder) {
	for _, of := range now {
		if was := recorded(then, of.Name); was != digestOf(of) {
			r.differ(Difference{Field: "folder", Name: skill.AgentSkillsDir + "/" + of.Name, Then: "sha256 " + orNone(was), Now: "sha256 " + digestOf(of)})
		}
	}
}

// SameFolders reports whether the folders of Agent Skills are those on record.
func (a *Again) SameFolders(now []skill.Folder) bool {
	return !slices.ContainsFunc(now, func(of skill.Folder) bool { return recorded(a.Files, of.Name) != digestOf(of) })
}

func digestOf(of skill.Folder) string { return strings.TrimPrefix(of.Digest, "sha256:") }

// recorded returns the digest of the folder of an Agent Skill that is on record; "": none is.
func recorded(then []records.FileInfo, name string) string {
	i := slices.IndexFunc(then, func(f records.FileInfo) bool { return f.Name == skill.AgentSkillsDir+"/"+name })
	if i < 0 {
		return ""
	}
	return then[i].SHA256
}

func (r *Replayer) compareGrants(report *Report, then *Granted, now Granted) {
	has := func(name string, then, now bool) {
		words := map[bool]string{true: "granted", false: "not granted"}
		if then != now {
			report.differ(Difference{Field: "granted", Name: name, Then: words[then], Now: words[now]})
		}
	}
	has("data", then.Data, now.Data)
	has("scratch", then.Scratch, now.Scratch)
	find := func(list []Variable, name string) *Variable {
		if i := slices.IndexFunc(list, func(v Variable) bool { return v.Name == name }); i >= 0 {
			return &list[i]
		}
		return nil
	}
	for _, v := range then.Env {
		is := find(now.Env, v.Name)
		switch {
		case is == nil:
			has("env "+v.Name, true, false)
		case then.Key == "" || then.Key != now.Key:
			report.Notes = append(report.Notes, "whether the variable "+v.Name+" has its old value is unknown: its hash is from another host or was not stored")
		case v.Hash != is.Hash:
			report.differ(Difference{Field: "granted", Name: "env " + v.Name, Then: "another value", Now: "a value with another hash"})
		}
	}
	for _, v := range now.Env {
		has("env "+v.Name, find(then.Env, v.Name) != nil, true)
	}
}

// compareEnds holds how a run ended against how it ended then.
func (r *Report) compareEnds(then *End, now End) {
	status := func(e *End) string {
		if e.Success {
			return "success"
		}
		return "failure"
	}
	text := func(field, then, now string) {
		if then != now {
			r.differ(Difference{Field: field, Then: orNone(then), Now: orNone(now)})
		}
	}
	text("status", status(then), status(&now))
	text("code", string(then.Code), string(now.Code))
	text("message", then.Message, now.Message)
	if then.Success && now.Success {
		r.compareData(then.Data, now.Data)
	}
	r.compareArtifacts(then.Artifacts, now.Artifacts)
	text("fuel", strconv.FormatUint(then.Fuel, 10), strconv.FormatUint(now.Fuel, 10))
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

func (r *Report) compareArtifacts(then, now []records.ArtifactInfo) {
	shown := func(list []records.ArtifactInfo, i int) string {
		if i >= len(list) {
			return "none"
		}
		return fmt.Sprintf("%s of %d bytes, sha256 %s", list[i].Name, list[i].Size, list[i].SHA256)
	}
	for i := range max(len(then), len(now)) {
		if a, b := shown(then, i), shown(now, i); a != b {
			r.differ(Difference{Field: "artifacts", Name: strconv.Itoa(i + 1), Then: a, Now: b})
			return
		}
	}
}

// compareData finds the first place in which two values of JSON differ. The order of
// keys and the space between them are no difference; how a number is written is one.
func (r *Report) compareData(then, now []byte) {
	if bytes.Equal(then, now) {
		return
	}
	a, errA := decodeJSON(then)
	b, errB := decodeJSON(now)
	if errA != nil || errB != nil { // the door gives only what is JSON
		r.differ(Difference{Field: "data", Then: string(then), Now: string(now)})
		return
	}
	if d, differs := firstDifference("", a, b); differs {
		r.differ(d)
	}
}

func decodeJSON(b []byte) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	err = d.Decode(&v)
	return v, err
}

func firstDifference(at string, a, b any) (Difference, bool) {
	switch a := a.(type) {
	case map[string]any:
		if b, ok := b.(map[string]any); ok {
			return firstOfObjects(at, a, b)
		}
	case []any:
		if b, ok := b.([]any); ok {
			for i := range max(len(a), len(b)) {
				p := at + "/" + strconv.Itoa(i)
				switch {
				case i >= len(a):
					return dataDifference(p, "none", shownJSON(b[i])), true
				case i >= len(b):
					return dataDifference(p, shownJSON(a[i]), "none"), true
				}
				if d, differs := firstDifference(p, a[i], b[i]); differs {
					return d, true
				}
			}
			return Difference{}, false
		}
	default:
		if a == b {
			return Difference{}, false
		}
	}
	return dataDifference(at, shownJSON(a), shownJSON(b)), true
}

func firstOfObjects(at string, a, b map[string]any) (Difference, bool) {
	keys := make([]string, 0, len(a)+len(b))
	for k := range a {
		keys = append(keys, k)
	}
	for k := range b {
		if _, both := a[k]; !both {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	for _, k := range keys {
		p := at + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(k)
		va, inA := a[k]
		vb, inB := b[k]
		switch {
		case !inA:
			return dataDifference(p, "none", shownJSON(vb)), true
		case !inB:
			return dataDifference(p, shownJSON(va), "none"), true
		}
		if d, differs := firstDifference(p, va, vb); differs {
			return d, true
		}
	}
	return Difference{}, false
}

func dataDifference(at, then, now string) Difference {
	return Difference{Field: "data", Pointer: at, Then: then, Now: now}
}

func shownJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil { // it was read as JSON
		return "unknown"
	}
	return string(b)
}
