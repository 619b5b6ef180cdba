package replay_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"openskill/host/app/hosttest"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// TestSkills has the skills that come with openSkill recorded in a process, which ends,
// and replayed in this one: every replay is identical, whatever the run came to.
func TestSkills(t *testing.T) {
	root := musttest.Get(filepath.Abs(filepath.Join("..", "..", "..")))(t)
	j := job{Plan: filepath.Join(root, "data"), Roots: []string{filepath.Join(root, "skills")}}
	for _, id := range []string{"echo", "file_search", "calculator", "log_transform"} {
		raw := musttest.Get(os.ReadFile(filepath.Join(root, "skills", "testdata", "cases", id+".json")))(t)
		var cases []struct {
			Input json.RawMessage `json:"input"`
		}
		musttest.Do(t, json.Unmarshal(raw, &cases))
		every := 1 + len(cases)/8
		for i := 0; i < len(cases); i += every {
			if cases[i].Input != nil {
				j.Calls = append(j.Calls, asked{id, string(cases[i].Input)})
			}
		}
	}
	j.Calls = append(j.Calls,
		asked{"echo", `{"text": "hello"}`}, asked{"file_search", `{"query": "error"}`}, asked{"calculator", `{"numbers": [1, 2, 3.5], "ops": ["mean", "sum"]}`},
		asked{"log_transform", `{"input_path": "./data/logs/app.log", "output": "file"}`})
	s := elsewhere(t, j)
	h := open(t, plan{roots: j.Roots, data: j.Plan})
	h.take(t, s)
	successes, ran := map[skill.ID]int{}, 0
	for i, r := range s.Results {
		row, recorded := s.Rows[r.Meta.ExecutionID]
		switch {
		case !recorded: // it was refused before it ran
			continue
		case r.Meta.Runner == skill.CLIPython:
			t.Logf("%s ran on the machine's Python: there is no module of it here", r.SkillID)
			continue
		case hosttest.UnderRace && r.Error != nil && r.Error.Code == skill.Timeout:
			t.Logf("%s was compiled for longer than it may run, with the race detector in the compiler", r.SkillID)
			continue
		case row.Missing != "":
			t.Errorf("%s %s: %s", r.SkillID, j.Calls[i].Input, row.Missing)
			continue
		}
		ran++
		if r.Success {
			successes[r.SkillID]++
		}
		report := h.identical(t, r.Meta.ExecutionID)
		if of := h.records.all[report.ReplayID]; of == nil || of.ReplayOf != r.Meta.ExecutionID || of.Finished == nil {
			t.Errorf("the replay is on record as %+v", of)
		}
		if t.Failed() {
			t.Fatalf("%s %s", r.SkillID, j.Calls[i].Input)
		}
	}
	t.Logf("%d runs were replayed; successes: %v", ran, successes)
}
