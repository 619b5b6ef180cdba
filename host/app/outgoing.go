package app

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"

	"openskill/host/agent/tools"
	"openskill/host/app/config"
	"openskill/host/workers/egress"
	"openskill/sdk/skill"
)

// outgoing makes the requests of guests. Where the settings permit none, calls that were granted
// none cannot reach what makes them. denied is told of each request that was refused; alone is as
// in [egress.Options].
func outgoing(s *config.Settings, log *slog.Logger, alone bool, denied func(*skill.Call)) skill.Outgoing {
	client := egress.New(&egress.Options{Log: log, Denied: denied, Alone: alone})
	if s.Allowed().HTTP() {
		return client
	}
	return scriptsOnly{client, egress.Nowhere(denied)}
}

// calling routes requests that name a skill, of running code and of skills that may call others, to the dispatcher, and
// all others to Outgoing.
type calling struct {
	skill.Outgoing
	host *Host
}

// For implements [skill.Outgoing].
func (o calling) For(call *skill.Call) skill.Fetch {
	ask := o.Outgoing.For(call)
	if !call.Code && len(call.Grants.Skills) == 0 {
		return ask
	}
	execution := call.ExecutionID
	return func(ctx context.Context, request []byte) []byte {
		head, input, _ := bytes.Cut(request, []byte("\n"))
		var to struct{ Skill *string }
		if !bytes.Contains(head, []byte(`"skill"`)) || json.Unmarshal(head, &to) != nil || to.Skill == nil {
			return ask(ctx, request)
		}
		if *to.Skill == "" {
			return o.host.forCode(execution)
		}
		r := o.host.door.Nested(ctx, execution, o.host.named(execution, *to.Skill), input)
		answer, err := json.Marshal(r)
		if err != nil { // cannot happen: the dispatcher has parsed the data
			answer, _ = json.Marshal(skill.Failure(r.SkillID, r.TraceID, r.Meta, err))
		}
		return append(answer, '\n')
	}
}

// named returns the id of the skill that code calls by a name. Names of Python have no hyphens: an underscore
// also stands for one, unless the name is an id itself.
func (h *Host) named(execution, name string) skill.ID {
	id := skill.ID(name)
	p, only, ok := h.door.Caller(execution)
	if !ok || !strings.Contains(name, "_") || slices.Contains(only, id) {
		return id
	}
	if _, err := h.Catalogue().Get(p, id, ""); skill.CodeOf(err) != skill.NotFound {
		return id
	}
	all, err := h.Catalogue().seen(p)
	if err != nil {
		return id
	}
	for i := range all {
		if strings.ReplaceAll(string(all[i].ID), "-", "_") == name && (only == nil || slices.Contains(only, all[i].ID)) {
			return all[i].ID
		}
	}
	return id
}

// forCode returns the skills that an execution may call, as a JSON list of tools.
func (h *Host) forCode(execution string) []byte {
	list := []skill.Tool{}
	if p, only, ok := h.door.Caller(execution); ok && p.May(skill.ScopeRead) {
		all, err := h.Catalogue().seen(p)
		for i := range all {
			if d := &all[i]; err == nil && d.Callable() && d.ID != skill.RunCode && p.MayInvoke(d.ID) && (only == nil || slices.Contains(only, d.ID)) {
				list = append(list, tools.Of(d))
			}
		}
	}
	b, err := json.Marshal(list)
	if err != nil {
		return []byte("[]\n") // cannot happen: schemas are valid JSON
	}
	return append(b, '\n')
}

// scriptsOnly is the network of a host whose settings permit no requests: scripts may make those
// that the operator allowed them (package allow).
type scriptsOnly struct{ client, nowhere skill.Outgoing }

// For implements [skill.Outgoing].
func (o scriptsOnly) For(call *skill.Call) skill.Fetch {
	if len(call.Grants.HTTP) > 0 {
		return o.client.For(call)
	}
	return o.nowhere.For(call)
}

// denied tells operators, at once, that a skill tried to reach what it was not granted: in
// the metrics, in the log and in the console.
func (h *Host) denied(c *skill.Call) {
	owner := ""
	if c.Trust < skill.Trusted {
		owner = c.Tenant
	}
	h.metrics.Denied(string(c.SkillID), owner, c.Tenant)
	h.lately.window.Denied(c.Tenant, string(c.SkillID))
	if !h.settings.Allowed().HTTP() && len(c.Grants.HTTP) == 0 { // a client writes a line that says where to
		h.log.Warn("a skill's request was denied",
			slog.String("skill_id", string(c.SkillID)), slog.String("tenant", skill.CleanText(c.Tenant, 100)),
			slog.String("trace_id", string(c.TraceID)), slog.String("code", string(skill.NetworkDenied)))
	}
}
