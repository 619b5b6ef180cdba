package llm

import (
	"strings"
	"testing"
)

// Open models write what they think before what they answer, on servers that do not separate
// the two; it was told as the answer. However the text is cut into parts, the same is left.
func TestThoughtsAreNotTheAnswer(t *testing.T) {
	for text, want := range map[string]string{
		"<think>two and two</think>\n\n4":    "4",
		" \n<think>\nso <b>\n</think>\nfour": "four",
		"<think></think>4":                   "4",
		"<think></think>4\n\nand 5 ":         "4\n\nand 5 ",
		"4 <think>is what</think>":           "4 <think>is what</think>",
		"<thinker> says":                     "<thinker> says",
		"<think>a</think><think>b</think>":   "<think>b</think>",
		"<think>never ends":                  "",
		"<think>a </thin":                    "",
		"<thi":                               "<thi",
		" \n":                                " \n",
		"  indented":                         "  indented",
		"":                                   "",
	} {
		for size := 1; size <= len(text)+1; size++ {
			heard := ""
			r := newCompletions(newClient(Vendor{Name: "v"}), &Request{}, func(part string) { heard += part })
			r.chosen = true
			for rest := text; rest != ""; {
				n := min(size, len(rest))
				r.content(rest[:n])
				rest = rest[n:]
			}
			reply, err := r.reply()
			if err != nil || reply.Text != want || heard != want {
				t.Errorf("%q in parts of %d: %q, heard %q, %v; want %q", text, size, reply.Text, heard, err, want)
			}
		}
	}
}

// A long thought costs no memory, whatever is in it.
func TestThoughtsAreNotKept(t *testing.T) {
	var th thought
	for range 1000 {
		if got := th.add("<think>" + strings.Repeat("</thin", 1000)); got != "" || len(th.held) >= len(thoughtEnds) {
			t.Fatalf("%q, %d bytes are held", got, len(th.held))
		}
	}
}
