package app

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"openskill/host/catalogue"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// TestSkillsCallSkills: a Python skill calls the skills that its manifest names, and the record has the tree.
func TestSkillsCallSkills(t *testing.T) {
	h := codeHost(t, map[string]string{}, func(dir string) {
		add := func(id, asks, code string) {
			musttest.Write(t, filepath.Join(dir, id, "skill.yaml"), "id: "+id+"\nversion: 1.0.0\ndescription: A test.\ntype: wasm\nruntime: python\nentry: x.py\npermissions: {skills: ["+asks+"]}\n")
			musttest.Write(t, filepath.Join(dir, id, "x.py"), "import json, sys\n"+code)
		}
		add("outer", "inner, with-hyphens", "import skills\nfrom skills import inner, with_hyphens, quick\ngiven = json.load(sys.stdin)['input']\nout = [dir(skills), inner(n=1), with_hyphens()]\n"+
			"try:\n    quick()\nexcept skills.SkillError as e:\n    out.append(e.code)\nprint(json.dumps({'out': out}))\n")
		add("inner", "quick", "from skills import quick\nn = json.load(sys.stdin)['input']['n']\nprint(json.dumps({'n': n + 1, 'quick': quick()}))\n")
		add("lone", "", "json.load(sys.stdin)\ntry:\n    import skills\n    print('{\"skills\": true}')\nexcept ImportError:\n    print('{\"skills\": false}')\n")
	})
	p := skill.Principal{ID: "p", Type: skill.Agent, Tenant: "acme", Scopes: []string{skill.ScopeRead, skill.ScopeInvoke, "executions:read"}}
	call := func(id skill.ID) *skill.Result {
		r := h.Invoke(t.Context(), p, skill.Request{SkillID: id, Input: json.RawMessage(`{}`)})
		if r.Error != nil && strings.Contains(r.Error.Message, "is not installed") {
			t.Skip(r.Error.Message)
		}
		return r
	}
	r := call("outer")
	if r.Error != nil || string(r.Data) != `{"out": [["SkillError", "inner", "with_hyphens"], {"n": 2, "quick": {}}, {}, "FORBIDDEN"]}` {
		t.Fatalf("%+v %s", r.Error, r.Data)
	}
	var tree []string
	for _, v := range musttest.Get(h.kept.executions.Session(t.Context(), p, r.Meta.ExecutionID))(t) {
		tree = append(tree, fmt.Sprint(v.Skill, " ", v.Parent == r.Meta.ExecutionID))
	}
	if got := strings.Join(tree, ", "); got != "outer false, inner true, quick false, with-hyphens true" {
		t.Errorf("on record: %s", got)
	}
	report := musttest.Get(h.Replay(t.Context(), p, r.Meta.ExecutionID))(t)
	if !report.Identical {
		t.Errorf("replayed: %+v", report)
	}
	if again := call("outer"); string(again.Data) != string(r.Data) {
		t.Errorf("called again: %+v %s", again.Error, again.Data)
	}
	if r := call("lone"); string(r.Data) != `{"skills": false}` {
		t.Errorf("without permissions: %+v %s", r.Error, r.Data)
	}
}

// TestUploadedSkillCallsSkills: an uploaded skill calls the sandboxed skills that it names, and none that sends requests.
func TestUploadedSkillCallsSkills(t *testing.T) {
	h, ann, _ := proposing(t, func(dir string) {
		musttest.Write(t, filepath.Join(dir, "sends", "skill.yaml"), "id: sends\nversion: 0.1.0\ndescription: A test.\ntype: wasm\nruntime: wasi\nentry: a.wasm\npermissions: {http: [\"http://127.0.0.1:1/ GET\"]}\n")
		musttest.Write(t, filepath.Join(dir, "sends", "a.wasm"), answering)
	})
	code := "import json, sys\njson.load(sys.stdin)\nimport skills\nout = []\nfor call in skills.quick, skills.sends:\n    try:\n        call()\n        out.append('ok')\n" +
		"    except skills.SkillError as e:\n        out.append(e.code)\nprint(json.dumps({'out': out}))\n"
	h.plant(t, ann, map[string]string{
		"skill.yaml": "id: caller\nversion: 1.0.0\ndescription: A test.\ntype: wasm\nruntime: python\nentry: x.py\npermissions: {skills: [quick, sends]}\n", "x.py": code,
	})
	musttest.Get(h.uploads.Decide(catalogue.Decision{Action: catalogue.Enable, By: ann, ID: "caller", Version: "1.0.0"}))(t)
	r := h.Invoke(t.Context(), ann, skill.Request{SkillID: "caller", Input: json.RawMessage(`{}`)})
	if r.Error != nil || string(r.Data) != `{"out": ["ok", "FORBIDDEN"]}` {
		t.Errorf("%+v %s", r.Error, r.Data)
	}
}
