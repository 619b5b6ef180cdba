package main

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"openskill/host/manifest"
	"openskill/host/records"
	"openskill/host/store"
	"openskill/internal/musttest"
)

// The operator's word for a folder holds as long as it is as it was, for the skill and for the
// Agent Skill.
func TestSkillsTrust(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	skills, state := filepath.Join(dir, "skills"), filepath.Join(dir, "state")
	folder := filepath.Join(skills, "greet.bak")
	write := func(name, text string) {
		t.Helper()
		musttest.Write(t, filepath.Join(folder, name), text)
	}
	run := func(want int, args ...string) string {
		t.Helper()
		var stdout, stderr bytes.Buffer
		args = append(args, "--state", state)
		if args[1] != "untrust" {
			args = append(args, "--skills", skills)
		}
		if code := Run(t.Context(), args, strings.NewReader(""), &stdout, &stderr); code != want {
			t.Fatalf("%v: exit code %d, want %d: %s%s", args, code, want, &stdout, &stderr)
		}
		return stdout.String() + stderr.String()
	}
	says := func(what, got string, want ...string) {
		t.Helper()
		for _, w := range want {
			if !strings.Contains(got, w) {
				t.Errorf("%s: %q is missing in\n%s", what, w, got)
			}
		}
	}
	write("skill.yaml", "id: greet\nversion: 1.0.0\ndescription: D.\ntype: cli\nruntime: python\nentry: main.py\n")
	write("main.py", "print('{}')\n")
	write("SKILL.md", "---\nname: greet.bak\ndescription: D.\n---\n")
	write(manifest.MarkFile, manifest.Mark)
	says("a stranger's", run(0, "skills", "list"), "only for trusted skills")
	digest := musttest.Get(manifest.Digest(folder))(t)
	says("no skill", run(exitFailed, "skills", "trust", "other"), "skill other not found")
	says("no name", run(exitUsage, "skills", "trust", "../greet"), "not a valid skill name")
	folder = filepath.Join(skills, "greet")
	musttest.Do(t, os.Rename(filepath.Join(skills, "greet.bak"), folder))
	says("other files", run(exitFailed, "skills", "trust", "greet", "--digest", "sha256:0"), "check what changed", digest)
	says("trust", run(0, "skills", "trust", "greet", "--digest", digest), digest, "is trusted")
	says("trusted", run(0, "skills", "list"), "cli:python", "trusted by name")
	write("main.py", "print('other')\n")
	says("changed", run(0, "skills", "list"), "only for trusted skills")
	says("trust again", run(0, "skills", "trust", "greet"), "is trusted")
	says("untrust", run(0, "skills", "untrust", "greet"), "not trusted by name any more")
	says("untrusted", run(0, "skills", "list"), "only for trusted skills")
	says("untrust again", run(exitFailed, "skills", "untrust", "greet"), "no skill is trusted by the name")
	db := musttest.Get(store.Open(t.Context(), store.Options{StateDir: state, Log: slog.New(slog.DiscardHandler)}))(t)
	defer db.Close()
	all := musttest.Get(records.NewStore(db).Changes(t.Context(), records.ChangeQuery{Limit: 100}))(t)
	var record []string
	for i := range all {
		c := &all[i]
		record = append(record, strings.TrimSpace(c.Action+" "+c.Subject+" "+c.Principal+" "+string(c.Failed)))
		if c.Action == "skill.trust" && !strings.HasPrefix(c.Details["digest"], "sha256:") {
			t.Errorf("the record of trust has no digest: %+v", c)
		}
	}
	slices.Reverse(record)
	want := []string{"skill.trust greet local", "skill.trust greet local", "skill.untrust greet local", "skill.untrust greet local", "skill.untrust greet local NOT_FOUND"}
	if !slices.Equal(record, want) {
		t.Errorf("on record %q\nwant %q", record, want)
	}
	musttest.Do(t, os.Remove(filepath.Join(folder, manifest.MarkFile)))
	says("the operator's own", run(exitFailed, "skills", "trust", "greet"), "is already trusted")
}
