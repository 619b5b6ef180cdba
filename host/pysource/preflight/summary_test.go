package preflight_test

import (
	"fmt"
	"testing"

	"openskill/host/pysource/preflight"
)

// A skill is covered when each of its scripts is; reasons and proposals are counted once a skill.
func TestSummarize(t *testing.T) {
	o := shellOptions(t)
	var all []*preflight.Report
	for _, files := range []map[string]string{
		{"SKILL.md": ""},
		{"a.py": "import os, requests\nos.getenv('KEY')\nrequests.get('https://a.test')\n", "b.sh": "git a\ngit b\n"},
		{"a.py": "import requests, torch\nopen('/etc/x')\n", "b.py": "open('/etc/y')\n"},
		{"a.sh": "ls\n", "b.js": "process.env.KEY;\n"},
	} {
		all = append(all, checked(t, o, files))
	}
	s := preflight.Summarize(all, 3)
	if want := (preflight.Coverage{WithScripts: 3, CoveredSkills: 1, Scripts: 6, CoveredScripts: 3}); s.Skills != 4 || s.Coverage != want {
		t.Errorf("%d skills, %+v", s.Skills, s.Coverage)
	}
	if got, want := fmt.Sprint(s.Languages), "[{python {2 1 3 1}} {shell {2 1 2 1}} {javascript {1 1 1 1}}]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if len(s.Reasons) != 3 || s.Reasons[0].What != "git is not there: command not found (127)" || s.Reasons[0].Skills != 1 || s.Reasons[0].Alone != 1 {
		t.Errorf("%+v", s.Reasons)
	}
	if got, want := fmt.Sprint(s.Proposals), "[{env KEY 2} {python requests 2} {http https://a.test 1}]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if s := preflight.Summarize(nil, 3); s.Reasons == nil || s.Proposals == nil || s.Languages == nil {
		t.Errorf("%+v", s)
	}
}
