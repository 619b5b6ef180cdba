package sandbox

import (
	"encoding/json"
	"strings"

	"openskill/sdk/skill"
	"openskill/wasm"
)

// plugged makes the reply to a call of a plug-in of Extism of what it has set. printed is
// what it printed and logged.
func plugged(r *skill.Reply, call *skill.Call, out *wasm.Outcome, printed []byte) {
	r.Stderr = printed[:min(uint64(len(printed)), call.Limits.Output)]
	r.Stdout = out.Plugin.Output
	if r.Code != "" {
		return
	}
	if r.ExitCode == 0 && out.Plugin.Error != nil {
		r.ExitCode = 1 // as Extism's Go host has it
	}
	if r.ExitCode == 0 || out.Plugin.Error == nil {
		return
	}
	if told := toldError(out.Plugin.Error); uint64(len(told)) <= call.Limits.Output {
		r.Stdout = told
	}
}

// toldError is the result of a plug-in that has set an error: a text, or what stands
// under "error" of a result.
func toldError(text []byte) []byte {
	var problem struct {
		Code    string          `json:"code"`
		Message string          `json:"message"`
		Details json.RawMessage `json:"details,omitempty"`
	}
	if json.Unmarshal(text, &problem) != nil || problem.Code == "" || problem.Message == "" {
		problem.Code, problem.Message = string(skill.ToolInvocationError), strings.ToValidUTF8(string(text), "\uFFFD")
		problem.Details = nil
	}
	b, err := json.Marshal(map[string]any{"success": false, "data": nil, "error": problem})
	if err != nil {
		return nil // the details are checked as they are read
	}
	return b
}
