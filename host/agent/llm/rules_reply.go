package llm

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode"

	"openskill/sdk/skill"
)

// language is in which one a person is answered.
type language int

const (
	english language = iota
	chinese
)

// languageOf is Chinese for a text that has a character of it.
func languageOf(text string) language {
	if strings.ContainsFunc(head(text), func(r rune) bool { return unicode.Is(unicode.Han, r) }) {
		return chinese
	}
	return english
}

// say gives the one in the language.
func (in language) say(zh, en string, args ...any) string {
	if in == chinese {
		return fmt.Sprintf(zh, args...)
	}
	return fmt.Sprintf(en, args...)
}

// hint names what can be asked for, in both languages.
const hint = "此处由规则（而非模型）选择技能，可用指令：echo: 文本 · 搜索 文本 · 平均 1 2 3 · 比较 3 和 5 · 日志 data/logs/app.log\n" +
	"Rules choose the skill here, not a model. Commands: echo: TEXT · find TEXT in *.md · mean 1 2 3 · compare 3 and 5 · parse data/logs/app.log"

func (in language) missing(id string) string {
	return in.say("这条消息应由技能 %s 处理，但您没有可用的该技能。", "This message is for the skill %s, which you cannot use.", id)
}

// What is shown of a result.
const (
	shownLines = 5
	shownLine  = 240  // bytes
	shownText  = 4000 // bytes
)

// result tells a person what a skill gave.
func (in language) result(id string, m *Message) string {
	data, ok := unmarked(m)
	if !ok {
		data, _, _ = strings.Cut(data, "\n{") // details, which the message says in words
		return in.say("技能 %s 未成功：%s", "The skill %s failed: %s", id, skill.CleanText(data, 600))
	}
	for i := range table {
		if table[i].skill != id {
			continue
		}
		if text := table[i].tell(in, data); text != "" {
			return text
		}
	}
	// another skill, or a result that is cut off
	return in.say("技能 %s 的结果：%s", "The skill %s gave: %s", id, skill.CleanText(data, 1000))
}

// unmarked takes the marks from around a result, and the host's sentences for models from
// behind it. It reports whether the result is no error.
func unmarked(m *Message) (data string, ok bool) {
	first, rest, more := strings.Cut(m.Text, "\n")
	if !more || !strings.HasPrefix(first, "<tool_result ") {
		return strings.TrimSpace(m.Text), !m.Failed
	}
	if end := strings.LastIndex(rest, "\n</tool_result>"); end >= 0 {
		rest = rest[:end]
	}
	return strings.TrimSpace(rest), !m.Failed && strings.Contains(first, ` status="ok"`)
}

func (in language) echoed(data string) string {
	var v struct{ Echoed *string }
	if json.Unmarshal([]byte(data), &v) != nil || v.Echoed == nil {
		return ""
	}
	var lines []string
	left := shownText
	for line := range strings.SplitSeq(*v.Echoed, "\n") {
		if left <= 0 {
			lines = append(lines, "…")
			break
		}
		line = skill.CleanText(line, left)
		left -= len(line) + 1
		lines = append(lines, line)
	}
	return in.say("回显：%s", "echo: %s", strings.Join(lines, "\n"))
}

func (in language) matches(data string) string {
	var v struct {
		Matches []struct {
			Path    string
			LineNo  int `json:"line_no"`
			Snippet string
		}
		Truncated bool
	}
	if json.Unmarshal([]byte(data), &v) != nil || !strings.Contains(data, `"matches"`) {
		return ""
	}
	n := len(v.Matches)
	var b strings.Builder
	switch {
	case n == 0:
		return in.say("没有找到。", "Nothing was found.")
	case v.Truncated:
		b.WriteString(in.say("找到 %d 处，还有更多：", "%d places, and there are more:", n))
	case n == 1:
		b.WriteString(in.say("找到 1 处：", "One place:"))
	default:
		b.WriteString(in.say("找到 %d 处：", "%d places:", n))
	}
	for i := range v.Matches[:min(n, shownLines)] {
		m := &v.Matches[i]
		fmt.Fprintf(&b, "\n%s:%d: %s", skill.CleanText(m.Path, shownLine), m.LineNo, skill.CleanText(m.Snippet, shownLine))
	}
	if n > shownLines {
		b.WriteString("\n" + in.say("……以及另外 %d 处", "… and %d more", n-shownLines))
	}
	return b.String()
}

// names of the operations in Chinese.
var inChinese = map[string]string{"mean": "平均值", "median": "中位数", "min": "最小值", "max": "最大值", "sum": "总和"}

func (in language) calculated(data string) string {
	var v struct {
		Results    map[string]json.Number
		Comparison *struct {
			A, B, Difference json.Number
			Result           string
		}
	}
	if json.Unmarshal([]byte(data), &v) != nil || len(v.Results) == 0 {
		return ""
	}
	var parts []string
	if c := v.Comparison; c != nil {
		sign := strings.Trim(c.Result, "ab")
		parts = append(parts, in.say("%s %s %s（差 %s）", "%s %s %s (the difference is %s)", c.A, skill.CleanText(sign, 4), c.B, c.Difference))
	}
	for _, o := range operations {
		if value, ok := v.Results[o.name]; ok {
			parts = append(parts, in.say("%[2]s %[3]s", "%[1]s %[3]s", o.name, inChinese[o.name], value))
		}
	}
	return strings.Join(parts, in.say("，", ", "))
}

func (in language) records(data string) string {
	var v struct {
		Records []json.RawMessage
		Stats   *struct {
			Lines, Records, Dropped int
			Truncated               bool
		}
	}
	if json.Unmarshal([]byte(data), &v) != nil || v.Stats == nil {
		return ""
	}
	var b strings.Builder
	b.WriteString(in.say("读取 %d 行，得到 %d 条记录，丢弃 %d 行", "lines read: %d, records: %d, dropped: %d", v.Stats.Lines, v.Stats.Records, v.Stats.Dropped))
	if v.Stats.Truncated {
		b.WriteString(in.say("（文件还有更多）", " (the file has more)"))
	}
	for _, r := range v.Records[:min(len(v.Records), shownLines)] {
		b.WriteString("\n" + skill.CleanText(string(r), shownLine))
	}
	if n := len(v.Records) - shownLines; n > 0 {
		b.WriteString("\n" + in.say("……以及另外 %d 条", "… and %d more", n))
	}
	return b.String()
}
