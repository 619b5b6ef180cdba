package app

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// TestProgramSkill has an executable file answer as a skill of the operator's, by the
// same contract as all others.
func TestProgramSkill(t *testing.T) {
	s := settings(t, nil)
	folder := filepath.Join(s.SkillsDir, "shout")
	manifest := "id: shout\nversion: 1.0.0\ndescription: Says it loudly.\ntype: cli\nruntime: exec\nentry: shout.sh\n" +
		"input_schema: {type: object, required: [text], properties: {text: {type: string}}}\n"
	script := "#!/bin/sh\nread call\ncase \"$call\" in *quiet*) echo '{\"success\": false, \"error\": {\"code\": \"INVALID_ARGUMENT\", \"message\": \"louder\"}}'; exit 1;; esac\n" +
		"echo '{\"said\": \"HELLO\"}'\n"
	path := filepath.Join(folder, "shout.sh")
	err := errors.Join(
		os.Mkdir(folder, 0o755), os.WriteFile(filepath.Join(folder, "skill.yaml"), []byte(manifest), 0o644),
		os.WriteFile(path, []byte(script), 0o755), os.Chmod(path, 0o755))
	musttest.Do(t, err)
	h := musttest.Get(Open(s, nil))(t)
	defer h.Close()
	call := func(input string) *skill.Result {
		return h.Invoke(t.Context(), skill.Local(), skill.Request{SkillID: "shout", Input: []byte(input)})
	}
	if r := call(`{"text": "hello"}`); !r.Success || string(r.Data) != `{"said": "HELLO"}` || r.Meta.Runner != skill.CLIExec {
		t.Errorf("%+v, %+v", r, r.Error)
	}
	if r := call(`{"text": "quiet"}`); r.Success || r.Error.Code != skill.InvalidArgument || !strings.Contains(r.Error.Message, "louder") {
		t.Errorf("%+v, %+v", r, r.Error)
	}
	if r := call(`{}`); r.Success || r.Error.Code != skill.InvalidArgument || r.Meta.Ran {
		t.Errorf("without its text: %+v, %+v", r, r.Error)
	}
}
