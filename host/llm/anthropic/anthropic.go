// Package anthropic asks models by Anthropic's Messages, with the vendor's own module.
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
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"time"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/anthropics/anthropic-sdk-go/packages/ssestream"

	"openskill/host/llm"
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
	http  *transport.Client
	sdk   sdk.Client
	tools *dialect.Tools
}

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
	// The module adds the version.
	base.Path, base.RawPath = strings.TrimSuffix(base.Path, "/v1"), strings.TrimSuffix(base.RawPath, "/v1")
	p := &provider{http: transport.New(transport.Options{Vendor: o.Name, Key: o.Key, HTTP: o.HTTP}), tools: written}
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
	read := newReader(p.http, r, text)
	err := p.http.Ask(ctx, func(ctx context.Context) (*http.Response, error) {
		return p.send(ctx, r, stream)
	}, func(a *transport.Answer) error {
		if a.Streamed(stream) {
			return read.stream(a, ssestream.NewDecoder(a.Response))
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

func (p *provider) send(ctx context.Context, r *llm.Request, stream bool) (res *http.Response, err error) {
	params, err := p.params(r)
	if err != nil {
		return nil, err
	}
	var more []option.RequestOption
	if stream {
		more = append(more, option.WithJSONSet("stream", true))
	}
	// Post rather than Messages.New, which refuses what might take longer than ten minutes:
	// how long a question may take is its context's to say.
	err = p.sdk.Post(ctx, "v1/messages", params, &res, more...)
	return res, err
}

// events are what [ssestream.Decoder] gives.
type events interface {
	Next() bool
	Event() ssestream.Event
	Err() error
}

// afterwards is how long a stream may go on after the reason why the reply ended.
const afterwards = 3 * time.Second

// stream reads the events of a stream.
func (r *reader) stream(a *transport.Answer, in events) error {
	for in.Next() {
		if err := r.event(in.Event()); err != nil {
			return err
		}
		if r.done {
			return nil
		}
		if r.stop != "" {
			a.Within(afterwards)
		}
	}
	switch {
	case r.stop != "": // all has come that matters
		return nil
	case in.Err() != nil:
		return in.Err()
	}
	return transport.ErrCut
}

func (r *reader) event(e ssestream.Event) error {
	data := bytes.TrimSpace(e.Data)
	switch {
	case len(data) == 0 || e.Type == "ping":
		return nil
	case e.Type == "error":
		return r.client.Failed(statusOf(data), data)
	}
	var ev sdk.MessageStreamEventUnion
	if err := json.Unmarshal(data, &ev); err != nil {
		return r.client.Unreadable("an event of its stream is no JSON object", err)
	}
	return r.take(&ev, data)
}
