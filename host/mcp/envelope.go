package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"openskill/host/agent/tools"
	"openskill/sdk/skill"
)

// glance is what has to be known of a message before the SDK reads it. The SDK answers some of
// what is wrong in plain text, and some with another id.
type glance struct {
	ID     json.RawMessage // nil: it has none, or none that an answer could have
	Method string          // "": it is no request, or none of the protocol
	Params json.RawMessage
	wrong  *jsonrpc.Error // what keeps it from being a message
	batch  []glance

	tool     string // of a call
	progress bool   // the caller wants to be told of it
}

// mostBatch is how many messages a batch may have.
const mostBatch = 100

var errNotAMessage = &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "not a JSON-RPC 2.0 message: send jsonrpc, method, and an id for requests"}

// peek reads a message, or a batch of them.
func peek(body []byte) glance {
	body = bytes.TrimSpace(body)
	switch {
	case !json.Valid(body):
		return glance{ID: idOf(body), wrong: &jsonrpc.Error{Code: jsonrpc.CodeParseError, Message: "invalid or too deeply nested JSON; on stdin, send one message per line"}}
	case body[0] == '{':
		return peekOne(body)
	case body[0] != '[':
		return glance{wrong: errNotAMessage}
	}
	m := glance{wrong: &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: fmt.Sprintf("batches are not supported here; send one message at a time (HTTP accepts up to %d in revisions before 2025-06-18)", mostBatch)}}
	dec := json.NewDecoder(bytes.NewReader(body))
	_, _ = dec.Token() // the bracket; it is valid
	for dec.More() && len(m.batch) <= mostBatch {
		var one json.RawMessage
		_ = dec.Decode(&one) // it is valid
		m.batch = append(m.batch, peekOne(one))
	}
	return m
}

// peekOne reads one message, by the names of its fields as they are written.
func peekOne(body []byte) (m glance) {
	var f map[string]json.RawMessage
	if json.Unmarshal(body, &f) != nil {
		return glance{wrong: errNotAMessage}
	}
	var method *string
	id, given := f["id"]
	m.ID, m.Params = idFor(id), f["params"]
	_, result := f["result"]
	_, failed := f["error"]
	written, request := f["method"]
	switch {
	case string(f["jsonrpc"]) != `"2.0"`, request && (json.Unmarshal(written, &method) != nil || method == nil), !request && !result && !failed:
		m.wrong = errNotAMessage
	case given && (m.ID == nil || !exact(m.ID)):
		m.wrong = &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "invalid id: use a string or an integer below 2^53"}
	case request:
		m.Method = *method
		m.wrong = m.unknown()
		var p struct {
			Name string `json:"name"`
			Meta struct {
				Token any `json:"progressToken"`
			} `json:"_meta"`
		}
		if json.Unmarshal(m.Params, &p) == nil { // else the SDK says what is wrong
			m.tool, m.progress = p.Name, p.Meta.Token != nil
		}
	}
	return m
}

// unknown says whether the method is served, in the form that it has.
func (m *glance) unknown() *jsonrpc.Error {
	name := skill.CleanText(m.Method, 80)
	_, isCall := methods[m.Method]
	switch isNote := notifications[m.Method]; {
	case isCall && m.ID == nil:
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: fmt.Sprintf("%s is a request and needs an id", name)}
	case isNote && m.ID != nil:
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: fmt.Sprintf("%s is a notification and must not have an id", name)}
	case !isCall && !isNote:
		return &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: fmt.Sprintf("unknown method %q", name)}
	}
	return nil
}

// idFor is an id as an answer has it; nil for what can be none.
func idFor(id json.RawMessage) json.RawMessage {
	if len(id) > 0 && (id[0] == '"' || id[0] == '-' || id[0] >= '0' && id[0] <= '9') {
		return id
	}
	return nil
}

// exact reports whether the SDK, which reads numbers as floats, gives an id back as it came.
func exact(id json.RawMessage) bool {
	if id[0] == '"' {
		return true
	}
	n, err := strconv.ParseFloat(string(id), 64)
	return err == nil && n == math.Trunc(n) && math.Abs(n) < 1<<53
}

// refused is what a message of a revision is refused with before the SDK sees it, and the status
// over HTTP. A request whose method or params are wrong is answered as requests are: clients of
// the revisions with sessions take another status for the end of the connection.
func (m *glance) refused(revision string) (status int, wrong *jsonrpc.Error) {
	if m.batch != nil && revision < "2025-06-18" && len(m.batch) <= mostBatch { // the revisions before take them
		for i := range m.batch {
			if _, wrong := m.batch[i].refused(stateless); wrong != nil {
				return http.StatusBadRequest, wrong
			}
		}
		return 0, nil
	}
	if wrong = m.wrong; wrong == nil {
		wrong = checkParams(m.Method, m.Params)
	}
	switch {
	case wrong == nil:
		return 0, nil
	case m.ID == nil || m.Method == "" && wrong.Code != jsonrpc.CodeMethodNotFound || wrong.Code == jsonrpc.CodeInvalidRequest:
		return http.StatusBadRequest, wrong
	case revision < stateless:
		return http.StatusOK, wrong
	case wrong.Code == jsonrpc.CodeMethodNotFound:
		return http.StatusNotFound, wrong
	}
	return http.StatusBadRequest, wrong
}

// requests is how many requests a message counts for before it is looked at. A call of a skill
// has a rate of its own, and counts where it is refused before it runs.
func (m *glance) requests() (n int) {
	for i := range m.batch {
		n += m.batch[i].requests()
	}
	if m.batch != nil {
		return n
	}
	if _, err := tools.IDOf(m.tool); m.Method != "tools/call" || readsFor(m.tool) || err != nil {
		return 1
	}
	return 0
}

// wantsStream reports whether there can be notifications before the answer.
func (m *glance) wantsStream() bool { return m.Method == "subscriptions/listen" || m.progress }

// errorMessage is an error as it is sent; without an id, with null.
func errorMessage(id json.RawMessage, wrong *jsonrpc.Error) []byte {
	b, _ := json.Marshal(struct { // plain data
		JSONRPC string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Error   *jsonrpc.Error  `json:"error"`
	}{"2.0", id, wrong})
	return b
}
