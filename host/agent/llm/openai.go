package llm

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"

	"openskill/host/agent/tools"
)

const officialOpenAI = "api.openai.com"

type openAI struct {
	http   *client
	url    string
	header http.Header
	thinks bool        // the vendor itself, some of whose models think
	plain  atomic.Bool // the server takes no stream_options
}

// OpenAI makes a provider that asks models by OpenAI's Chat Completions: its own, and those
// of the many servers that speak the same words, such as DashScope in its compatible mode,
// DeepSeek, and servers on one's own machine. It asks nothing yet. What servers do
// differently:
//
//   - max_tokens is what all know, but OpenAI's models that think want
//     max_completion_tokens, and no temperature. They are told so at OpenAI's own address.
//   - Streams are asked for the usage by stream_options. A server that refuses a request
//     because of it is asked again without, and never with it after that.
//   - Names, ids and arguments of calls are sent back in a form that every server takes,
//     also where the model, or another vendor's, wrote them in none.
func OpenAI(o Vendor) (Provider, error) {
	c, base, err := connect(o, "openai", "https://"+officialOpenAI+"/v1", tools.OpenAI)
	if err != nil {
		return nil, err
	}
	p := &openAI{
		http:   c,
		url:    base.String() + "/chat/completions",
		header: http.Header{},
		thinks: strings.EqualFold(base.Hostname(), officialOpenAI),
	}
	if o.Key != "" {
		p.header.Set("Authorization", "Bearer "+o.Key)
	}
	return p, nil
}

// Chat implements [llm.Provider].
func (p *openAI) Chat(ctx context.Context, r *Request, text func(string)) (*Reply, error) {
	stream := text != nil
	read := newCompletions(p.http, r, text)
	err := p.http.ask(ctx, func(ctx context.Context) (*http.Response, error) {
		return p.send(ctx, r, stream)
	}, func(a *answer) error { return a.read(read, stream) })
	if err != nil {
		return nil, err
	}
	return read.reply()
}

func (p *openAI) send(ctx context.Context, r *Request, stream bool) (*http.Response, error) {
	body, err := p.request(r)
	if err != nil {
		return nil, err
	}
	if body.Stream = stream; !stream || p.plain.Load() {
		return p.http.post(ctx, p.url, p.header, body)
	}
	body.Options = &streamOptions{Usage: true}
	res, err := p.http.post(ctx, p.url, p.header, body)
	if names(err, "stream_options", "include_usage") {
		p.plain.Store(true)
		body.Options = nil
		return p.http.post(ctx, p.url, p.header, body)
	}
	return res, err
}
