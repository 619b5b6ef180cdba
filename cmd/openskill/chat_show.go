package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"openskill/sdk/client"
)

// screen is where a chat shows what happens. Text of models and skills goes through a
// [cleaner], and nothing is written to the two writers but by its methods.
type screen struct {
	answers io.Writer  // standard output
	notes   io.Writer  // all else: standard error, or the terminal that answers go to as well
	live    bool       // answers are shown while they come: a person watches
	color   bool       // of notes
	redraws bool       // both are one terminal, where a line can be taken back
	width   func() int // columns; 0: not known
	silent  bool       // nothing is shown: what turns come to is printed otherwise

	mu      sync.Mutex
	clean   cleaner
	mid     bool            // the last line has no end yet
	said    strings.Builder // text of this turn since its last call of a tool
	pause   *time.Timer     // shows that something is waited for
	hint    bool            // which it does now
	failure error           // of the first write that failed
}

// Styles of lines.
const (
	plainStyle = ""
	dimStyle   = "2"
	goodStyle  = "32"
	badStyle   = "31"
	askStyle   = "33"
	nameStyle  = "1"
)

func (s *screen) styled(style, text string) string {
	if !s.color || style == plainStyle {
		return text
	}
	return "\x1b[" + style + "m" + text + "\x1b[0m"
}

// room is how long a line may be: a little less than what fits, as some terminals break
// a line that is full.
func (s *screen) room() int {
	const otherwise = 200
	if s.width != nil {
		if w := s.width(); w > 20 {
			return w - 1
		}
	}
	return otherwise
}

// note writes a line of the chat's own. Its text is clean already.
func (s *screen) note(style, format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.line(style, fmt.Sprintf(format, args...))
}

func (s *screen) line(style, text string) {
	s.takeBack()
	s.endLine()
	s.write(s.notes, s.styled(style, text)+"\n")
}

func (s *screen) write(w io.Writer, text string) {
	if s.silent {
		return
	}
	if _, err := io.WriteString(w, text); err != nil && s.failure == nil {
		s.failure = err
	}
}

// endLine ends a line of the answer before something else is written.
func (s *screen) endLine() {
	if s.mid {
		s.write(s.answers, "\n")
		s.mid = false
	}
}

// waits is how long nothing happens before the screen says that it waits.
const waits = 400 * time.Millisecond

// waitFor says after a while that something is waited for, until anything else is shown.
func (s *screen) waitFor() {
	if !s.redraws {
		return
	}
	s.pause = time.AfterFunc(waits, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.pause != nil && !s.mid && !s.hint {
			s.hint = true
			s.write(s.notes, s.styled(dimStyle, "  …"))
		}
	})
}

func (s *screen) takeBack() {
	if s.pause != nil {
		s.pause.Stop()
		s.pause = nil
	}
	if s.hint {
		s.hint = false
		s.write(s.notes, "\r\x1b[K")
	}
}

// begin is called before a turn, and end behind it, whatever became of it.
func (s *screen) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.said.Reset()
	s.waitFor()
}

func (s *screen) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.takeBack()
	if rest := s.clean.end(); s.live {
		s.print(rest)
	}
	s.endLine()
}

// print writes text of an answer, which is clean.
func (s *screen) print(text string) {
	if text == "" {
		return
	}
	s.write(s.answers, text)
	s.mid = !strings.HasSuffix(text, "\n")
}

// hear shows what happens in a turn.
func (s *screen) hear(e client.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch e.Kind { //nolint:exhaustive // the others are looked at when the turn has ended
	case client.EventText:
		if e.Text == "" {
			return
		}
		s.said.WriteString(e.Text)
		if s.live {
			s.takeBack()
			s.print(s.clean.part(e.Text))
		}
	case client.EventToolGo:
		s.begun(e.Tool)
		s.waitFor()
	case client.EventToolEnd:
		s.ended(e.Tool, e.Result)
		s.waitFor()
	}
}

// begun is the line of a call of a tool that begins.
func (s *screen) begun(t *client.ToolCall) {
	s.said.Reset()
	if s.live {
		s.print(s.clean.end())
	}
	args := string(compacted(t.Arguments))
	if args == "{}" || args == "null" {
		args = ""
	}
	s.line(dimStyle, "  ▸ "+oneLine(toolName(t)+" "+args, s.room()-4))
}

func (s *screen) ended(t *client.ToolCall, result string) {
	took := strconv.FormatInt(t.LatencyMS, 10) + " ms"
	if t.Success {
		s.result(goodStyle, "✓", toolName(t)+" "+took, strings.Join(strings.Fields(result), " "))
		return
	}
	why := "it failed"
	if t.Error != nil {
		if t.Error.Details["reason"] == client.ApprovalRequired {
			s.result(askStyle, "?", toolName(t), "waits for an approval")
			return
		}
		why = string(t.Error.Code) + ": " + t.Error.Message
	}
	s.result(badStyle, "✗", toolName(t)+" "+took, why)
}

// result is one line with a mark in color.
func (s *screen) result(style, mark, head, rest string) {
	body := oneLine(head+" "+rest, s.room()-4)
	s.line(plainStyle, "  "+s.styled(style, mark)+" "+body)
}

func toolName(t *client.ToolCall) string { return oneLine(t.SkillID, 64) }

// compacted is JSON without spaces, or what is no JSON as it is.
func compacted(b json.RawMessage) []byte {
	var out bytes.Buffer
	if json.Compact(&out, b) != nil {
		return b
	}
	return out.Bytes()
}

// answered shows what is still to be shown of a turn that came to an answer.
func (s *screen) answered(a *client.ChatAnswer, took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.takeBack()
	switch {
	case !s.live:
		s.print(cleaned(a.Answer))
	case !strings.HasSuffix(strings.TrimSpace(s.said.String()), strings.TrimSpace(a.Answer)): // a sentence of the host's
		s.print(s.clean.end())
		s.endLine()
		s.print(cleaned(a.Answer))
	default:
		s.print(s.clean.end())
	}
	s.endLine()
	if why, early := early[a.StopReason]; early {
		s.line(askStyle, "  ■ "+why+" ("+a.StopReason+")")
	} else if a.StopReason != client.Completed && a.StopReason != client.ApprovalRequired {
		s.line(askStyle, "  ■ the turn ended before it was completed: "+oneLine(a.StopReason, 40))
	}
	s.line(dimStyle, "  "+oneLine(usageOf(a, took), s.room()-2))
}

// early says why a turn ended before it was completed.
var early = map[string]string{
	"max_iterations": "round limit reached",
	"max_tool_calls": "tool call limit reached",
	"max_tokens":     "token limit reached",
	"max_cost":       "cost limit reached",
	"max_fuel":       "fuel limit reached",
	"timeout":        "time limit reached",
	"invalid_calls":  "the model did not correct its wrong calls",
	"length":         "the model's reply was cut at its length limit",
	"refused":        "the model provider withheld the reply",
}

// usageOf is what a turn took, in words.
func usageOf(a *client.ChatAnswer, took time.Duration) string {
	var parts []string
	switch {
	case a.Provider == "rules": // whatever is counted of them costs nothing
		parts = append(parts, a.Provider)
	case a.Provider+a.Model != "":
		parts = append([]string{strings.TrimSpace(a.Provider + " " + a.Model)}, spent(a.Usage)...)
	default:
		parts = spent(a.Usage)
	}
	if n := len(a.ToolCalls); n > 0 {
		parts = append(parts, countOf(n, "call"))
	}
	return strings.Join(append(parts, fmt.Sprintf("%.1f s", took.Seconds())), ", ")
}

// spent is usage in words; none where nothing was counted.
func spent(u client.Usage) (parts []string) {
	if u.TotalTokens > 0 {
		about := ""
		if u.Estimated {
			about = "about "
		}
		parts = append(parts, fmt.Sprintf("%s%d + %d tokens", about, u.PromptTokens, u.CompletionTokens))
	}
	if u.CostUSD > 0 {
		parts = append(parts, fmt.Sprintf("$%.4f", u.CostUSD))
	}
	return parts
}

func countOf(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return strconv.Itoa(n) + " " + what
}

// failed shows why a turn, or a command, came to nothing.
func (s *screen) failed(err error) {
	s.note(badStyle, "  ✗ %s", oneLine(inWords(err), 0))
}

// inWords is an error in the words for the person who must mend it.
func inWords(err error) string {
	if refused, ok := errors.AsType[*client.Error](err); ok && refused.TraceID != "" && refused.Status >= 500 {
		return refused.Error() + " (trace id " + refused.TraceID + ")"
	}
	return err.Error()
}
