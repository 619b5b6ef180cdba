package mcp

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"openskill/host/agent/tools"
	"openskill/sdk/skill"
)

// listTools gives a page: the tools of Agent Skills before those of the catalogue. A
// page has a hundred skills at most, and fewer where some are disabled.
func (c *caller) listTools(ctx context.Context, r *mcp.ListToolsRequest) (mcp.Result, error) {
	res := &mcp.ListToolsResult{Tools: []*mcp.Tool{}, Cacheable: uncached}
	if r.ProtocolVersion() >= stateless {
		res.ResultType = complete
	}
	if !c.p.May(skill.ScopeRead) {
		return res, nil
	}
	cursor := ""
	if r.Params != nil {
		cursor = r.Params.Cursor
	}
	last, err := decodeCursor("tools", cursor)
	if err != nil {
		return nil, err
	}
	at := c.revision(ctx) // before anything is read
	if cursor == "" {
		three, err := c.agentTools(ctx)
		if err != nil {
			return nil, err
		}
		for i := range three {
			res.Tools = append(res.Tools, toolOf(&three[i], nil))
		}
	}
	form, err := c.form(r)
	if err != nil {
		return nil, err
	}
	if form != tools.FormAll && cursor == "" {
		res.Tools = append(res.Tools, toolOf(&tools.SearchTool, nil))
	}
	switch {
	case form == tools.FormCode && cursor != "":
		return res, nil
	case form == tools.FormCode:
		return res, c.addCode(res)
	}
	head, err := encode(res) // not all callers of a tenant have the same tools for Agent Skills
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(head)
	key := "mcp " + strconv.FormatBool(c.p.MayInvoke(skill.RunCode)) + string(sum[:]) + last
	if v, ok := c.s.opt.Lists.Get(c.p.Tenant, key, at); ok {
		made, _ := v.(json.RawMessage) // of this kind of key
		return c.outgoing(r).raw(made), nil
	}
	page, next, err := c.s.opt.Catalogue.List(c.p, last, pageSize)
	if err != nil {
		return nil, err
	}
	for i := range page {
		if d := &page[i]; d.Callable() {
			t := describe(d)
			res.Tools = append(res.Tools, toolOf(&t, d))
		}
	}
	res.NextCursor = encodeCursor("tools", next)
	made, err := encode(res)
	if err != nil {
		return nil, err
	}
	c.s.opt.Lists.Put(c.p.Tenant, key, at, made, len(made))
	return c.outgoing(r).raw(made), nil
}

// form returns which tools the client of a request gets.
func (c *caller) form(r *mcp.ListToolsRequest) (tools.Form, error) {
	if c.s.opt.Search == nil {
		return tools.FormAll, nil
	}
	given := ""
	if e := c.s.web.exchangeOf(r.Extra); e != nil {
		given = e.tools
	}
	return tools.ParseForm(given, cmp.Or(c.s.opt.Tools, tools.FormAll))
}

// addCode adds the tool run_code.
func (c *caller) addCode(res *mcp.ListToolsResult) error {
	d, err := c.s.opt.Catalogue.Get(c.p, skill.RunCode, "")
	if err != nil && skill.CodeOf(err) != skill.NotFound {
		return err
	}
	if err := tools.NoCode(c.p, &d); err != nil {
		return err
	}
	t := describe(&d)
	res.Tools = append(res.Tools, toolOf(&t, &d))
	return nil
}

// revision is that of what the caller finds; nil where it is not known.
func (c *caller) revision(ctx context.Context) any {
	if c.s.opt.Revision == nil {
		return nil
	}
	return c.s.opt.Revision(ctx, c.p)
}

func (c *caller) agentTools(ctx context.Context) ([]skill.Tool, error) {
	if c.s.opt.AgentSkills == nil {
		return nil, nil
	}
	return c.s.opt.AgentSkills.Tools(ctx, c.p)
}

// stamp is a skill as its tool shows it, in little.
type stamp [sha256.Size]byte

// stampOf takes all in that a tool is made of. The digest of a skill is over its files,
// and so says nothing of what the operator changed: another description has the same one.
func stampOf(d *skill.Descriptor) stamp {
	b := make([]byte, 0, 512+len(d.Description)+len(d.InputSchema)+len(d.OutputSchema))
	part := func(s string) { b = append(binary.AppendUvarint(b, uint64(len(s))), s...) }
	for _, s := range []string{string(d.ID), d.Version, d.Digest, d.Description, string(d.Runner), string(d.Fallback)} {
		part(s)
	}
	for _, s := range [][]byte{d.InputSchema, d.OutputSchema} {
		b = append(binary.AppendUvarint(b, uint64(len(s))), s...)
	}
	for _, rule := range d.Permissions.HTTP {
		part(strings.Join(rule.Methods, " "))
	}
	for _, id := range d.Permissions.Skills {
		part(string(id))
	}
	return sha256.Sum256(b)
}

// describe is the tool of a skill. A skill whose data need not be an object has no
// output schema: clients want structured content where there is one, and in all
// revisions but the last that is an object.
func describe(d *skill.Descriptor) skill.Tool {
	t := tools.Of(d)
	t.Name = tools.NameOf(d.ID)
	if !isObjectSchema(d.OutputSchema) {
		t.OutputSchema = nil
	}
	return t
}

// toolOf is a tool as the protocol has it. d is nil for those of Agent Skills.
func toolOf(t *skill.Tool, d *skill.Descriptor) *mcp.Tool {
	no, web := false, d != nil && len(d.Permissions.HTTP)+len(d.Permissions.Skills) > 0 // which may send requests
	out := &mcp.Tool{
		Name: t.Name, Title: t.Title, Description: t.Description, InputSchema: t.InputSchema,
		// A sandbox has nothing to destroy; what it may ask of other hosts, it may change there.
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: t.ReadOnly, IdempotentHint: d != nil && d.Idempotent, OpenWorldHint: &web},
	}
	if !web {
		out.Annotations.DestructiveHint = &no
	}
	if t.OutputSchema != nil {
		out.OutputSchema = t.OutputSchema
	}
	return out
}

// isObjectSchema reports whether a schema says that it is an object's.
func isObjectSchema(schema json.RawMessage) bool {
	var s struct {
		Type any `json:"type"`
	}
	return json.Unmarshal(schema, &s) == nil && s.Type == "object"
}

// Keys of _meta, in both directions.
const (
	metaResult = "openskill/result"   // of a result: the Normalized Skill Result without its data
	metaTrace  = "openskill/trace_id" // of a call: the trace id to take
)

func (c *caller) callTool(ctx context.Context, r *mcp.CallToolRequest) (mcp.Result, error) {
	trace := newTrace()
	if given, ok := r.Params.Meta[metaTrace].(string); ok && skill.ValidTraceID(given) {
		trace = skill.TraceID(given)
	}
	args := r.Params.Arguments
	if len(args) == 0 || bytes.Equal(args, []byte("null")) {
		args = json.RawMessage("{}")
	}
	ctx, end := c.callContext(ctx, r)
	defer end()
	name := r.Params.Name
	if name == tools.SearchSkills && c.s.opt.Search != nil {
		res := tools.Search(ctx, c.s.opt.Search, c.p, args, trace)
		if !res.Success {
			c.count(r, res)
		}
		return c.outgoing(r).toolResult(res, dataContent), nil
	}
	if tools.Reserved(name) && c.s.opt.AgentSkills != nil {
		return c.runAllowed(ctx, r, args, trace, func() *skill.Result {
			defer c.reportProgress(ctx, r)()
			res := c.s.opt.AgentSkills.CallTool(ctx, c.p, name, args, trace)
			if !readsFor(name) {
				c.count(r, res)
			}
			return res
		})
	}
	id, err := tools.IDOf(name)
	if err != nil || tools.Reserved(name) {
		return nil, unknownTool(name)
	}
	stop := c.reportProgress(ctx, r)
	defer stop()
	req := skill.Request{SkillID: id, Input: args, TraceID: trace}
	var res *skill.Result
	if c.mayTask(r, id) {
		var task *taskResult
		if task, res, err = c.callAsTask(ctx, r, req); err != nil || task != nil {
			return task, err
		}
	} else {
		res = c.s.opt.Door.Invoke(ctx, c.p, req)
	}
	stop()
	c.count(r, res)
	if res.Error != nil && res.Error.Code == skill.NotFound {
		// A skill may say so itself, of something else.
		if _, err := c.s.opt.Catalogue.Get(c.p, id, ""); skill.CodeOf(err) == skill.NotFound {
			return nil, unknownTool(name)
		}
	}
	return c.outgoing(r).toolResult(res, dataContent), nil
}

// count counts a call that was refused before it ran, and so by no rate of calls.
func (c *caller) count(r *mcp.CallToolRequest, res *skill.Result) {
	if e := c.s.web.exchangeOf(r.Extra); e != nil && !res.Meta.Ran {
		e.refused()
	}
}

func unknownTool(name string) error {
	return &jsonrpc.Error{
		Code:    jsonrpc.CodeInvalidParams,
		Message: fmt.Sprintf("unknown tool %q; tools/list names all", skill.CleanText(name, 64)),
	}
}

// toolResult is the result of a call: its data as structured content, and as text for
// models and for clients that know no other; a failure as text that begins with its
// code. What else a Normalized Skill Result tells is in _meta.
func (b *bodies) toolResult(res *skill.Result, content func(data json.RawMessage) [][]byte) *mcp.CallToolResult {
	rest := *res
	rest.Data = nil
	out := &mcp.CallToolResult{Meta: mcp.Meta{metaResult: &rest}}
	if res.Error != nil {
		out.IsError = true
		out.Content = []mcp.Content{&mcp.TextContent{Text: errorText(res.Error)}}
		return out
	}
	data := res.Data
	if len(data) == 0 {
		data = json.RawMessage("null")
	}
	b.holding(len(data))
	if data[0] == '{' {
		out.StructuredContent = b.json(data)
	}
	for _, text := range content(data) {
		out.Content = append(out.Content, &mcp.TextContent{Text: b.text(text)})
	}
	out.Content = append(out.Content, b.artifacts(res.Meta.Artifacts)...)
	return out
}

// dataContent is what a model reads of a skill's data.
func dataContent(data json.RawMessage) [][]byte { return [][]byte{data} }

// agentContent is what a model reads of the data of the three tools: instructions,
// files and outputs as the text that they are, and then what else there is.
func agentContent(data json.RawMessage) [][]byte {
	var fields map[string]json.RawMessage
	if json.Unmarshal(data, &fields) != nil {
		return dataContent(data)
	}
	for _, key := range []string{"content", "output"} {
		var s *string
		if v, ok := fields[key]; !ok || json.Unmarshal(v, &s) != nil || s == nil {
			continue
		}
		out := [][]byte{[]byte(*s)}
		if delete(fields, key); len(fields) > 0 {
			rest, err := json.Marshal(fields)
			if err != nil {
				break
			}
			out = append(out, rest)
		}
		return out
	}
	return dataContent(data)
}

// scriptResult is the result of one of the tools for Agent Skills. To take a large one apart is
// work of the processor, which has a place of those that read.
func (c *caller) scriptResult(ctx context.Context, r *mcp.CallToolRequest, res *skill.Result) *mcp.CallToolResult {
	content := agentContent
	if len(res.Data) > inline && !readsFor(r.Params.Name) { // which have a place
		leave, err := c.s.enter(ctx, c.p)
		if err != nil {
			content = dataContent // the script has run, and this is all of its result
		} else {
			defer leave()
		}
	}
	return c.outgoing(r).toolResult(res, content)
}

func errorText(e *skill.ResultError) string {
	text := string(e.Code) + ": " + e.Message
	if len(e.Details) > 0 {
		if b, err := json.Marshal(e.Details); err == nil {
			text += "\n" + string(b)
		}
	}
	return text
}

func newTrace() skill.TraceID {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails since Go 1.24
	return skill.TraceID(hex.EncodeToString(b[:]))
}

// callContext is the context of one call: it ends with the request, by the client's
// word; with the client's connection; with the session; and with the server.
func (c *caller) callContext(ctx context.Context, r *mcp.CallToolRequest) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	key, id := &cancel, r.Session.ID()
	stops := []func() bool{context.AfterFunc(c.base, func() { cancel(errShutdown) })}
	if e := c.s.web.exchangeOf(r.Extra); e != nil {
		e.out.settled()
		stops = append(stops, context.AfterFunc(e.ctx, func() { cancel(context.Cause(e.ctx)) }))
	}
	c.calling.Lock()
	if c.running[id] == nil {
		c.running[id] = map[*context.CancelCauseFunc]bool{}
	}
	c.running[id][key] = true
	c.calling.Unlock()
	return ctx, func() {
		for _, stop := range stops {
			stop()
		}
		c.calling.Lock()
		if delete(c.running[id], key); len(c.running[id]) == 0 {
			delete(c.running, id)
		}
		c.calling.Unlock()
		cancel(nil)
	}
}

// endCalls ends the calls under way of one session.
func (c *caller) endCalls(session string) {
	c.calling.Lock()
	defer c.calling.Unlock()
	for cancel := range c.running[session] {
		(*cancel)(errClientLeft)
	}
}

// reportProgress tells a client that asked for it how long its call has run, until the
// function is called. After that nothing more is told.
func (c *caller) reportProgress(ctx context.Context, r *mcp.CallToolRequest) (stop func()) {
	token := r.Params.GetProgressToken()
	switch token.(type) {
	case string, float64, int, int64:
	default:
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	done, began := make(chan struct{}), time.Now()
	go func() {
		defer close(done)
		tick := time.NewTicker(c.s.opt.ProgressEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			seconds := time.Since(began).Seconds()
			err := r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
				ProgressToken: token, Progress: seconds, Message: fmt.Sprintf("running for %.1f s", seconds),
			})
			if err != nil {
				return // nobody hears it any more
			}
		}
	}()
	return func() {
		cancel()
		<-done
	}
}
