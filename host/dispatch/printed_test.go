package dispatch

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"openskill/plugins/runnertest"
	"openskill/sdk/skill"
)

func TestScriptOutputThatIsNotTextIsBase64(t *testing.T) {
	h := withScripts(t, nil)
	h.python.Answer = runnertest.Always(skill.Reply{Stdout: []byte("\x89PNG\r\n\xff\x00")})
	r := h.RunScript(context.Background(), skill.Local(), greet())
	if string(r.Data) != `{"encoding":"base64","output":"iVBORw0K/wA="}` {
		t.Errorf("%s, %+v", r.Data, r.Error)
	}
}

func TestEndedRunKeepsTheBeginningOfItsOutput(t *testing.T) {
	long := strings.Repeat("é", maxPartial)
	for name, c := range map[string]struct {
		reply    skill.Reply
		output   string
		encoding any
		bytes    int
	}{
		"over the limit, by the runner":   {skill.Reply{Code: skill.OutputLimit, Message: "too much", Stdout: []byte("first line\n")}, "first line\n", nil, 11},
		"over the limit, by the door":     {skill.Reply{Stdout: []byte(strings.Repeat("x", 1025))}, strings.Repeat("x", 1024), nil, 1024},
		"a trap":                          {skill.Reply{Code: skill.Trap, Message: "trapped", Stdout: []byte("step 1")}, "step 1", nil, 6},
		"no time left":                    {skill.Reply{Code: skill.Timeout, Message: "late", Stdout: []byte("step 1")}, "step 1", nil, 6},
		"cut within a character":          {skill.Reply{Code: skill.OutputLimit, Message: "too much", Stdout: []byte("caf\xc3")}, "caf", nil, 4},
		"no text":                         {skill.Reply{Code: skill.OutputLimit, Message: "too much", Stdout: []byte("\xff\xfe")}, "//4=", "base64", 2},
		"more than an error keeps":        {skill.Reply{Code: skill.Timeout, Message: "late", Stdout: []byte(long)}, long[:maxPartial], nil, 2 * maxPartial},
		"the same, cut within characters": {skill.Reply{Code: skill.Timeout, Message: "late", Stdout: []byte("x" + long)}, "x" + long[:maxPartial-2], nil, 2*maxPartial + 1},
	} {
		t.Run(name, func(t *testing.T) {
			h := withScripts(t, nil)
			h.python.Answer = runnertest.Always(c.reply)
			h.wasm.Answer = h.python.Answer
			for kind, r := range map[string]*skill.Result{
				"script": h.RunScript(context.Background(), skill.Local(), greet()),
				"skill":  h.Invoke(context.Background(), skill.Local(), ask("frames", `{}`)),
			} {
				if kind == "skill" && c.reply.Code == "" {
					continue // has another limit here
				}
				d := map[string]any{}
				if r.Error != nil {
					d = r.Error.Details
				}
				if r.Success || d["output"] != c.output || d["encoding"] != c.encoding || d["output_bytes"] != c.bytes {
					b, _ := json.Marshal(r)
					t.Errorf("%s: %.300s", kind, b)
				}
			}
		})
	}
}

func TestEndedRunThatPrintedNothingHasNoOutput(t *testing.T) {
	h := withScripts(t, nil)
	h.python.Answer = runnertest.Always(skill.Reply{Code: skill.Trap, Message: "trapped"})
	if r := h.RunScript(context.Background(), skill.Local(), greet()); r.Error == nil || r.Error.Details != nil {
		t.Errorf("%+v", r.Error)
	}
}
