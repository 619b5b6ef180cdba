package llm

import "strings"

const (
	thoughtBegins = "<think>"
	thoughtEnds   = "</think>"
	blank         = " \t\r\n"
)

// A thought takes out what a model writes before its answer between <think> and </think>, as
// open models do on servers that do not separate the two. Only the beginning of a text is one:
// elsewhere the tag belongs to the answer. The zero value is ready to use.
type thought struct {
	step int
	held string // text of which it is not known yet what it is
}

// The steps of a thought.
const (
	beginning = iota // nothing has come but a part of <think>
	thinking         // <think> has come
	pausing          // </think> has come, and nothing but blanks after it
	answering        // the rest is the answer
)

// add takes a part of the text and returns the part of the answer in it.
func (t *thought) add(part string) string {
	if t.step == answering {
		return part
	}
	text := t.held + part
	if begun := strings.TrimLeft(text, blank); t.step == beginning {
		switch {
		case strings.HasPrefix(begun, thoughtBegins):
			t.step, text = thinking, begun[len(thoughtBegins):]
		case strings.HasPrefix(thoughtBegins, begun):
			t.held = text
			return ""
		default:
			t.step = answering
			return text
		}
	}
	if t.step == thinking {
		_, after, ended := strings.Cut(text, thoughtEnds)
		if !ended {
			t.held = text[max(0, len(text)-len(thoughtEnds)+1):] // its end may be half of the tag
			return ""
		}
		t.step, text = pausing, after
	}
	t.held = ""
	if text = strings.TrimLeft(text, blank); text != "" {
		t.step = answering
	}
	return text
}

// end returns what is held at the end of a text: it began like a thought, and is none.
func (t *thought) end() string {
	if t.step != beginning {
		return ""
	}
	t.step = answering
	return t.held
}
