// Package anthropic asks models by Anthropic's Messages.
//
// Its rules differ from what [llm.Request] says in these ways:
//
//   - All answers to the calls of one message stand in one user's message. Messages of one
//     role that follow each other are made one, and text without a letter is left out.
//   - A conversation with calls must come with tools. Where a request has none, those that
//     were called are named, and that they may not be called.
//   - [llm.Request.JSON] has no counterpart: that a reply is to be JSON must be said in the
//     system's text.
//   - A temperature above 1 is sent as 1.
package anthropic

import (
	"bytes"
	"context"
	"net/http"
	"strings"
	"time"

	"openskill/host/llm"
	"openskill/host/llm/internal/completions"
	"openskill/host/llm/internal/dialect"
	"openskill/host/llm/internal/transport"
	"openskill/host/tools"
)

// Options of [New].
type Options struct {
	Name    string       // of the provider, in errors; "": anthropic
	BaseURL string       // "": https://api.anthropic.com; a /v1 at its end may be left out
	Key     string       // "": none is sent
	HTTP    *http.Client // nil: one of its own, for as many conversations as there are
}

type provider struct {
	http   *transport.Client
	url    string
	header http.Header
	tools  *dialect.Tools
}

// version is that of the vendor's interface.
const version = "2023-06-01"

// New makes a provider. It asks nothing yet.
func New(o Options) (llm.Provider, error) {
	if o.Name == "" {
		o.Name = "anthropic"
	}
	base, err := transport.Base(o.BaseURL, "https://api.anthropic.com")
	if err != nil {
		return nil, err
	}
	if err := transport.Key(o.Key); err != nil {
		return nil, err
	}
	written, err := dialect.New(tools.Anthropic)
	if err != nil {
		return nil, err
	}
	p := &provider{
		http:   transport.New(transport.Options{Vendor: o.Name, Key: o.Key, HTTP: o.HTTP}),
		url:    strings.TrimSuffix(base.String(), "/v1") + "/v1/messages",
		header: http.Header{},
		tools:  written,
	}
	p.header.Set("Anthropic-Version", version)
	if o.Key != "" {
		p.header.Set("X-Api-Key", o.Key)
	}
	return p, nil
}

// Chat implements [llm.Provider].
func (p *provider) Chat(ctx context.Context, r *llm.Request, text func(string)) (*llm.Reply, error) {
	stream := text != nil
	read := newReader(p.http, r, text)
	err := p.http.Ask(ctx, func(ctx context.Context) (*http.Response, error) {
		body, err := p.request(r, stream)
		if err != nil {
			return nil, err
		}
		return p.http.Post(ctx, p.url, p.header, body)
	}, func(a *transport.Answer) error {
		if a.Streamed(stream) {
			return read.stream(a)
		}
		body, err := a.Whole()
		if err != nil {
			return err
		}
		return read.whole(body)
	})
	if err != nil {
		return nil, err
	}
	return read.reply()
}

// afterwards is how long a stream may go on after the reason why the reply ended.
const afterwards = 3 * time.Second

// stream reads the events of a stream.
func (r *reader) stream(a *transport.Answer) error {
	events := a.Events()
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
			a.Within(afterwards)
		}
	}
	return nil
}

func (r *reader) event(name string, data []byte) error {
	switch {
	case len(data) == 0 || name == "ping":
		return nil
	case name == "error":
		return r.client.Failed(statusOf(data), data)
	}
	var e event
	if err := completions.Decode(data, &e); err != nil {
		return r.client.Unreadable("an event of its stream is no JSON object", err)
	}
	return r.take(&e, data)
}
