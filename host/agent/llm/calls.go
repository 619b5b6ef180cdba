package llm

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"strings"
)

// mostCalls is how many calls one answer may ask for. How many of them are done is for the
// agent's budget to say.
const mostCalls = 16_384

// errManyCalls is the error of an answer with more calls than [mostCalls].
var errManyCalls = errors.New("it asks for too many calls")

// errNameless is the error of a call that does not say of what.
var errNameless = errors.New("it asks for a call without the name of a tool")

// callPart is a part of a call, as a stream brings them.
type callPart struct {
	Index   int
	Indexed bool // Index was given
	ID      string
	Name    string
	// Arguments is the next part of the text that the model writes.
	Arguments string
}

// callBuilder puts calls together. The zero value is no callBuilder; see [newCalls].
type callBuilder struct {
	taken   map[string]bool // the ids of the conversation
	calls   []*builtCall
	byIndex map[int]*builtCall
	byID    map[string]*builtCall
}

type builtCall struct {
	id, name  string
	arguments strings.Builder
}

// newCalls begins with the calls of an answer to r, whose ids are taken.
func newCalls(r *Request) *callBuilder {
	b := &callBuilder{taken: map[string]bool{}}
	for i := range r.Messages {
		for _, c := range r.Messages[i].Calls {
			b.taken[c.ID] = true
		}
	}
	return b
}

// whole adds a call that came in one piece.
func (b *callBuilder) whole(id, name, arguments string) error {
	c, err := b.open(id)
	if err == nil {
		c.name = name
		c.arguments.WriteString(arguments)
	}
	return err
}

// add adds a part of a call.
func (b *callBuilder) add(p callPart) error {
	c, err := b.find(p)
	if err != nil || c == nil {
		return err
	}
	switch {
	case c.name == p.Name: // some servers repeat it
	case c.name == "" || c.arguments.Len() == 0:
		c.name += p.Name
	}
	c.arguments.WriteString(p.Arguments)
	return nil
}

// find finds the call that a part belongs to, or begins one. Parts of one call have its
// index, by the rules. There are servers that give every call the index 0, and tell calls
// apart by ids; some that give no index; and some that give each part an id of its own,
// and only the first one a name.
func (b *callBuilder) find(p callPart) (c *builtCall, err error) {
	switch {
	case p.Indexed:
		c = b.byIndex[p.Index]
		if c != nil && (p.ID == "" || p.ID == c.id || c.id == "" || p.Name == "") {
			if c.id == "" {
				c.id = p.ID
			}
			return c, nil
		}
	case p.ID != "":
		if c = b.byID[p.ID]; c != nil {
			return c, nil
		}
	case p.Name == "":
		if len(b.calls) == 0 {
			return nil, nil // an empty part, of nothing
		}
		return b.calls[len(b.calls)-1], nil
	}
	if c, err = b.open(p.ID); err != nil {
		return nil, err
	}
	if p.Indexed {
		if b.byIndex == nil {
			b.byIndex = map[int]*builtCall{}
		}
		b.byIndex[p.Index] = c
	}
	if p.ID != "" {
		if b.byID == nil {
			b.byID = map[string]*builtCall{}
		}
		b.byID[p.ID] = c
	}
	return c, nil
}

func (b *callBuilder) open(id string) (*builtCall, error) {
	if len(b.calls) >= mostCalls {
		return nil, errManyCalls
	}
	c := &builtCall{id: id}
	b.calls = append(b.calls, c)
	return c, nil
}

// list gives what there is, with ids that are unique in the conversation.
func (b *callBuilder) list() ([]Call, error) {
	var out []Call
	for _, c := range b.calls {
		arguments := c.arguments.String()
		if c.name == "" {
			if arguments == "" {
				continue
			}
			return nil, errNameless
		}
		id := c.id
		if b.taken[id] || !printable(id, mostID) {
			id = "call_" + rand.Text()
		}
		b.taken[id] = true
		out = append(out, Call{ID: id, Name: c.name, Arguments: arguments})
	}
	return out, nil
}

const mostID = 128

func printable(id string, most int) bool {
	return id != "" && len(id) <= most && !strings.ContainsFunc(id, func(r rune) bool { return r <= ' ' || r > '~' })
}

// shortID is an id as OpenAI takes it back: at most 40 bytes. The same id gives the same,
// so that a call and its answer still belong together.
func shortID(id string) string {
	if printable(id, 40) {
		return id
	}
	return renamed(id)
}

// plainID is an id as Anthropic takes it back, letters, digits, _ and -, likewise.
func plainID(id string) string {
	if len(id) <= 64 && plain(id) == id {
		return id
	}
	return renamed(id)
}

func renamed(id string) string {
	sum := sha256.Sum256([]byte(id))
	return "call_" + hex.EncodeToString(sum[:12])
}

// plainName is the name of a tool as every vendor takes it back: a model may have called one
// that there cannot be, and one such name would have the whole conversation refused.
func plainName(name string) string { return plain(name[:min(len(name), 64)]) }

func plain(s string) string {
	if s == "" {
		return "_"
	}
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, s)
}

// object is a call's arguments as vendors take them back: a JSON object. Text that is none
// stands in one, for the model to see what it wrote.
func object(arguments string) json.RawMessage {
	text := strings.TrimSpace(strings.ToValidUTF8(arguments, "\ufffd"))
	if text == "" {
		return json.RawMessage("{}")
	}
	if text[0] == '{' && json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(map[string]string{"not_json": text}); err != nil { // a map of strings has no way to fail
		return json.RawMessage("{}")
	}
	return bytes.TrimSpace(b.Bytes())
}

// calledNames are the tools that a conversation has called, each once, as [plainName] gives them.
func calledNames(messages []Message) (names []string) {
	for i := range messages {
		for _, c := range messages[i].Calls {
			if name := plainName(c.Name); !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}
