package llm

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"net/http"

	"openskill/host/agent/tools"
)

// defaultTemperature is what the service is asked for where a request does not say.
const defaultTemperature = 0.3

type service struct {
	http *client
	url  string
	key  string
}

// Service makes a provider that asks a service which chooses models itself, by the slot that
// one is wanted for: POST /api/llm/chat, with the messages of OpenAI's form, and the answer
// in an envelope of "data". The key is sent as X-API-Key. It asks nothing yet.
//
// The service does not stream: all text is told at once, when the answer has come. The
// model of a request is not sent.
func Service(o Vendor) (Provider, error) {
	c, base, err := connect(o, "llm-service", "http://localhost:8601", tools.OpenAI)
	if err != nil {
		return nil, err
	}
	return &service{
		http: c,
		url:  base.String() + "/api/llm/chat",
		key:  o.Key,
	}, nil
}

// serviceRequest is the form of a request.
type serviceRequest struct {
	Slot        Slot              `json:"slot"`
	Messages    []openAIMessage   `json:"messages"`
	MaxTokens   int               `json:"max_tokens"`
	Temperature float64           `json:"temperature"`
	Stream      bool              `json:"stream"`
	Format      *openAIFormat     `json:"response_format,omitempty"`
	Tools       []json.RawMessage `json:"tools,omitempty"`
}

// Chat implements [llm.Provider].
func (p *service) Chat(ctx context.Context, r *Request, text func(string)) (*Reply, error) {
	read := newCompletions(p.http, r, text)
	err := p.http.ask(ctx, func(ctx context.Context) (*http.Response, error) {
		return p.send(ctx, r)
	}, func(a *answer) error {
		body, err := a.whole()
		if err != nil {
			return err
		}
		var envelope struct {
			Data  json.RawMessage `json:"data"`
			Error json.RawMessage `json:"error"`
		}
		if err := json.Unmarshal(body, &envelope); err != nil {
			return p.http.unreadable("it is no JSON object", err)
		}
		switch {
		case len(envelope.Data) > 0 && !bytes.Equal(envelope.Data, []byte("null")):
			return read.whole(envelope.Data)
		case len(envelope.Error) > 0:
			return read.whole(body) // which fails with what it says
		}
		return p.http.unreadable("it has no data", nil)
	})
	if err != nil {
		return nil, err
	}
	return read.reply()
}

func (p *service) send(ctx context.Context, r *Request) (*http.Response, error) {
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
	return p.http.post(ctx, p.url, header, body)
}

func (p *service) request(r *Request) (*serviceRequest, error) {
	out := &serviceRequest{
		Slot: cmp.Or(r.Slot, Reasoning), Messages: openAIMessages(r), MaxTokens: r.MaxTokens, Temperature: defaultTemperature,
	}
	for i := range out.Messages { // each has content, which may be empty
		if out.Messages[i].Content == nil {
			out.Messages[i].Content = new(string)
		}
	}
	if r.Temperature != nil {
		out.Temperature = *r.Temperature
	}
	if r.JSON {
		out.Format = &openAIFormat{"json_object"}
	}
	var err error
	out.Tools, err = p.http.tools.write(r.Tools)
	return out, err
}
