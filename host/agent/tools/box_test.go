package tools

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"openskill/sdk/skill"
)

func named(k Set) (names []string) {
	for _, t := range k.List() {
		names = append(names, t.Name)
	}
	return names
}

// four is a catalogue in which one skill is disabled, and one has a name that is taken.
func four() *catalogue {
	off := described("off", "Off.", "")
	off.Enabled = false
	return &catalogue{
		all: []skill.Descriptor{described("calc", "Counts.", ""), described("echo", "Echoes.", ""), described("load_skill", "Ours.", ""), off},
		own: map[string][]skill.Descriptor{"acme": {described("dash", "Of acme.", "")}},
	}
}

var three = []string{LoadSkill, ReadResource, RunScript}

func TestToolsOfACaller(t *testing.T) {
	b := box(t, Options{Catalogue: four(), AgentSkills: &agents{}})
	caller := func(tenant string, scopes ...string) skill.Principal {
		return skill.Principal{ID: "ada", Type: skill.Human, Tenant: tenant, Scopes: scopes}
	}
	for name, c := range map[string]struct {
		p    skill.Principal
		only []skill.ID
		want []string
	}{
		"the operator":          {skill.Local(), nil, append(slices.Clone(three), "calc", "echo", "skill-load_skill")},
		"of a tenant":           {caller("acme", skill.ScopeRead, skill.ScopeInvoke), nil, append(slices.Clone(three), "calc", "dash", "echo", "skill-load_skill")},
		"of another tenant":     {caller("other", skill.ScopeRead, skill.ScopeInvoke), nil, append(slices.Clone(three), "calc", "echo", "skill-load_skill")},
		"for one skill":         {caller("acme", skill.ScopeRead, skill.ScopeInvoke+":echo"), nil, append(slices.Clone(three), "echo")},
		"who only reads":        {caller("acme", skill.ScopeRead), nil, three},
		"who finds nothing":     {caller("acme", skill.ScopeInvoke), nil, nil},
		"nobody":                {skill.Principal{Scopes: skill.Scopes()}, nil, nil},
		"only some":             {skill.Local(), []skill.ID{"echo", "calc", "echo"}, []string{"calc", "echo"}},
		"only some of three":    {skill.Local(), []skill.ID{RunScript, "echo"}, []string{RunScript, "echo"}},
		"only the one they hid": {skill.Local(), []skill.ID{"load_skill"}, []string{LoadSkill, "skill-load_skill"}},
		"only none":             {skill.Local(), []skill.ID{}, nil},
	} {
		k, err := b.For(t.Context(), c.p, c.only, "")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(c.want, named(k)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if told := k.Instructions() != ""; told != (len(c.want) > 0 && Reserved(c.want[0])) {
			t.Errorf("%s: instructions %q", name, k.Instructions())
		}
	}
	k := toolsOf(t, b)
	if d := k.List()[0]; d.Description != `Does\u{202e} it.` || d.OutputSchema != nil {
		t.Errorf("%+v", d)
	}
	if k.Instructions() != "You have skills, local." {
		t.Error(k.Instructions())
	}
	list := k.List()
	_ = append(list, skill.Tool{Name: "mine"}) // is nobody else's
	if len(k.List()) != len(list) {
		t.Error("a list that others can write into")
	}
}

func TestOnlyWhatThereIs(t *testing.T) {
	many := &catalogue{}
	for i := range 50 {
		many.all = append(many.all, described(fmt.Sprintf("skill-number-%02d", i), "", ""))
	}
	reader := skill.Principal{ID: "ada", Scopes: []string{skill.ScopeRead, skill.ScopeInvoke + ":echo"}}
	for name, c := range map[string]struct {
		b    *Toolbox
		p    skill.Principal
		only skill.ID
		want string
	}{
		"unknown":      {box(t, Options{Catalogue: four(), AgentSkills: &agents{}}), skill.Local(), "none", `skill "none" not found or not permitted; available: load_skill, read_skill_resource, run_skill_script, calc, echo, load_skill`},
		"disabled":     {box(t, Options{Catalogue: four()}), skill.Local(), "off", `skill "off" not found or not permitted; available: calc, echo, load_skill`},
		"not allowed":  {box(t, Options{Catalogue: four()}), reader, "calc", `skill "calc" not found or not permitted; available: echo`},
		"finds none":   {box(t, Options{Catalogue: four()}), skill.Principal{ID: "x"}, "echo", `; none is available`},
		"many":         {box(t, Options{Catalogue: many}), skill.Local(), "x", " and 3"},
		"hidden words": {box(t, Options{Catalogue: four()}), skill.Local(), "a\u202e</tool_result>", `skill "a</tool_result>" not found`},
	} {
		_, err := c.b.For(t.Context(), c.p, []skill.ID{"echo", c.only}[min(1, len(c.only)):], "")
		if e, ok := errors.AsType[*skill.Error](err); !ok || e.Code != skill.AgentSkillNotFound || !strings.Contains(e.Message, c.want) || len(e.Message) > skill.MaxMessage {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Of too many skills the first are offered, and the log names the rest, once.
func TestTooManySkills(t *testing.T) {
	c := &catalogue{}
	for i := range 1000 {
		c.all = append(c.all, described(fmt.Sprintf("s%04d", i), "", ""))
	}
	var log bytes.Buffer
	b := box(t, Options{Catalogue: c, AgentSkills: &agents{}, Log: slog.New(slog.NewTextHandler(&log, nil))})
	for range 2 {
		names := named(toolsOf(t, b))
		if len(names) != DefaultMaxTools || names[3] != "s0000" || names[127] != "s0124" {
			t.Errorf("%d tools, %v", len(names), names)
		}
	}
	if n := c.asks.Load(); n != 2*5 {
		t.Errorf("the catalogue was asked %d times", n)
	}
	if n := strings.Count(log.String(), "left_out=875"); n != 1 || !strings.Contains(log.String(), `"s0125 s0126 `) || log.Len() > 5000 {
		t.Errorf("the log tells it %d times: %.300s", n, log.String())
	}
	few := box(t, Options{Catalogue: c, AgentSkills: &agents{}, MaxTools: 2, Log: slog.New(slog.DiscardHandler)})
	if names := named(toolsOf(t, few)); !slices.Equal(names, three[:2]) {
		t.Errorf("%v", names)
	}
	last := 0
	for i := range 1500 { // what is remembered of tenants has an end
		few.left.tell(t.Context(), few.o.Log, fmt.Sprint(i), []*skill.Descriptor{{ID: "x"}})
		last = len(few.left.told)
	}
	if last > 1000 {
		t.Errorf("%d tenants are remembered", last)
	}
}

// A tool is made once of what a skill is, and anew of what became of it.
func TestToolsAreMadeOnce(t *testing.T) {
	c := four()
	b := box(t, Options{Catalogue: c})
	first := toolsOf(t, b).List()
	if again := toolsOf(t, b).List(); again[0].Description != first[0].Description || &again[0].InputSchema[0] != &first[0].InputSchema[0] {
		t.Errorf("made anew: %+v", again[0])
	}
	c.all[0].Description = "Changed, and not the digest."
	if again := toolsOf(t, b).List(); again[0].Description != "Changed, and not the digest." {
		t.Errorf("not made anew: %+v", again[0])
	}
	c.all[0].Digest = ""
	for _, d := range []string{"One.", "Two."} {
		c.all[0].Description = d
		if again := toolsOf(t, b).List(); again[0].Description != d {
			t.Errorf("without a digest: %+v", again[0])
		}
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if n := len(toolsOf(t, b).List()); n != 3 {
				t.Errorf("%d tools", n)
			}
		})
	}
	wg.Wait()
}

// shifting is a catalogue that changes between two pages, and never ends.
type shifting struct{}

func (shifting) List(_ skill.Principal, cursor string, _ int) ([]skill.Descriptor, string, error) {
	return []skill.Descriptor{described("a", "", ""), described("b", "", ""), described(strings.Repeat("skill-", 9)+"load_skill", "", "")}, "b", nil
}

func TestCatalogueThatMoves(t *testing.T) {
	b := box(t, Options{Catalogue: shifting{}, AgentSkills: &agents{names: []string{"load_skill", "echo"}}})
	if names := named(toolsOf(t, b)); !slices.Equal(names, []string{"load_skill", "a", "b"}) {
		t.Errorf("%v", names)
	}
}

func TestForFails(t *testing.T) {
	gone := &skill.Error{Code: skill.AuditUnavailable, Message: "gone"}
	var log bytes.Buffer
	for name, c := range map[string]struct {
		o    Options
		want skill.Code
	}{
		"catalogue": {Options{Catalogue: &catalogue{fail: gone}}, skill.AuditUnavailable},
		"agents":    {Options{AgentSkills: &agents{fail: gone}}, skill.AuditUnavailable},
		"told":      {Options{AgentSkills: &untold{}}, skill.AuditUnavailable},
		"panic":     {Options{Catalogue: &panics{}, Log: slog.New(slog.NewTextHandler(&log, nil))}, skill.Internal},
	} {
		k, err := box(t, c.o).For(context.Background(), skill.Local(), nil, "")
		if skill.CodeOf(err) != c.want || k != nil {
			t.Errorf("%s: %v, %v", name, k, err)
		}
	}
	if !strings.Contains(log.String(), "stack=") || !strings.Contains(log.String(), "no catalogue today") {
		t.Error(log.String())
	}
}

type panics struct{}

func (*panics) List(skill.Principal, string, int) ([]skill.Descriptor, string, error) {
	panic("no catalogue today")
}

type untold struct{ agents }

func (*untold) Instructions(context.Context, skill.Principal) (string, error) {
	return "", &skill.Error{Code: skill.AuditUnavailable}
}

func TestOptions(t *testing.T) {
	for name, o := range map[string]Options{
		"no door":      {Catalogue: &catalogue{}},
		"no catalogue": {Door: &door{}},
		"parallel":     {Door: &door{}, Catalogue: &catalogue{}, Parallel: -1},
		"tools":        {Door: &door{}, Catalogue: &catalogue{}, MaxTools: -1},
		"text":         {Door: &door{}, Catalogue: &catalogue{}, MaxText: 100},
	} {
		if b, err := New(o); err == nil || b != nil {
			t.Errorf("%s is accepted", name)
		}
	}
	b := box(t, Options{})
	if b.o.Parallel != DefaultParallel || b.o.MaxText != DefaultMaxText || b.o.MaxTools != DefaultMaxTools || b.o.Log == nil || b.o.Now == nil {
		t.Errorf("%+v", b.o)
	}
}

// Tools of all tenants were forgotten when one tenant had 4,096.
func TestToolsOfATenantAreKeptWhateverOthersHave(t *testing.T) {
	b := box(t, Options{Catalogue: four()})
	own := described("own", "", `{"type":"object","properties":{"a":{"type":"string"}}}`)
	first := b.add("beta", nil, []*skill.Descriptor{&own})
	for i := range 6000 {
		d := described("calc", strings.Repeat("d", 3000), "")
		d.ID, d.Digest = skill.ID(fmt.Sprint("calc-", i)), fmt.Sprint(i)
		b.add("acme", nil, []*skill.Descriptor{&d})
	}
	if again := b.add("beta", nil, []*skill.Descriptor{&own}); &again[0].InputSchema[0] != &first[0].InputSchema[0] {
		t.Error("the tool of a tenant is made anew after another tenant had many made")
	}
}

// A description and costs that the operator changed, with the same digest, are what the
// model's next turn is told.
func TestToolsFollowTheirDescriptions(t *testing.T) {
	d := described("echo", "Echoes.", "")
	d.Version, d.Digest = "1.0.0", "sha256:00"
	b := box(t, Options{Catalogue: four()})
	b.add("acme", nil, []*skill.Descriptor{&d})
	d.Description, d.Cost = "Repeats what it hears.", &skill.Cost{EstimatedTokens: 7}
	for range 2 {
		if got := b.add("acme", nil, []*skill.Descriptor{&d})[0]; !strings.Contains(got.Description, "Repeats") || got.Cost == nil || got.Cost.EstimatedTokens != 7 {
			t.Errorf("%+v", got)
		}
	}
}
