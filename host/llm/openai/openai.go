// Package openai asks models by OpenAI's Chat Completions: its own, and those of the many
// servers that speak the same words, such as DashScope in its compatible mode, DeepSeek,
// and servers on one's own machine.
//
// The vendor's module writes requests and splits streams; answers are read by a package
// of ours, which the servers' accents do not disturb. What servers do differently:
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
	"net/url"
	"strings"
	"sync/atomic"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/ssestream"

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
	sdk    sdk.Client
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
		tools:  written,
		openAI: strings.EqualFold(base.Hostname(), official),
	}
	p.sdk = sdk.Client{Options: options(p.http, base, o.Key)} // NewClient would read the environment
	return p, nil
}

func options(c *transport.Client, base *url.URL, key string) []option.RequestOption {
	out := []option.RequestOption{
		option.WithBaseURL(base.String() + "/"), option.WithHTTPClient(c.HTTP()), option.WithMaxRetries(0),
		option.WithHeader("User-Agent", "openskill"),
	}
	if key != "" {
		out = append(out, option.WithAPIKey(key))
	}
	for _, name := range []string{"Lang", "Package-Version", "OS", "Arch", "Runtime", "Runtime-Version", "Retry-Count", "Timeout"} {
		out = append(out, option.WithHeaderDel("X-Stainless-"+name)) // nobody's business
	}
	return out
}

// Chat implements [llm.Provider].
func (p *provider) Chat(ctx context.Context, r *llm.Request, text func(string)) (*llm.Reply, error) {
	stream := text != nil
	read := completions.New(p.http, r, text)
	err := p.http.Ask(ctx, func(ctx context.Context) (*http.Response, error) {
		return p.send(ctx, r, stream)
	}, func(a *transport.Answer) error {
		if a.Streamed(stream) {
			events := ssestream.NewDecoder(a.Response)
			return read.Stream(a, events, func() (string, []byte) {
				e := events.Event()
				return e.Type, e.Data
			})
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
	params, err := p.params(r)
	if err != nil {
		return nil, err
	}
	if !stream {
		return p.post(ctx, params)
	}
	whole := *params
	if !p.plain.Load() {
		params.StreamOptions = sdk.ChatCompletionStreamOptionsParam{IncludeUsage: sdk.Bool(true)}
	}
	res, err := p.post(ctx, params, option.WithJSONSet("stream", true))
	if !p.plain.Load() && transport.Names(err, "stream_options", "include_usage") {
		p.plain.Store(true)
		res, err = p.post(ctx, &whole, option.WithJSONSet("stream", true))
	}
	return res, err
}

func (p *provider) post(ctx context.Context, params *sdk.ChatCompletionNewParams, more ...option.RequestOption) (res *http.Response, err error) {
	err = p.sdk.Post(ctx, "chat/completions", params, &res, more...)
	return res, err
}
