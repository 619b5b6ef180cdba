package llm

import (
	"bytes"
	"context"
	"net/http"
	"strings"

	"openskill/host/agent/tools"
)

type anthropic struct {
	http   *client
	url    string
	header http.Header
}

// anthropicVersion is that of the vendor's interface.
const anthropicVersion = "2023-06-01"

// Anthropic makes a provider that asks models by Anthropic's Messages. A /v1 at the end of
// the base URL may be left out. It asks nothing yet. Its rules differ from what
// [llm.Request] says in these ways:
//
//   - All answers to the calls of one message stand in one user's message. Messages of one
//     role that follow each other are made one, and text without a letter is left out.
//   - A conversation with calls must come with tools. Where a request has none, those that
//     were called are named, and that they may not be called.
//   - [llm.Request.JSON] has no counterpart: that a reply is to be JSON must be said in the
//     system's text.
//   - A temperature above 1 is sent as 1.
func Anthropic(o Vendor) (Provider, error) {
	c, base, err := connect(o, "anthropic", "https://api.anthropic.com", tools.Anthropic)
	if err != nil {
		return nil, err
	}
	// The path has the version below.
	base.Path, base.RawPath = strings.TrimSuffix(base.Path, "/v1"), strings.TrimSuffix(base.RawPath, "/v1")
	p := &anthropic{
		http:   c,
		url:    base.String() + "/v1/messages",
		header: http.Header{},
	}
	p.header.Set("Anthropic-Version", anthropicVersion)
	if o.Key != "" {
		p.header.Set("X-Api-Key", o.Key)
	}
	return p, nil
}

// Chat implements [llm.Provider].
func (p *anthropic) Chat(ctx context.Context, r *Request, text func(string)) (*Reply, error) {
	stream := text != nil
	read := newAnthropicReader(p.http, r, text)
	err := p.http.ask(ctx, func(ctx context.Context) (*http.Response, error) {
		body, err := p.request(r, stream)
		if err != nil {
			return nil, err
		}
		return p.http.post(ctx, p.url, p.header, body)
	}, func(a *answer) error { return a.read(read, stream) })
	if err != nil {
		return nil, err
	}
	return read.reply()
}

// stream reads the events of a stream.
func (r *anthropicReader) stream(a *answer) error {
	events := a.events()
	for !r.done {
		e, err := events.Next()
		if err != nil && r.stop != "" { // all has come that matters
			return nil
		}
		if err != nil {
			return err
		}
		if err := r.event(e.Name, bytes.TrimSpace(e.Data)); err != nil {
			return err
		}
		if r.stop != "" {
			a.within(afterwards)
		}
	}
	return nil
}

func (r *anthropicReader) event(name string, data []byte) error {
	switch {
	case len(data) == 0 || name == "ping":
		return nil
	case name == "error":
		return r.client.failed(anthropicStatus(data), data)
	}
	var e anthropicEvent
	if err := decode(data, &e); err != nil {
		return r.client.unreadable("an event of its stream is no JSON object", err)
	}
	return r.take(&e, data)
}
