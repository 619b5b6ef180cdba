package tools

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"openskill/host/manifest"
	"openskill/internal/musttest"
	"openskill/internal/strictjson"
	"openskill/sdk/skill"
)

// door is a door with what a test wants behind it. Input is checked as the host's door
// does where there is a schema.
type door struct {
	schemas map[skill.ID]string
	answer  func(ctx context.Context, p skill.Principal, r skill.Request) *skill.Result // nil: what came in

	mu   sync.Mutex
	seen []skill.Request
}

func (d *door) Invoke(ctx context.Context, p skill.Principal, r skill.Request) *skill.Result {
	d.mu.Lock()
	d.seen = append(d.seen, r)
	d.mu.Unlock()
	meta := skill.Meta{ExecutionID: "e-1", Runner: skill.WasmWASI}
	if s := d.schemas[r.SkillID]; s != "" {
		compiled, problems := manifest.CompileSchema([]byte(s))
		if len(problems) > 0 {
			panic(problems[0])
		}
		v, err := strictjson.Decode(r.Input, 64, nil)
		if err != nil {
			return skill.Failure(r.SkillID, r.TraceID, meta, &skill.Error{Code: skill.InvalidArgument, Message: err.Error()})
		}
		if f := compiled.Check(v, manifest.MaxSteps); f != nil {
			details := map[string]any{"fields": f.Fields}
			if f.Total > len(f.Fields) {
				details["total"] = f.Total
			}
			return skill.Failure(r.SkillID, r.TraceID, meta, &skill.Error{Code: skill.InvalidArgument, Message: f.Summary(), Details: details})
		}
	}
	if d.answer != nil {
		return d.answer(ctx, p, r)
	}
	meta.Ran = true
	return &skill.Result{Success: true, SkillID: r.SkillID, TraceID: r.TraceID, Data: r.Input, Meta: meta}
}

func fails(code skill.Code, message string, details map[string]any) *skill.Result {
	return skill.Failure("", "", skill.Meta{}, &skill.Error{Code: code, Message: message, Details: details})
}

// catalogue is a list of skills in the order of ids; own are those of one tenant.
type catalogue struct {
	all  []skill.Descriptor
	own  map[string][]skill.Descriptor
	fail error
	asks atomic.Int32
}

func (c *catalogue) List(p skill.Principal, cursor string, limit int) ([]skill.Descriptor, string, error) {
	c.asks.Add(1)
	if c.fail != nil {
		return nil, "", c.fail
	}
	list := c.all
	if own := c.own[p.Tenant]; own != nil {
		list = append(slices.Clone(list), own...)
		slices.SortFunc(list, func(a, b skill.Descriptor) int { return strings.Compare(string(a.ID), string(b.ID)) })
	}
	from := 0
	for from < len(list) && string(list[from].ID) <= cursor && cursor != "" {
		from++
	}
	to := min(from+limit, len(list))
	if to == len(list) {
		return slices.Clone(list[from:to]), "", nil
	}
	return slices.Clone(list[from:to]), string(list[to-1].ID), nil
}

func described(id, description, schema string) skill.Descriptor {
	return skill.Descriptor{
		ID: skill.ID(id), Version: "0.1.0", Description: description, Runner: skill.WasmWASI, Digest: "sha256:" + id, Enabled: true, InputSchema: json.RawMessage(schema),
	}
}

// agents are Agent Skills with what a test wants behind them.
type agents struct {
	names  []string // of tools; nil: the three
	answer func(name string, args json.RawMessage, turn skill.Turn, limits skill.Limits) *skill.Result
	fail   error
}

func (a *agents) Instructions(_ context.Context, p skill.Principal) (string, error) {
	return "You have skills, " + p.ID + ".", a.fail
}

func (a *agents) Tools(context.Context, skill.Principal) (list []skill.Tool, _ error) {
	names := a.names
	if names == nil {
		names = []string{LoadSkill, ReadResource, RunScript}
	}
	for _, name := range names {
		list = append(list, skill.Tool{
			Name: name, Description: "Does\u202e it.", InputSchema: json.RawMessage(`{"type":"object","required":["skill_name"],"properties":{"skill_name":{"type":"string"}}}`),
			OutputSchema: json.RawMessage(`{"type":"object"}`),
		})
	}
	return list, a.fail
}

func (a *agents) CallToolIn(_ context.Context, _ skill.Principal, name string, args json.RawMessage, _ skill.TraceID, turn skill.Turn, limits skill.Limits) *skill.Result {
	return a.answer(name, args, turn, limits)
}

// toolsOf are the tools of a caller, by default of the operator.
func toolsOf(tb testing.TB, b *Toolbox) Set {
	tb.Helper()
	return musttest.Get(b.For(context.Background(), skill.Local(), nil, ""))(tb)
}

func call(t testing.TB, k Set, name, args string) *Outcome {
	t.Helper()
	out := k.Call(context.Background(), Call{ID: "c1", Name: name, Arguments: args, Trace: "t-1"})
	if out == nil || out.Result == nil || out.Text == "" || out.Call.ID != "c1" || !json.Valid(out.Arguments) {
		t.Fatalf("%+v", out)
	}
	if tt, ok := t.(*testing.T); ok {
		checkMarked(tt, out.Text, DefaultMaxText)
	}
	return out
}

// instant answers at once.
type instant struct{ data json.RawMessage }

func (d *instant) Invoke(_ context.Context, _ skill.Principal, r skill.Request) *skill.Result {
	return &skill.Result{Success: true, SkillID: r.SkillID, TraceID: r.TraceID, Data: d.data, Meta: skill.Meta{Ran: true}}
}

// refuses answers the same at once.
type refuses struct{ r *skill.Result }

func (d *refuses) Invoke(context.Context, skill.Principal, skill.Request) *skill.Result { return d.r }
