package api

import (
	"bytes"
	"encoding/json"
	"strconv"
	"sync"
	"time"

	"openskill/host/agent"
	"openskill/sdk/skill"
)

// eventsType is the media type of server-sent events, as the HTML standard defines them.
const eventsType = "text/event-stream"

// events writes what happens in a turn of the agent as server-sent events. Each is a
// number, its kind and one line of JSON, in which no end of a line can be: whatever a
// model or a skill says, it cannot end its event and begin another.
//
// Nothing is kept: an event is written when it is heard, and who tells of it waits until
// the connection has taken it. A client that reads slowly slows its own turn down. It has
// the time of a whole answer for each event and no more, or it could hold on to a turn
// whose own time is long over by reading a byte now and then.
type events struct {
	to    *answer
	trace skill.TraceID
	alive time.Duration // how long nothing may be said
	taken time.Duration // how long a client may take to read an event

	mu     sync.Mutex
	number int
	line   bytes.Buffer
	quiet  *time.Timer // calls beat; nil before the first event
	over   bool        // nothing is written any more
	broken error       // the event that was no JSON, which is why
}

func (s *Server) newEvents(to *answer, trace skill.TraceID) *events {
	return &events{to: to, trace: trace, alive: s.opt.KeepAlive, taken: s.opt.WriteTimeout}
}

// hear writes an event. How the turn ends is said by [events.end] alone, so that a stream
// has one end, whatever was heard.
func (e *events) hear(what agent.Event) {
	var data any
	switch what.Kind { //nolint:exhaustive // see above
	case agent.EventStart:
		data = chatStart{ConversationID: what.Conversation, TraceID: skill.TraceID(what.Trace)}
	case agent.EventText:
		data = chatText{Text: what.Text}
	case agent.EventToolGo:
		if t := what.Tool; t != nil {
			data = chatToolStart{ID: t.ID, SkillID: t.SkillID, Arguments: t.Arguments}
		}
	case agent.EventToolEnd:
		if what.Tool != nil {
			data = toolEnd{what.Tool, what.Result}
		}
	case agent.EventApproval:
		if what.Approval != nil {
			data = what.Approval
		}
	case agent.EventUsage:
		if what.Usage != nil {
			data = what.Usage
		}
	}
	if data == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.write(string(what.Kind), data)
}

// toolEnd is a call that has ended, with the beginning of what it gave.
type toolEnd struct {
	*agent.ToolCall
	Result string `json:"result,omitempty"`
}

// end says how the turn ended. A turn that failed before anything was heard of it has no
// stream: end then says false, and nothing else.
func (e *events) end(a *agent.Answer, err error) (told bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	begun := e.number > 0
	if err == nil {
		e.write(string(agent.EventDone), a)
	} else if begun {
		e.write(string(agent.EventError), e.problem(err))
	}
	e.over = true
	if e.quiet != nil {
		e.quiet.Stop()
	}
	return begun || err == nil
}

// problem is an error as callers read it.
func (e *events) problem(err error) skill.ResultError {
	out := skill.Failure("", e.trace, skill.Meta{}, err).Error
	out.Message = cleanMessage(out.Message)
	return *out
}

// write sends one event; the first one begins the answer. One that is no JSON, which
// would be a mistake of this host, ends the stream with an error.
func (e *events) write(kind string, data any) {
	if e.over {
		return
	}
	if err := e.encode(kind, data); err != nil {
		e.broken = err
		_ = e.encode(string(agent.EventError), e.problem(err)) // plain strings
		defer func() { e.over = true }()
	}
	if e.quiet == nil {
		e.to.Header().Set("Content-Type", eventsType)
		e.to.Header().Set("X-Accel-Buffering", "no") // a proxy would wait for more
		e.quiet = time.AfterFunc(e.alive, e.beat)
	}
	e.send(e.line.Bytes())
	if e.line.Cap() > 64<<10 { // one huge event must not stay in memory for all of the turn
		e.line = bytes.Buffer{}
	}
}

func (e *events) encode(kind string, data any) error {
	e.line.Reset()
	e.line.WriteString("id: " + strconv.Itoa(e.number+1) + "\nevent: " + kind + "\ndata: ")
	enc := json.NewEncoder(&e.line)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(data); err != nil { // ends the line too
		return err
	}
	e.line.WriteByte('\n')
	e.number++
	return nil
}

// beat says that the stream is alive, where nothing else was said for a while: proxies
// and clients give connections up that are silent.
func (e *events) beat() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.over {
		e.send([]byte(":\n\n"))
	}
}

// send hands bytes to the connection. Where it takes no more the client has left, which
// ends the turn's context; nothing is written from then on.
func (e *events) send(b []byte) {
	late := time.AfterFunc(e.taken, e.to.end)
	_, err := e.to.Write(b)
	late.Stop()
	if err != nil {
		e.over = true
		e.to.end() // at once, so that who tells of the turn does not go on for nobody
		return
	}
	e.to.Flush()
	e.quiet.Reset(e.alive)
}

// chatStart is the first event of a turn of the agent.
type chatStart struct {
	ConversationID string        `json:"conversation_id"`
	TraceID        skill.TraceID `json:"trace_id"`
}

// chatText is the next part of what the model says.
type chatText struct {
	Text string `json:"text"`
}

// chatToolStart is a call that the model makes.
type chatToolStart struct {
	Arguments json.RawMessage `json:"arguments"`
	ID        string          `json:"id"`
	SkillID   string          `json:"skill_id"`
}
