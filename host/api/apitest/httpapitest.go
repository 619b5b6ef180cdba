// Package apitest has a door and a catalogue in memory, for tests of the HTTP
// edge and of clients.
package apitest

import (
	"context"
	"encoding/json"
	"fmt"
	"sort"
	"strings"
	"sync"
	"time"

	"openskill/sdk/skill"
)

// Func is what a skill of [Door] does. It gives the data of a success or an
// error, as *skill.Error.
type Func func(ctx context.Context, r skill.Request) (json.RawMessage, error)

// Door runs Go functions as skills. It is safe for concurrent use.
type Door struct {
	mu     sync.Mutex
	skills map[skill.ID]Func
	calls  []skill.Request
}

// NewDoor makes a door with these skills:
//
//   - echo gives {"echoed": input.text}; text must be a string.
//   - fail gives the error that its input describes: {"code", "message", "details"}.
//   - sleep waits for input.ms milliseconds, at most limits.timeout_ms.
//   - panic panics.
func NewDoor() *Door {
	return &Door{skills: map[skill.ID]Func{"echo": echo, "fail": fail, "sleep": sleep, "panic": func(context.Context, skill.Request) (json.RawMessage, error) {
		panic("secret of /etc/shadow")
	}}}
}

// Add makes f the skill id.
func (d *Door) Add(id skill.ID, f Func) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.skills[id] = f
}

// Calls gives the requests that came in, in order.
func (d *Door) Calls() []skill.Request {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]skill.Request(nil), d.calls...)
}

// Invoke runs one call.
func (d *Door) Invoke(ctx context.Context, p skill.Principal, r skill.Request) *skill.Result {
	meta := skill.Meta{LatencyMS: 1, Version: "0.1.0", ExecutionID: "x-1", Runner: skill.WasmWASI, Digest: "sha256:" + strings.Repeat("0", 64)}
	d.mu.Lock()
	d.calls = append(d.calls, r)
	f := d.skills[r.SkillID]
	d.mu.Unlock()
	switch {
	case p.ID == "":
		return skill.Failure(r.SkillID, r.TraceID, skill.Meta{}, &skill.Error{Code: skill.Unauthorized, Message: "authentication required: send an API key or a token"})
	case !p.MayInvoke(r.SkillID):
		return skill.Failure(r.SkillID, r.TraceID, skill.Meta{}, &skill.Error{Code: skill.Forbidden, Message: "missing scope " + skill.ScopeInvoke})
	case f == nil:
		return skill.Failure(r.SkillID, r.TraceID, skill.Meta{}, &skill.Error{Code: skill.NotFound, Message: fmt.Sprintf("there is no skill %q", r.SkillID)})
	case r.Version != "" && r.Version != meta.Version:
		return skill.Failure(r.SkillID, r.TraceID, skill.Meta{}, &skill.Error{Code: skill.NotFound, Message: "there is no such version"})
	}
	data, err := f(ctx, r)
	if err != nil {
		return skill.Failure(r.SkillID, r.TraceID, meta, err)
	}
	return &skill.Result{Success: true, SkillID: r.SkillID, TraceID: r.TraceID, Data: data, Meta: meta}
}

func echo(_ context.Context, r skill.Request) (json.RawMessage, error) {
	var in struct {
		Text json.RawMessage `json:"text"`
	}
	if err := json.Unmarshal(r.Input, &in); err != nil || len(in.Text) == 0 || in.Text[0] != '"' {
		return nil, &skill.Error{Code: skill.InvalidArgument, Message: "text: must be a string"}
	}
	return json.RawMessage(`{"echoed":` + string(in.Text) + `}`), nil
}

func fail(_ context.Context, r skill.Request) (json.RawMessage, error) {
	var in struct {
		Code    skill.Code     `json:"code"`
		Message string         `json:"message"`
		Details map[string]any `json:"details"`
	}
	if err := json.Unmarshal(r.Input, &in); err != nil || !in.Code.Known() {
		return nil, &skill.Error{Code: skill.InvalidArgument, Message: "code: must be a published code"}
	}
	return nil, &skill.Error{Code: in.Code, Message: in.Message, Details: in.Details}
}

func sleep(ctx context.Context, r skill.Request) (json.RawMessage, error) {
	var in struct {
		MS int64 `json:"ms"`
	}
	if err := json.Unmarshal(r.Input, &in); err != nil || in.MS < 0 || in.MS > 60_000 {
		return nil, &skill.Error{Code: skill.InvalidArgument, Message: "ms: must be a whole number from 0 to 60000"}
	}
	t := time.NewTimer(time.Duration(in.MS) * time.Millisecond)
	defer t.Stop()
	var limit <-chan time.Time
	if r.Limits.Timeout > 0 {
		lt := time.NewTimer(r.Limits.Timeout)
		defer lt.Stop()
		limit = lt.C
	}
	select {
	case <-t.C:
		return json.RawMessage(`{}`), nil
	case <-limit:
		return nil, &skill.Error{Code: skill.Timeout, Message: "the call took longer than its limit"}
	case <-ctx.Done():
		return nil, &skill.Error{Code: skill.Cancelled, Message: "the call was cancelled", Err: context.Cause(ctx)}
	}
}

// Catalogue is a list of skills in memory, in order of id and version.
type Catalogue []skill.Descriptor

// NewCatalogue describes the skills of [NewDoor].
func NewCatalogue() Catalogue {
	var c Catalogue
	for _, id := range []skill.ID{"echo", "fail", "panic", "sleep"} {
		c = append(c, skill.Descriptor{
			ID: id, Version: "0.1.0", Description: "A skill for tests.", Runner: skill.WasmWASI, Trust: skill.Builtin,
			Digest: "sha256:" + strings.Repeat("0", 64), Enabled: true, Limits: skill.LimitsJSON{TimeoutMS: 15000, MemoryMB: 64},
			InputSchema: json.RawMessage(`{"type":"object"}`), OutputSchema: json.RawMessage(`{"type":"object"}`),
		})
	}
	return c
}

// List gives one page: the skills whose ids come after cursor.
func (c Catalogue) List(_ skill.Principal, cursor string, limit int) ([]skill.Descriptor, string, error) {
	from := sort.Search(len(c), func(i int) bool { return string(c[i].ID) > cursor })
	to := min(from+limit, len(c))
	if to == len(c) {
		return c[from:], "", nil
	}
	return c[from:to], string(c[to-1].ID), nil
}

// Get gives one skill.
func (c Catalogue) Get(_ skill.Principal, id skill.ID, version string) (skill.Descriptor, error) {
	for _, d := range c {
		if d.ID == id && (version == "" || version == d.Version) {
			return d, nil
		}
	}
	return skill.Descriptor{}, &skill.Error{Code: skill.NotFound, Message: "there is no such skill or version"}
}

// Versions gives every version of one skill.
func (c Catalogue) Versions(p skill.Principal, id skill.ID) ([]skill.Descriptor, error) {
	d, err := c.Get(p, id, "")
	if err != nil {
		return nil, err
	}
	return []skill.Descriptor{d}, nil
}
