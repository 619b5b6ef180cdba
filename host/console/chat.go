package console

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/url"

	"openskill/sdk/client"
	"openskill/sdk/skill"
)

// conversationData is one conversation.
type conversationData struct {
	client.Conversation

	Decide bool `json:"-"`
}

func (v *view) chat() error {
	if err := v.allowed("chat"); err != nil {
		return err
	}
	var page list[skill.ConversationSummary]
	if err := v.ask("GET", "/agent/conversations", values("limit", "50", "cursor", v.r.URL.Query().Get("cursor")), nil, &page); err != nil {
		return err
	}
	return v.show(http.StatusOK, chatPage(v.frame("chat", "Chat"), page.Data, page.next()))
}

func (v *view) conversation() error {
	if err := v.allowed("chat"); err != nil {
		return err
	}
	d := &conversationData{Decide: v.may("approvals")}
	if err := v.ask("GET", pathOf("agent", "conversations", v.r.PathValue("id")), nil, nil, d); err != nil {
		return err
	}
	return v.show(http.StatusOK, conversationPage(v.frame("chat", "Chat"), d))
}

// message is what a form says to the agent.
func (v *view) message(streamed bool) map[string]any {
	f := v.r.PostForm
	body := map[string]any{"message": f.Get("message"), "stream": streamed}
	if id := f.Get("conversation_id"); id != "" {
		body["conversation_id"] = id
	}
	return body
}

// say has a turn taken, and shows it when it is over: the way without a script.
func (v *view) say() error {
	if err := v.allowed("chat"); err != nil {
		return err
	}
	var a struct {
		Conversation string `json:"conversation_id"`
		StopReason   string `json:"stop_reason"`
	}
	if err := v.ask("POST", "/agent/chat", nil, v.message(false), &a); err != nil {
		v.leave(false, messageOf(err))
		if id := v.r.PostForm.Get("conversation_id"); id != "" {
			http.Redirect(v.w, v.r, string(link("chat", id)), http.StatusSeeOther)
			return nil
		}
		return v.redirect("/chat")
	}
	if a.StopReason != "completed" {
		v.leave(false, "The turn ended before an answer: "+a.StopReason+".")
	}
	http.Redirect(v.w, v.r, string(link("chat", a.Conversation)), http.StatusSeeOther)
	return nil
}

// stream hands the events of a turn on, their text made visible.
func (v *view) stream() error {
	if err := v.allowed("chat"); err != nil {
		return v.problem(err)
	}
	resp, err := v.call("POST", "/agent/chat", nil, v.message(true))
	if err != nil {
		return v.problem(err)
	}
	if resp.StatusCode != http.StatusOK {
		return v.problem(v.read(resp, nil))
	}
	defer resp.Body.Close()
	return handOnEvents(v.w, resp.Body)
}

// problem answers a script.
func (v *view) problem(err error) error {
	b, _ := json.Marshal(map[string]string{"message": visible(messageOf(err), 600)}) // a text
	v.w.Header().Set("Content-Type", "application/json")
	v.w.WriteHeader(http.StatusUnprocessableEntity)
	_, _ = v.w.Write(b) // the client has left
	return nil
}

// mostEvent is the longest line of a stream, in bytes.
const mostEvent = 8 << 20

func handOnEvents(w http.ResponseWriter, in io.Reader) error {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 0, 4<<10), mostEvent)
	for lines.Scan() {
		line := lines.Bytes()
		if data, ok := bytes.CutPrefix(line, []byte("data: ")); ok {
			line = append([]byte("data: "), visibleJSON(data)...)
		}
		if _, err := w.Write(append(line, '\n')); err != nil {
			return nil
		}
		if f, ok := w.(http.Flusher); ok && len(line) == 0 {
			f.Flush()
		}
	}
	return nil // an end that is none is seen by its missing event
}

// visibleJSON is a JSON value whose texts are visible.
func visibleJSON(raw []byte) []byte {
	var value any
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if dec.Decode(&value) != nil {
		return []byte("null")
	}
	b, err := json.Marshal(seen(value))
	if err != nil {
		return []byte("null")
	}
	return b
}

func seen(value any) any {
	switch v := value.(type) {
	case string:
		return visible(v, mostShown)
	case []any:
		for i := range v {
			v[i] = seen(v[i])
		}
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[visible(k, 200)] = seen(e)
		}
		return out
	}
	return value
}

// approveCall decides about the call that a conversation waits for, and goes on with it.
func (v *view) approveCall() error {
	id := v.r.PathValue("id")
	f := v.r.PostForm
	body := map[string]any{"approve": f.Get("approve") == "yes", "approval_id": f.Get("approval_id"), "stream": false}
	if err := v.ask("POST", "/agent/conversations/"+url.PathEscape(id)+":approve", nil, body, nil); err != nil {
		v.leave(false, messageOf(err))
	}
	http.Redirect(v.w, v.r, string(link("chat", id)), http.StatusSeeOther)
	return nil
}

func (v *view) forget() error {
	if err := v.ask("DELETE", pathOf("agent", "conversations", v.r.PathValue("id")), nil, nil, nil); err != nil {
		v.leave(false, messageOf(err))
	} else {
		v.leave(true, "Conversation deleted. The records of its calls remain.")
	}
	return v.redirect("/chat")
}
