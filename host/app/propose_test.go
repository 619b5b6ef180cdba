package app

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"openskill/host/admission"
	"openskill/host/agent/tools"
	"openskill/host/app/hosttest"
	"openskill/host/catalogue"
	"openskill/host/dispatch/approval"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// shout is a proposal of the skill shout, with a program and a case for each pair of texts.
func shout(t *testing.T, code string, pairs ...string) json.RawMessage {
	t.Helper()
	list := []map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		list = append(list, map[string]any{"name": fmt.Sprint("case ", i/2), "input": map[string]string{"text": pairs[i]}, "data": map[string]string{"text": pairs[i+1]}})
	}
	return musttest.Get(json.Marshal(map[string]any{
		"name": "shout", "description": "Writes text in capital letters.", "language": "python", "code": code, "cases": list,
		"input_schema":  json.RawMessage(`{"type":"object","required":["text"],"properties":{"text":{"type":"string"}}}`),
		"output_schema": json.RawMessage(`{"type":"object","required":["text"],"properties":{"text":{"type":"string"}}}`),
	}))(t)
}

// upper and broken are programs of shout.
const (
	upper  = "import json, sys\nprint(json.dumps({'text': json.load(sys.stdin)['input']['text'].upper()}))\n"
	broken = "import json, sys\nprint(json.dumps({'text': json.load(sys.stdin)['input']['text']}))\n"
)

// proposing is a host that takes skills, and who proposes one.
func proposing(t *testing.T, more ...func(dir string)) (h *Host, ann skill.Principal, propose func(skill.Principal, json.RawMessage) *skill.Result) {
	t.Helper()
	if testing.Short() {
		t.Skip("short: compiling runtimes takes seconds")
	}
	s := settings(t, map[string]string{})
	hosttest.Runtimes(t, musttest.Get(filepath.Abs("../.."))(t), s.StateDir)
	for _, add := range more {
		add(s.SkillsDir)
	}
	h = musttest.Get(Open(s, &Options{Mode: Serving, Log: slog.New(slog.DiscardHandler)}))(t)
	t.Cleanup(func() { musttest.Do(t, h.Close()) })
	ann = skill.Principal{ID: "ann", Type: skill.Agent, Tenant: "acme", Scopes: []string{skill.ScopeRead, skill.ScopeInvoke, skill.ScopeUpload}}
	return h, ann, func(p skill.Principal, args json.RawMessage) *skill.Result {
		r := hostTools{h.agents, h}.CallTool(t.Context(), p, tools.ProposeSkill, args, "t-1")
		if r.Error != nil && strings.Contains(r.Error.Message, "is not installed") {
			t.Skip(r.Error.Message)
		}
		return r
	}
}

func (h *Host) shouts(t *testing.T, p skill.Principal) string {
	t.Helper()
	r := h.Invoke(t.Context(), p, skill.Request{SkillID: "shout", Input: json.RawMessage(`{"text":"hi"}`)})
	if r.Error != nil {
		return string(r.Error.Code)
	}
	return string(r.Data)
}

// TestProposeSkill: what a model proposes runs only its cases until a person approves it.
func TestProposeSkill(t *testing.T) {
	h, ann, propose := proposing(t)
	reader := skill.Principal{ID: "reader", Type: skill.Agent, Tenant: "acme", Scopes: []string{skill.ScopeRead, skill.ScopeInvoke}}
	bob := skill.Principal{ID: "bob", Type: skill.Agent, Tenant: "b", Scopes: ann.Scopes}
	for _, p := range []skill.Principal{ann, reader} {
		list := musttest.Get(hostTools{h.agents, h}.Tools(t.Context(), p))(t)
		if offered := slices.ContainsFunc(list, func(t skill.Tool) bool { return t.Name == tools.ProposeSkill }); offered != (p.ID == "ann") {
			t.Errorf("offered to %s: %t", p.ID, offered)
		}
	}
	if r := propose(reader, shout(t, upper, "a", "A")); r.Error == nil || r.Error.Code != skill.Forbidden {
		t.Errorf("proposed without the scope: %+v", r.Error)
	}

	r := propose(ann, shout(t, broken, "A", "A", "a", "A"))
	if r.Error == nil || r.Error.Code != skill.ToolInvocationError || !strings.HasPrefix(r.Error.Message, "1 of 2 cases failed") {
		t.Fatalf("a case that fails: %+v", r.Error)
	}
	if b := musttest.Get(json.Marshal(r.Error.Details["cases"]))(t); !strings.Contains(string(b), `"name":"case 1","differences":[{"at":"data/text","expected":"\"A\"","got":"\"a\""}]`) {
		t.Errorf("of the case that fails is told %s", b)
	}
	if own := h.uploads.Own("acme", "shout"); len(own) != 0 {
		t.Errorf("kept: %v", own)
	}

	r = propose(ann, shout(t, upper, "a", "A", "ß", "SS"))
	id := approval.PendingID(r)
	if id == "" || r.Meta.FuelUsed == 0 {
		t.Fatalf("no approval is asked for: %+v %+v", r.Error, r.Meta)
	}
	if again := propose(ann, shout(t, upper, "a", "A", "ß", "SS")); approval.PendingID(again) != id {
		t.Errorf("proposed twice: %+v", again.Error)
	}
	a := musttest.Get(h.approvals.Get(t.Context(), ann, id))(t)
	version := a.Version
	if a.Policy != approval.Enabling || a.Skill != "shout" || !strings.HasPrefix(version, "0.0.0-sha") || a.Script != "main.py" || fmt.Sprint(a.Arguments) != "[cases passed: 2]" {
		t.Errorf("the approval: %+v", a)
	}
	for _, p := range []skill.Principal{ann, reader, bob, skill.Local()} {
		if got := h.shouts(t, p); got != "NOT_FOUND" {
			t.Errorf("called by %s before the approval: %s", p.ID, got)
		}
	}
	if r := h.Invoke(t.Context(), ann, skill.Request{SkillID: "shout", Version: version, Input: json.RawMessage(`{"text":"hi"}`)}); r.Error == nil || r.Error.Code != skill.NotFound {
		t.Errorf("called by its version before the approval: %+v", r)
	}
	for _, p := range []skill.Principal{reader, bob} {
		for _, approve := range []bool{false, true} {
			if _, err := h.approvals.Decide(t.Context(), p, id, approve); err == nil {
				t.Errorf("%s has decided: %t", p.ID, approve)
			}
		}
	}
	a = musttest.Get(h.approvals.Decide(t.Context(), ann, id, true))(t)
	if a.State != approval.Approved || h.shouts(t, reader) != `{"text": "HI"}` || h.shouts(t, bob) != "NOT_FOUND" {
		t.Errorf("approved: %+v, and answers %s, to others %s", a, h.shouts(t, reader), h.shouts(t, bob))
	}
	if r := propose(ann, shout(t, upper, "a", "A", "ß", "SS")); !r.Success || string(r.Data) != `{"skill":"shout","state":"enabled","version":"`+version+`"}` {
		t.Errorf("after the approval: %+v %s", r.Error, r.Data)
	}

	if _, err := h.approvals.Decide(t.Context(), ann, id, false); skill.CodeOf(err) != skill.Conflict || h.shouts(t, ann) != `{"text": "HI"}` {
		t.Errorf("denied after it was approved: %v", err)
	}

	// A person disables it: the approval is used up, and the model cannot have it back.
	musttest.Get(h.uploads.Decide(catalogue.Decision{Action: catalogue.Disable, By: ann, ID: "shout"}))(t)
	r = propose(ann, shout(t, upper, "a", "A", "ß", "SS"))
	if next := approval.PendingID(r); next == "" || next == id || h.shouts(t, ann) != "NOT_FOUND" {
		t.Errorf("proposed after it was disabled: %+v", r.Error)
	} else if _, err := h.approvals.Decide(t.Context(), ann, next, false); err != nil {
		t.Error(err)
	}
	r = propose(ann, shout(t, upper, "a", "A", "ß", "SS"))
	if r.Error == nil || r.Error.Details["state"] != "denied" || h.shouts(t, ann) != "NOT_FOUND" {
		t.Errorf("proposed after it was denied: %+v", r.Error)
	}
}

// TestProposalReplaces: the approval of a new version names the one that it replaces, and fails where the version is gone.
func TestProposalReplaces(t *testing.T) {
	h, ann, propose := proposing(t)
	first := approval.PendingID(propose(ann, shout(t, upper, "a", "A")))
	musttest.Get(h.approvals.Decide(t.Context(), ann, first, true))(t)
	loud := strings.Replace(upper, ".upper()", ".upper() + '!'", 1)
	second := approval.PendingID(propose(ann, shout(t, loud, "a", "A!")))
	a := musttest.Get(h.approvals.Get(t.Context(), ann, second))(t)
	if before := musttest.Get(h.approvals.Get(t.Context(), ann, first))(t); a.PreviousDigest != before.Digest || a.Digest == before.Digest {
		t.Errorf("the second approval: %+v", a)
	}
	if got := h.shouts(t, ann); got != `{"text": "HI"}` {
		t.Errorf("before the second approval: %s", got)
	}
	one := musttest.Get(h.approvals.Get(t.Context(), ann, first))(t)
	third := approval.PendingID(propose(ann, shout(t, strings.Replace(upper, ".upper()", ".upper() + '?'", 1), "a", "A?")))
	musttest.Get(h.uploads.Decide(catalogue.Decision{Action: catalogue.Disable, By: ann, ID: "shout"}))(t)
	if _, err := h.approvals.Decide(t.Context(), ann, third, true); skill.CodeOf(err) != skill.Conflict {
		t.Errorf("approved after the version that it replaces was disabled: %v", err)
	}
	musttest.Get(h.uploads.Decide(catalogue.Decision{Action: catalogue.Enable, By: ann, ID: "shout", Version: one.Version}))(t)
	musttest.Get(h.uploads.Decide(catalogue.Decision{Action: catalogue.Delete, By: ann, ID: "shout", Version: a.Version}))(t)
	if _, err := h.approvals.Decide(t.Context(), ann, second, true); skill.CodeOf(err) != skill.NotFound {
		t.Errorf("approved after it was deleted: %v", err)
	}
	if a := musttest.Get(h.approvals.Get(t.Context(), ann, second))(t); a.State != approval.Pending || h.shouts(t, ann) != `{"text": "HI"}` {
		t.Errorf("then: %+v", a)
	}
}

// TestProposalsRefused: what is wrong with a proposal is said, and nothing of it is kept.
func TestProposalsRefused(t *testing.T) {
	h, ann, propose := proposing(t)
	change := func(key string, value any) json.RawMessage {
		var m map[string]any
		musttest.Do(t, json.Unmarshal(shout(t, upper, "a", "A"), &m))
		m[key] = value
		return musttest.Get(json.Marshal(m))(t)
	}
	many := []map[string]any{}
	for i := range maxCases + 1 {
		many = append(many, map[string]any{"name": fmt.Sprint(i), "input": map[string]any{}, "error": "NOT_FOUND"})
	}
	for name, tc := range map[string]struct {
		args  json.RawMessage
		code  skill.Code
		words string
	}{
		"no JSON":                       {json.RawMessage(`{"name":`), skill.InvalidArgument, "cannot be read"},
		"a list":                        {json.RawMessage(`[]`), skill.InvalidArgument, "cannot be read"},
		"nothing":                       {json.RawMessage(`{}`), skill.InvalidArgument, "code is missing"},
		"a key that is unknown":         {change("permissions", map[string]any{"http": []string{"*"}}), skill.InvalidArgument, "permissions is unknown"},
		"a hostile name":                {change("name", "../shout"), skill.InvalidArgument, "not a skill id"},
		"the name of the operator's":    {change("name", "quick"), skill.Conflict, ""},
		"another language":              {change("language", "cobol"), skill.InvalidArgument, "language"},
		"a program that is too long":    {change("code", strings.Repeat("#", maxProposed)), skill.InvalidArgument, "at most"},
		"a schema that is none":         {change("input_schema", map[string]any{"type": 7}), skill.InvalidManifest, ""},
		"a reference elsewhere":         {change("input_schema", map[string]any{"$ref": "http://127.0.0.1/x"}), skill.InvalidManifest, ""},
		"no cases":                      {change("cases", []any{}), skill.InvalidArgument, "list of cases"},
		"too many cases":                {change("cases", many), skill.InvalidArgument, "are 21"},
		"a case without an answer":      {change("cases", []any{map[string]any{"name": "a", "input": map[string]any{}}}), skill.InvalidArgument, "either data or error"},
		"a description of control":      {change("description", "a\u202eb"), skill.InvalidManifest, ""},
		"a program that never ends":     {shout(t, "while True: pass", "a", "A"), skill.ToolInvocationError, "1 of 1 cases failed"},
		"only a case that runs nothing": {change("cases", []any{map[string]any{"name": "a", "input": map[string]any{}, "error": "INVALID_ARGUMENT"}}), skill.ToolInvocationError, "no case ran the code"},
		"a case with a limit":           {change("cases", []any{map[string]any{"name": "a", "input": map[string]any{"text": "a"}, "data": map[string]any{"text": "A"}, "limits": map[string]any{"fuel": 1}}}), skill.ToolInvocationError, "1 of 1 cases failed"},
		"a program that is none":        {shout(t, "def", "a", "A"), skill.ToolInvocationError, "1 of 1 cases failed"},
	} {
		r := propose(ann, tc.args)
		if r.Error == nil || r.Error.Code != tc.code || !strings.Contains(r.Error.Message+fmt.Sprint(r.Error.Details), tc.words) {
			t.Errorf("%s: %+v", name, r.Error)
		}
	}
	if own := h.uploads.Own("acme", "shout"); len(own) != 0 {
		t.Errorf("kept: %v", own)
	}
	list, _, err := h.approvals.List(t.Context(), ann, "", 10)
	if err != nil || len(list) != 0 {
		t.Errorf("asked for: %+v %v", list, err)
	}
}

// TestProposalIsWhatIsEnabled: a version with other files does not take the place of a proposal, nor a proposal that of
// another tenant's published skill.
func TestProposalIsWhatIsEnabled(t *testing.T) {
	h, ann, propose := proposing(t)
	w := musttest.Get(readProposal(shout(t, upper, "a", "A")))(t)
	version, files, err := w.files()
	musttest.Do(t, err)
	planted := map[string]string{"json.py": "evil = True\n"}
	for _, f := range files {
		planted[f.name] = f.text
	}
	h.plant(t, ann, planted)
	if r := propose(ann, shout(t, upper, "a", "A")); r.Error == nil || r.Error.Code != skill.Conflict || !strings.Contains(r.Error.Message, version+" exists with other files") {
		t.Errorf("with a file more: %+v", r.Error)
	}
	musttest.Get(h.uploads.Decide(catalogue.Decision{Action: catalogue.Delete, By: ann, ID: "shout", Version: version}))(t)

	bob := skill.Principal{ID: "bob", Type: skill.Agent, Tenant: "b", Scopes: ann.Scopes}
	loud := strings.Replace(upper, ".upper()", ".upper() + '!'", 1)
	musttest.Get(h.approvals.Decide(t.Context(), bob, approval.PendingID(propose(bob, shout(t, loud, "a", "A!"))), true))(t)
	v := h.uploads.Own("b", "shout")[0]
	musttest.Get(h.uploads.Decide(catalogue.Decision{Action: catalogue.Approve, By: skill.Local(), Tenant: "b", ID: "shout", Version: v}))(t)
	if got := h.shouts(t, ann); got != `{"text": "HI!"}` {
		t.Fatal(got)
	}
	if r := propose(ann, shout(t, strings.Replace(upper, ".upper()", ".upper() + '?'", 1), "a", "A?")); r.Error == nil || r.Error.Code != skill.Conflict || h.shouts(t, ann) != `{"text": "HI!"}` {
		t.Errorf("a draft hides a published skill: %+v", r.Error)
	}
}

// plant uploads files as a version.
func (h *Host) plant(t *testing.T, p skill.Principal, files map[string]string) {
	t.Helper()
	u := musttest.Get(h.uploads.Begin(p))(t)
	defer u.Close()
	f := musttest.Get(u.File())(t)
	defer f.Close()
	musttest.Get(f.Write(zipped(t, files)))(t)
	musttest.Get(u.Admit(t.Context(), admission.Source{Archive: f}, false))(t)
}

// TestCasesOfATurn: the cases of a proposal have the fuel and the time of one call together, and end with it. Its draft
// stays for the next proposal: it is not the skill that has failed.
func TestCasesOfATurn(t *testing.T) {
	h, ann, propose := proposing(t)
	used := propose(ann, shout(t, upper, "a", "A")).Meta.FuelUsed
	args := shout(t, upper, "a", "A", "b", "B", "c", "C")
	call := func(ctx context.Context, limits skill.Limits) *skill.Result {
		return hostTools{h.agents, h}.CallToolIn(ctx, ann, tools.ProposeSkill, args, "t-1", skill.Turn{}, limits)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, tc := range map[string]struct {
		ctx    context.Context
		limits skill.Limits
		code   skill.Code
	}{
		"fuel": {t.Context(), skill.Limits{Fuel: used * 3 / 2}, skill.FuelExhausted}, "time": {t.Context(), skill.Limits{Timeout: time.Millisecond}, skill.Timeout}, "the turn": {ended, skill.Limits{}, skill.Cancelled},
	} {
		r := call(tc.ctx, tc.limits)
		if r.Error == nil || r.Error.Code != tc.code || strings.Contains(r.Error.Message, "failed") {
			t.Errorf("%s: %+v", name, r.Error)
		}
		if name != "the turn" && len(h.uploads.Own("acme", "shout")) != 2 {
			t.Errorf("%s: the versions %v", name, h.uploads.Own("acme", "shout"))
		}
	}
	if r := call(t.Context(), skill.Limits{}); approval.PendingID(r) == "" {
		t.Errorf("then: %+v", r.Error)
	}
}

// TestSkillFile: the files of a version are read by its tenant, and by nobody else while it is shared with all.
func TestSkillFile(t *testing.T) {
	h, ann, _ := proposing(t)
	h.plant(t, ann, map[string]string{
		"skill.yaml": "id: shout\nversion: 1.0.0\ndescription: A test.\ntype: wasm\nruntime: python\nentry: x.py\n", "x.py": upper,
		"sub/at.txt": strings.Repeat("x", maxShown), "sub/over.txt": strings.Repeat("x", maxShown+1),
	})
	musttest.Get(h.uploads.Decide(catalogue.Decision{Action: catalogue.Enable, By: ann, ID: "shout"}))(t)
	musttest.Get(h.uploads.Decide(catalogue.Decision{Action: catalogue.Approve, By: skill.Local(), Tenant: "acme", ID: "shout", Version: "1.0.0"}))(t)
	bob := skill.Principal{ID: "bob", Type: skill.Agent, Tenant: "b", Scopes: ann.Scopes}
	if got := h.shouts(t, bob); got != `{"text": "HI"}` {
		t.Fatal(got)
	}
	for _, tc := range []struct {
		who           skill.Principal
		version, path string
		code          skill.Code
	}{
		{ann, "1.0.0", "x.py", ""},
		{ann, "1.0.0", "sub/at.txt", ""},
		{ann, "1.0.0", "sub/over.txt", skill.PayloadTooLarge},
		{ann, "1.0.0", "sub", skill.NotFound},
		{ann, "1.0.0", "none", skill.NotFound},
		{ann, "1.0.0", "../shout", skill.NotFound},
		{ann, "1.0.0", "/etc/hostname", skill.NotFound},
		{ann, "2.0.0", "x.py", skill.NotFound},
		{bob, "1.0.0", "x.py", skill.NotFound},
	} {
		b, err := h.uploads.File(t.Context(), tc.who, "shout", tc.version, tc.path)
		if skill.CodeOf(err) != tc.code || tc.path == "x.py" && err == nil && string(b) != upper {
			t.Errorf("%s, %s of %s: %d bytes, %v", tc.who.ID, tc.path, tc.version, len(b), err)
		}
	}
}

// TestProposalsAreOfJSON: escapes of JSON are read as JSON, and the file of cases has what they mean.
func TestProposalsAreOfJSON(t *testing.T) {
	args := shout(t, upper, "a", "A")
	args = json.RawMessage(strings.Replace(string(args), `"text":"a"`, `"text":"\ud83d\ude00\/"`, 1))
	w := musttest.Get(readProposal(args))(t)
	if string(w.cases[0].Input) != `{"text":"😀/"}` {
		t.Errorf("%s", w.cases[0].Input)
	}
}

// TestProposedAtOnce: the same proposal at once, and its approval at once, make one version and one approval.
func TestProposedAtOnce(t *testing.T) {
	h, ann, propose := proposing(t)
	var all sync.WaitGroup
	ids := make([]string, 4)
	for i := range ids {
		all.Go(func() { ids[i] = approval.PendingID(propose(ann, shout(t, upper, "a", "A"))) })
	}
	all.Wait()
	if len(slices.Compact(slices.Clone(ids))) != 1 || ids[0] == "" || len(h.uploads.Own("acme", "shout")) != 1 {
		t.Fatalf("approvals %v, versions %v", ids, h.uploads.Own("acme", "shout"))
	}
	for range 4 {
		all.Go(func() {
			if _, err := h.approvals.Decide(t.Context(), ann, ids[0], true); err != nil && skill.CodeOf(err) != skill.Conflict {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if got := h.shouts(t, ann); got != `{"text": "HI"}` {
		t.Error(got)
	}
}

// TestProposeOverMCP: the person at an MCP client is asked, and who may not enable uploads gets no such tool.
func TestProposeOverMCP(t *testing.T) {
	ann, operator, bob := agentTenants(t)
	if tool := `"name":"propose_skill"`; !strings.Contains(ann.mcp(t, "tools/list", ""), tool) || strings.Contains(operator.mcp(t, "tools/list", ""), tool) {
		t.Error("the tool is offered to the wrong callers")
	}
	call := func(a asks, rest string) string {
		return a.mcp(t, "tools/call", `"name":"propose_skill","arguments":`+string(shout(t, upper, "a", "A"))+rest+",")
	}
	var first struct {
		Result struct {
			ResultType    string
			RequestState  string
			InputRequests map[string]struct{ Params struct{ Message string } }
		}
	}
	text := call(ann, "")
	musttest.Do(t, json.Unmarshal([]byte(text), &first))
	if message := first.Result.InputRequests["approve"].Params.Message; first.Result.ResultType != "input_required" || !strings.HasSuffix(message, "cases passed: 1. Enable it?") {
		t.Fatal(text)
	}
	answer := func(action string) string {
		return `,"requestState":"` + first.Result.RequestState + `","inputResponses":{"approve":{"action":"` + action + `","content":{}}}`
	}
	if text = call(bob, answer("accept")); strings.Contains(text, `"state":"enabled"`) {
		t.Error("another tenant has accepted it: " + text)
	}
	if text = call(ann, answer("accept")); !strings.Contains(text, `"state":"enabled"`) {
		t.Fatal(text)
	}
	if _, text := ann.ask(t, "POST", "/skills/shout:invoke", "application/json", `{"input":{"text":"hi"}}`); !strings.Contains(text, `"text": "HI"`) && !strings.Contains(text, `"text":"HI"`) {
		t.Error(text)
	}
	if text := bob.mcp(t, "tools/list", ""); strings.Contains(text, "shout") {
		t.Error("another tenant sees it")
	}
}
