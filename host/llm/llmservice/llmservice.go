// Package llmservice asks a service that chooses models itself, by the slot that one is
// wanted for: POST /api/llm/chat, with the messages of OpenAI's form, and the answer in an
// envelope of "data".
//
// The service does not stream: all text is told at once, when the answer has come. The
// model of a request is not sent.
package llmservice

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"net/http"

	"openskill/host/llm"
	"openskill/host/llm/internal/calls"
	"openskill/host/llm/internal/completions"
	"openskill/host/llm/internal/dialect"
	"openskill/host/llm/internal/transport"
	"openskill/host/tools"
)

// Options of [New].
type Options struct {
	Name    string       // of the provider, in errors; "": llm-service
	BaseURL string       // "": http://localhost:8601
	Key     string       // sent as X-API-Key; "": none is
	HTTP    *http.Client // nil: one of its own
}

// defaultTemperature is what the service is asked for where a request does not say.
const defaultTemperature = 0.3

type provider struct {
	http  *transport.Client
	url   string
	key   string
	tools *dialect.Tools
}

// New makes a provider. It asks nothing yet.
func New(o Options) (llm.Provider, error) {
	if o.Name == "" {
		o.Name = "llm-service"
	}
	base, err := transport.Base(o.BaseURL, "http://localhost:8601")
	if err != nil {
		return nil, err
	}
	if err := transport.Key(o.Key); err != nil {
		return nil, err
	}
	written, err := dialect.New(tools.OpenAI)
	if err != nil {
		return nil, err
	}
	return &provider{
		http: transport.New(transport.Options{Vendor: o.Name, Key: o.Key, HTTP: o.HTTP}),
		url:  base.String() + "/api/llm/chat", key: o.Key, tools: written,
	}, nil
}

// The form of a request.
type (
	request struct {
		Slot        llm.Slot          `json:"slot"`
		Messages    []message         `json:"messages"`
		MaxTokens   int               `json:"max_tokens"`
		Temperature float64           `json:"temperature"`
		Stream      bool              `json:"stream"`
		Format      *format           `json:"response_format,omitempty"`
		Tools       []json.RawMessage `json:"tools,omitempty"`
	}
	format struct {
		Type string `json:"type"`
	}
	message struct {
		Role    string `json:"role"`
		Content string `json:"content"`
		Calls   []call `json:"tool_calls,omitempty"`
		CallID  string `json:"tool_call_id,omitempty"`
	}
	call struct {
		ID       string   `json:"id"`
		Type     string   `json:"type"`
		Function function `json:"function"`
	}
	function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	}
)

// Chat implements [llm.Provider].
func (p *provider) Chat(ctx context.Context, r *llm.Request, text func(string)) (*llm.Reply, error) {
	read := completions.New(p.http, r, text)
	err := p.http.Ask(ctx, func(ctx context.Context) (*http.Response, error) {
		return p.send(ctx, r)
	}, func(a *transport.Answer) error {
		body, err := a.Whole()
		if err != nil {
			return err
		}
		var envelope struct {
			Data  json.RawMessage `json:"data"`
			Error json.RawMessage `json:"error"`
		}
		if err := json.Unmarshal(body, &envelope); err != nil {
			return p.http.Unreadable("it is no JSON object", err)
		}
		switch {
		case len(envelope.Data) > 0 && !bytes.Equal(envelope.Data, []byte("null")):
			return read.Whole(envelope.Data)
		case len(envelope.Error) > 0:
			return read.Whole(body) // which fails with what it says
		}
		return p.http.Unreadable("it has no data", nil)
	})
	if err != nil {
		return nil, err
	}
	return read.Reply()
}

func (p *provider) send(ctx context.Context, r *llm.Request) (*http.Response, error) {
	body, err := p.request(r)
	if err != nil {
		return nil, err
	}
	header := http.Header{}
	if p.key != "" {
		header.Set("X-API-Key", p.key)
	}
	if r.Trace != "" {
		header.Set("X-Trace-Id", string(r.Trace))
	}
	return p.http.Post(ctx, p.url, header, body)
}

func (p *provider) request(r *llm.Request) (*request, error) {
	out := &request{Slot: cmp.Or(r.Slot, llm.Reasoning), MaxTokens: r.MaxTokens, Temperature: defaultTemperature}
	if r.Temperature != nil {
		out.Temperature = *r.Temperature
	}
	if r.JSON {
		out.Format = &format{"json_object"}
	}
	if r.System != "" {
		out.Messages = append(out.Messages, message{Role: "system", Content: r.System})
	}
	for i := range r.Messages {
		m := &r.Messages[i]
		said := message{Role: string(m.Role), Content: m.Text}
		if m.Role == llm.Tool {
			said.CallID = calls.ShortID(m.CallID)
		}
		for _, c := range m.Calls {
			said.Calls = append(said.Calls, call{
				ID: calls.ShortID(c.ID), Type: "function",
				Function: function{calls.Name(c.Name), string(calls.Object(c.Arguments))},
			})
		}
		out.Messages = append(out.Messages, said)
	}
	var err error
	out.Tools, err = p.tools.Write(r.Tools)
	return out, err
}
