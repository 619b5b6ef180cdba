package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"openskill/sdk/skill"
)

// Invoke calls a skill. input is what its schema asks for, anything that is an object in
// JSON; nil is {}. If the call failed, the error is an [*Error], and the result is there
// too where the host has given one: its Meta says what ran.
func (c *Client) Invoke(ctx context.Context, id skill.ID, input any) (*skill.Result, error) {
	return c.InvokeWith(ctx, id, input, CallOptions{})
}

// CallOptions are what a call may say beside its input; the zero value says nothing.
type CallOptions struct {
	Version string           // of the skill; "": the one that is enabled
	Files   []skill.FileRef  // initial files of the working folder
	Limits  skill.LimitsJSON // can only lower what the skill and the host allow; 0: no opinion
}

// InvokeWith is Invoke of a version, or within limits of the caller's.
func (c *Client) InvokeWith(ctx context.Context, id skill.ID, input any, o CallOptions) (*skill.Result, error) {
	body, err := requestOf(id, input, o)
	if err != nil {
		return nil, err
	}
	return c.result(ctx, "/skills/"+string(id)+":invoke", body)
}

// result makes a call that a Normalized Skill Result answers.
func (c *Client) result(ctx context.Context, path string, body any) (*skill.Result, error) {
	r := &skill.Result{}
	err := c.call(ctx, http.MethodPost, path, body, r)
	var e *Error
	switch {
	case errors.As(err, &e):
		if json.Unmarshal(e.answer, r) == nil && r.Error != nil && r.TraceID != "" {
			return r, err
		}
		return nil, err
	case err != nil:
		return nil, err
	case !r.Success || r.Error != nil || len(r.Data) == 0 || bytes.Equal(r.Data, []byte("null")):
		return nil, errors.New("client: the response is not a successful Normalized Skill Result; check that the base URL is an openSkill server")
	}
	return r, nil
}

// requestOf is the body of a call.
func requestOf(id skill.ID, input any, o CallOptions) (any, error) {
	if _, err := skill.ParseID(string(id)); err != nil {
		return nil, err
	}
	if input == nil {
		input = struct{}{}
	}
	return struct {
		Input   any              `json:"input"`
		Version string           `json:"version,omitempty"`
		Files   []skill.FileRef  `json:"files,omitempty"`
		Limits  skill.LimitsJSON `json:"limits,omitzero"`
	}{input, o.Version, o.Files, o.Limits}, nil
}

// Skills goes through the catalogue. Pages are asked for as they are needed.
func (c *Client) Skills(ctx context.Context) iter.Seq2[*skill.Descriptor, error] {
	return all[skill.Descriptor](ctx, c, "/skills", nil)
}

// Skill gives one skill of the catalogue.
func (c *Client) Skill(ctx context.Context, id skill.ID) (*skill.Descriptor, error) {
	if _, err := skill.ParseID(string(id)); err != nil {
		return nil, err
	}
	return get[skill.Descriptor](ctx, c, http.MethodGet, "/skills/"+string(id), nil)
}

// Search searches the skills and Agent Skills that the caller can use, the best match first. limit is 1 to 20.
func (c *Client) Search(ctx context.Context, query string, limit int) ([]skill.Found, error) {
	r, err := get[struct{ Data []skill.Found }](ctx, c, http.MethodGet, "/search?"+url.Values{"q": {query}, "limit": {strconv.Itoa(limit)}}.Encode(), nil)
	if err != nil {
		return nil, err
	}
	return r.Data, nil
}

// Tools gives what models may call, in the words of a vendor: openai, anthropic or mcp. It asks
// for all pages.
func (c *Client) Tools(ctx context.Context, format string) (json.RawMessage, error) {
	query := url.Values{"format": {format}}
	var all []json.RawMessage
	for left := c.maxAnswer; ; {
		b, next, err := c.tools(ctx, "/tools?"+query.Encode())
		switch {
		case err != nil || next == "" && all == nil: // of one page as it came
			return b, err
		case next != "" && next == query.Get("cursor"):
			return nil, errEndless
		}
		var page []json.RawMessage
		if err := json.Unmarshal(b, &page); err != nil {
			return nil, errors.New("client: a page of tools is not a list; check that the base URL is an openSkill server")
		}
		all = append(all, page...)
		if left -= int64(len(b)); left < 0 {
			return nil, fmt.Errorf("client: the pages of tools exceed %d bytes", c.maxAnswer)
		}
		if next == "" {
			return json.Marshal(all)
		}
		query.Set("cursor", next)
	}
}

// tools gives a page of tools, and the cursor of the next one.
func (c *Client) tools(ctx context.Context, path string) (list json.RawMessage, next string, err error) {
	res, err := c.send(ctx, http.MethodGet, path, nil, typeJSON)
	if err != nil {
		return nil, "", err
	}
	defer res.Body.Close()
	b, err := c.body(res)
	if err != nil {
		return nil, "", err
	}
	return list, nextCursor(res.Header), unmarshal(res, b, &list)
}

// nextCursor is the cursor of the next page in the headers Link of an answer; "": there is none.
// Of its address nothing else counts: the key goes nowhere else.
func nextCursor(h http.Header) string {
	rest := strings.Join(h.Values("Link"), ", ")
	for {
		_, after, ok := strings.Cut(rest, "<")
		if !ok {
			return ""
		}
		target, after, _ := strings.Cut(after, ">")
		parameters, _, _ := strings.Cut(after, "<")
		if u, err := url.Parse(target); err == nil && strings.Contains(parameters, `rel="next"`) {
			return u.Query().Get("cursor")
		}
		rest = after
	}
}

// AgentSkills goes through the Agent Skills. Pages are asked for as they are needed.
func (c *Client) AgentSkills(ctx context.Context) iter.Seq2[*skill.AgentSkill, error] {
	return all[skill.AgentSkill](ctx, c, "/agent-skills", nil)
}

// AgentSkill gives one Agent Skill, and the text of its SKILL.md.
func (c *Client) AgentSkill(ctx context.Context, name string) (*skill.AgentSkill, string, error) {
	type full struct {
		skill.AgentSkill
		Content string `json:"content"`
	}
	found, err := one[full](ctx, c, "/agent-skills/", "Agent Skill name", name)
	if err != nil {
		return nil, "", err
	}
	return &found.AgentSkill, found.Content, nil
}

// ScriptOptions are what a call of a script may say; the zero value says nothing.
type ScriptOptions struct {
	Args   any              // the command line: a list as it is, or a map or struct of options; nil: none
	Input  string           // on standard input
	Files  []skill.FileRef  // that its working folder begins with
	Limits skill.LimitsJSON // in place of the host's defaults, up to its maximum; 0: no opinion
	// Wait is how long to wait for an approval, where the call needs one: in whole seconds,
	// a minute at most. 0: it is refused at once.
	Wait time.Duration
}

// RunScript runs a script of an Agent Skill, and gives what it printed, as Invoke does.
func (c *Client) RunScript(ctx context.Context, name, script string, o ScriptOptions) (*skill.Result, error) {
	part, err := segment("Agent Skill name", name)
	if err != nil {
		return nil, err
	}
	file, err := segment("script name", script)
	if err != nil {
		return nil, err
	}
	if wait := int(o.Wait.Seconds()); wait > 0 {
		ctx = context.WithValue(ctx, preferKey{}, "wait="+strconv.Itoa(wait))
	}
	return c.result(ctx, "/agent-skills/"+part+"/scripts/"+file+":run", struct {
		Args   any              `json:"args,omitempty"`
		Input  string           `json:"input,omitempty"`
		Files  []skill.FileRef  `json:"files,omitempty"`
		Limits skill.LimitsJSON `json:"limits,omitzero"`
	}{o.Args, o.Input, o.Files, o.Limits})
}
