package llmtest_test

import (
	"fmt"
	"strings"
	"testing"

	"openskill/host/agent/llm"
	"openskill/host/agent/llm/llmtest"
	"openskill/internal/musttest"
)

// TestDemo: what the script that comes with openSkill says that one may try, it does.
func TestDemo(t *testing.T) {
	t.Parallel()
	script := musttest.Get(llmtest.Parse(llmtest.Demo))(t)
	m := musttest.Get(llmtest.New(script))(t)
	shown := func(r *llm.Request) string {
		reply := musttest.Get(m.Chat(t.Context(), r, nil))(t)
		out := reply.Text
		for _, c := range reply.Calls {
			out += fmt.Sprintf(" %s(%s)", c.Name, c.Arguments)
		}
		return strings.TrimSpace(out)
	}
	for text, want := range map[string]string{
		"echo hello":              `echo({"text":"hello"})`,
		"echo：你好 \n":              `echo({"text":"你好"})`,
		"search for openSkill.":   `file_search({"query":"openSkill","limit":5})`,
		"搜索 沙箱":                   `file_search({"query":"沙箱","limit":5})`,
		"the mean of 1, 2, 3":     `calculator({"numbers": [1, 2, 3], "ops": ["mean", "median", "min", "max"]})`,
		"平均 1.5,-2":               `calculator({"numbers": [1.5,-2], "ops": ["mean", "median", "min", "max"]})`,
		"show me the log":         `log_transform({"input_path":"./data/logs/app.log","limit":5})`,
		"看看日志":                    `log_transform({"input_path":"./data/logs/app.log","limit":5})`,
		"something wrong":         `calculator({"numbers":"1, 2, 3","ops":["mean"]})`,
		"hello":                   `I am a scripted model. Try "echo hello", "search for openSkill", "the mean of 1, 2, 3", "show me the log", "all four", "something wrong" or "slow".`,
		"你好":                      `我是按脚本回答的模型。可以试试：“echo 你好”、“搜索 openSkill”、“平均 1, 2, 3”、“看看日志”、“全部”。`,
		"what are all four good?": `All of them at once. echo({"text":"hello"}) file_search({"query":"openSkill","limit":2}) calculator({"numbers":[10.5,9.9,11.2],"ops":["mean","max"]}) log_transform({"input_path":"./data/logs/app.log","limit":2})`,
	} {
		if got := shown(user(text)); got != want {
			t.Errorf("%s\ngot  %s\nwant %s", text, got, want)
		}
	}
	const marked = "<tool_result name=\"echo\" status=\"ok\">\n{\"echoed\":\"x\"}\n</tool_result>\nA sentence."
	for _, c := range []struct{ text, tool, result, want string }{
		{"echo x", "echo", marked, `echo gave: {"echoed":"x"}`},
		{"echo 你", "echo", marked, `echo 的结果：{"echoed":"x"}`},
		{"echo x", "echo", `{"echoed":"x"}`, `The tool gave: {"echoed":"x"}`},
		{"something wrong", "calculator", "<tool_result name=\"calculator\" status=\"invalid\">\nno\n</tool_result>", `The numbers must be a list. Again: calculator({"numbers":[1,2,3],"ops":["mean"]})`},
	} {
		if got := shown(after(c.text, c.tool, c.result)); got != c.want {
			t.Errorf("%s\ngot  %s\nwant %s", c.result, got, c.want)
		}
	}
	task := user("Task: x")
	task.JSON = true
	if got := shown(task); !strings.Contains(got, `"skill_call"`) {
		t.Error(got)
	}
	task.Messages[0].Text += "\n--- round 0 ---\nAction"
	if got := shown(task); !strings.Contains(got, `"finish"`) {
		t.Error(got)
	}
}
