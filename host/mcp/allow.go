package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"openskill/host/agent/tools"
	"openskill/host/dispatch/allow"
	"openskill/sdk/skill"
)

// Grants is what the scripts of Agent Skills are allowed. It authorizes; its errors are *skill.Error.
type Grants interface {
	// Standing finds the skill whose script a call of run_skill_script with these arguments runs,
	// and says whether its files are allowed something. It is quick.
	Standing(ctx context.Context, p skill.Principal, args json.RawMessage) (allow.Standing, error)
	// Review reads the scripts of a skill, and says what they ask for.
	Review(ctx context.Context, p skill.Principal, name string) (*allow.Review, error)
	Allow(ctx context.Context, p skill.Principal, name string, w allow.Wish) (*allow.Review, error)
}

// allowQuestion is the key of the question about what scripts are allowed.
const allowQuestion = "allow"

// The bounds of a question.
const (
	mostItems = 32
	longest   = 200 // bytes of a rule: what is longer would not be shown whole
)

// offer is a question: what may be allowed to the scripts of a skill with one state of its files.
type offer struct {
	skill, digest string
	items         []item
	left          int          // rules that are not offered
	unset         []string     // variables that scripts ask for and that have no value
	changes       string       // since it was allowed; "" if it was not
	after         allow.Review // what was allowed when it was made

	who     string // it is for
	expires time.Time
}

// item is one box to tick.
type item struct {
	key, title, about string
	rule, variable    string // one of them
}

// offerOf makes a question of a review. Variables are offered by name where the host has a value of
// them, which stays for the hosts that it was for: no value is asked for, and none shown.
func offerOf(r *allow.Review) *offer {
	o := &offer{skill: r.Skill, digest: r.Digest}
	add := func(i item) {
		if len(o.items) == mostItems || len(i.rule) > longest {
			o.left++
			return
		}
		kind := "http"
		if i.variable != "" {
			kind = "env"
		}
		i.key, i.about = fmt.Sprintf("%s_%d", kind, len(o.items)+1), skill.CleanText(i.about, 300)
		o.items = append(o.items, i)
	}
	requests := func(rule, about string) { add(item{title: "Requests to " + rule, about: about, rule: rule}) }
	var before allow.Grant
	if g := r.Grant; g != nil {
		before = *g
		o.after.Grant = &allow.Grant{Digest: g.Digest, By: g.By, At: g.At}
		for i := range g.Env {
			to := "scripts see the value"
			if places := g.Env[i].Places(); places != "" {
				to = "the value goes to " + places + " alone"
			}
			add(item{title: "Variable " + g.Env[i].Name, about: "Allowed before; " + to, variable: g.Env[i].Name})
		}
		for _, rule := range g.HTTP {
			requests(rule, "Allowed before")
		}
	}
	for _, a := range r.HTTP {
		if !a.Given && !slices.Contains(before.HTTP, a.Name) {
			requests(a.Name, "Not allowed before")
		}
	}
	for _, a := range r.Env {
		if !a.Given && !slices.ContainsFunc(before.Env, func(v allow.Variable) bool { return v.Name == a.Name }) {
			o.unset = append(o.unset, skill.CleanText(a.Name, 64))
		}
	}
	if c := r.Changes; c != nil && !c.Unknown {
		o.changes = fmt.Sprintf("files added: %d, changed: %d, removed: %d", len(c.Added), len(c.Changed), len(c.Removed))
	} else if c != nil {
		o.changes = "other files were changed"
	}
	return o
}

// message is what the person reads above the boxes. Of what the skill's author worded, it has names of variables alone.
func (o *offer) message() string {
	var b strings.Builder
	fmt.Fprintf(&b, "The scripts of the Agent Skill %s ask for what they are not allowed. Tick what they may have, for these files (%.19s) until they change.", o.skill, o.digest)
	if o.changes != "" {
		fmt.Fprintf(&b, " Since it was allowed, %s.", o.changes)
	}
	if o.left > 0 {
		fmt.Fprintf(&b, " %d more are not listed: openskill skills allow %s.", o.left, o.skill)
	}
	if len(o.unset) > 0 {
		fmt.Fprintf(&b, " Variables without a value here: %s. Give one with openskill skills allow %s --env NAME --for HOST.", strings.Join(o.unset[:min(len(o.unset), 8)], ", "), o.skill)
	}
	return skill.CleanText(b.String(), 2000)
}

// form is the schema of the boxes, in their order.
func (o *offer) form() json.RawMessage {
	b := []byte(`{"type":"object","properties":{`)
	for i, it := range o.items {
		if i > 0 {
			b = append(b, ',')
		}
		box, _ := json.Marshal(struct { // plain data
			Type    string `json:"type"`
			Title   string `json:"title"`
			About   string `json:"description"`
			Default bool   `json:"default"`
		}{"boolean", it.title, it.about, false})
		b = append(append(b, `"`+it.key+`":`...), box...)
	}
	return append(b, "}}"...)
}

// wish is what an answer ticks; nil: nothing.
func (o *offer) wish(answer map[string]any) (*allow.Wish, error) {
	w := &allow.Wish{Digest: o.digest, After: &o.after}
	for key, value := range answer {
		i := slices.IndexFunc(o.items, func(it item) bool { return it.key == key })
		yes, ok := value.(bool)
		if i < 0 || !ok {
			return nil, invalid("mcpserver.allow", key, fmt.Sprintf("invalid answer: %q is not a box of the form, or not true or false; nothing was allowed", skill.CleanText(key, 40)))
		}
		switch it := &o.items[i]; {
		case !yes:
		case it.variable != "":
			w.Env = append(w.Env, allow.Variable{Name: it.variable})
		default:
			w.HTTP = append(w.HTTP, it.rule)
		}
	}
	if len(w.HTTP)+len(w.Env) == 0 { // which would agree to everything
		return nil, nil //nolint:nilnil // nothing is ticked
	}
	return w, nil
}

// runAllowed runs a script, and where it asks for what its skill is not allowed, has the operator
// asked first. A skill is asked about once for its files; without the operator's yes, its script
// runs with what it has, and a failure says who may allow more.
func (c *caller) runAllowed(ctx context.Context, r *mcp.CallToolRequest, args json.RawMessage, trace skill.TraceID, run func() *skill.Result) (*mcp.CallToolResult, error) {
	if c.s.opt.Grants == nil || r.Params.Name != tools.RunScript || !c.mayAsk(r) {
		return c.runApproved(ctx, r, run)
	}
	left, out, err := c.askAllowed(ctx, r, args)
	if err != nil {
		res := skill.Failure(skill.ID(left), trace, skill.Meta{}, err)
		c.count(r, res)
		return c.scriptResult(ctx, r, res), nil
	}
	if out != nil {
		return out, nil
	}
	if out, err = c.runApproved(ctx, r, run); err == nil && out.IsError && left != "" {
		out.Content = append(out.Content, &mcp.TextContent{Text: notAllowed(left)})
	}
	return out, err
}

func notAllowed(name string) string {
	return fmt.Sprintf("What the scripts of %[1]s ask for is not allowed. The operator can allow it: openskill skills allow %[1]s; over HTTP: GET /agent-skills/%[1]s/grant, then POST /agent-skills/%[1]s:allow.", name)
}

// askAllowed settles what the script of a call is allowed. left is the skill whose scripts ask for
// more than they are allowed; "" if none is known. out is a question to the client.
func (c *caller) askAllowed(ctx context.Context, r *mcp.CallToolRequest, args json.RawMessage) (left string, out *mcp.CallToolResult, err error) {
	asked := c.s.asked
	if response, ok := r.Params.InputResponses[allowQuestion]; ok {
		var o *offer
		if nonce, ok := c.unseal(r); ok {
			o = asked.take(nonce, c.who())
		}
		said, _ := response.(*mcp.ElicitResult)
		left, err = c.answered(ctx, r, o, said)
		return left, nil, err
	}
	for {
		st, err := c.s.opt.Grants.Standing(ctx, c.p, args)
		if err != nil || st.State == allow.Allowed {
			return "", nil, nil // the run says what is wrong
		}
		if asks, known := asked.quiet(st); known || asked.was(c.about(r, st.Skill, st.Digest)) {
			if known && !asks {
				return "", nil, nil
			}
			return st.Skill, nil, nil
		}
		if r.ProtocolVersion() >= stateless {
			return c.offer(ctx, r, &st)
		}
		end, wait := asked.begin(c.about(r, st.Skill, st.Digest))
		if wait == nil {
			defer end()
			return c.offer(ctx, r, &st)
		}
		select { // another call asks
		case <-wait:
		case <-ctx.Done():
			return "", nil, nil
		}
	}
}

// offer asks, unless there is nothing to ask.
func (c *caller) offer(ctx context.Context, r *mcp.CallToolRequest, st *allow.Standing) (left string, out *mcp.CallToolResult, err error) {
	leave, err := c.s.enter(ctx, c.p) // scripts are read
	if err != nil {
		return "", nil, err
	}
	review, err := c.s.opt.Grants.Review(ctx, c.p, st.Skill)
	leave()
	if err != nil || review.State == allow.Allowed {
		return "", nil, nil // the run says what is wrong
	}
	o := offerOf(review)
	if len(o.items) == 0 {
		c.s.asked.hush(review, len(o.unset)+o.left > 0)
		if len(o.unset)+o.left > 0 {
			left = o.skill
		}
		return left, nil, nil
	}
	o.who = c.who()
	nonce, ok := c.s.asked.open(o)
	if !ok {
		return o.skill, nil, nil
	}
	ask := &mcp.ElicitParams{Mode: "form", Message: o.message(), RequestedSchema: o.form()}
	if r.ProtocolVersion() >= stateless {
		res := needsInput()
		res.InputRequests, res.RequestState = mcp.InputRequestMap{allowQuestion: ask}, c.seal(r, nonce)
		c.count(r, &skill.Result{}) // it has not run
		return "", &res, nil
	}
	if e := c.s.web.exchangeOf(r.Extra); e != nil {
		e.out.live() // the question comes before the answer
	}
	waiting, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	said, failed := r.Session.Elicit(waiting, ask)
	taken := c.s.asked.take(nonce, o.who)
	if failed != nil || said.Action != "accept" {
		said, taken = nil, o // nothing is taken for a yes: the person refused, or the client cannot answer
	}
	left, err = c.answered(ctx, r, taken, said)
	return left, nil, err
}

// answered does what the person said. o is nil where the answer came to a question that is not
// open any more.
func (c *caller) answered(ctx context.Context, r *mcp.CallToolRequest, o *offer, said *mcp.ElicitResult) (left string, err error) {
	if said == nil || said.Action != "accept" {
		if o == nil {
			return "", nil
		}
		if ctx.Err() == nil { // else the client left without an answer
			c.s.asked.settle(c.about(r, o.skill, o.digest))
		}
		return o.skill, nil
	}
	if o == nil {
		return "", &skill.Error{
			Op: "mcpserver.allow", Code: skill.Conflict,
			Message: fmt.Sprintf("the question was answered before, or more than %d minutes ago; nothing was allowed. Run the script again to be asked again", int(answerTime.Minutes())),
		}
	}
	w, err := o.wish(said.Content)
	if err != nil {
		return o.skill, err
	}
	if w == nil {
		c.s.asked.settle(c.about(r, o.skill, o.digest))
		return o.skill, nil
	}
	leave, err := c.s.enter(ctx, c.p)
	if err != nil {
		return o.skill, err
	}
	defer leave()
	if _, err = c.s.opt.Grants.Allow(ctx, c.p, o.skill, *w); err != nil {
		return o.skill, err
	}
	return "", nil
}
