// Package openai asks models by OpenAI's Chat Completions: its own, and those of the many
// servers that speak the same words, such as DashScope in its compatible mode, DeepSeek,
// and servers on one's own machine.
//
// What servers do differently:
//
//   - max_tokens is what all know, but OpenAI's models that think want
//     max_completion_tokens, and no temperature. They are told so at OpenAI's own address.
//   - Streams are asked for the usage by stream_options. A server that refuses a request
//     because of it is asked again without, and never with it after that.
//   - Names, ids and arguments of calls are sent back in a form that every server takes,
//     also where the model, or another vendor's, wrote them in none.
package openai

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"

	"openskill/host/llm"
	"openskill/host/llm/internal/completions"
	"openskill/host/llm/internal/dialect"
	"openskill/host/llm/internal/transport"
	"openskill/host/tools"
)

// Options of [New].
type Options struct {
	Name    string       // of the provider, in errors; "": openai
	BaseURL string       // "": https://api.openai.com/v1
	Key     string       // "": none is sent
	HTTP    *http.Client // nil: one of its own, for as many conversations as there are
}

const official = "api.openai.com"

type provider struct {
	http   *transport.Client
	url    string
	header http.Header
	tools  *dialect.Tools
	openAI bool        // the vendor itself
	plain  atomic.Bool // the server takes no stream_options
}

// New makes a provider. It asks nothing yet.
func New(o Options) (llm.Provider, error) {
	if o.Name == "" {
		o.Name = "openai"
	}
	base, err := transport.Base(o.BaseURL, "https://"+official+"/v1")
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
	p := &provider{
		http:   transport.New(transport.Options{Vendor: o.Name, Key: o.Key, HTTP: o.HTTP}),
		url:    base.String() + "/chat/completions",
		header: http.Header{},
		tools:  written,
		openAI: strings.EqualFold(base.Hostname(), official),
	}
	if o.Key != "" {
		p.header.Set("Authorization", "Bearer "+o.Key)
	}
	return p, nil
}

// Chat implements [llm.Provider].
func (p *provider) Chat(ctx context.Context, r *llm.Request, text func(string)) (*llm.Reply, error) {
	stream := text != nil
	read := completions.New(p.http, r, text)
	err := p.http.Ask(ctx, func(ctx context.Context) (*http.Response, error) {
		return p.send(ctx, r, stream)
	}, func(a *transport.Answer) error {
		if a.Streamed(stream) {
			return read.Stream(a)
		}
		body, err := a.Whole()
		if err != nil {
			return err
		}
		return read.Whole(body)
	})
	if err != nil {
		return nil, err
	}
	return read.Reply()
}

func (p *provider) send(ctx context.Context, r *llm.Request, stream bool) (*http.Response, error) {
	body, err := p.request(r)
	if err != nil {
		return nil, err
	}
	if body.Stream = stream; !stream || p.plain.Load() {
		return p.http.Post(ctx, p.url, p.header, body)
	}
	body.Options = &streamOptions{Usage: true}
	res, err := p.http.Post(ctx, p.url, p.header, body)
	if transport.Names(err, "stream_options", "include_usage") {
		p.plain.Store(true)
		body.Options = nil
		return p.http.Post(ctx, p.url, p.header, body)
	}
	return res, err
}
