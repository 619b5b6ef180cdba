package mcp

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"openskill/host/agent/tools"
	"openskill/host/dispatch/approval"
	"openskill/sdk/skill"
)

// Approvals is where it is kept what scripts were allowed; *approval.Store is one. It
// authorizes; its errors are *skill.Error.
type Approvals interface {
	Get(ctx context.Context, p skill.Principal, id string) (approval.Approval, error)
	Decide(ctx context.Context, p skill.Principal, id string, approve bool) (approval.Approval, error)
}

// question is the key of the one thing that a person is asked.
const question = "approve"

// mayAsk reports whether the person at the client can be asked to decide: it is the
// operator, or may enable uploads where a skill is proposed, and the client can ask. What
// a model says is never a decision.
func (c *caller) mayAsk(r *mcp.CallToolRequest) bool {
	proposer := r.Params.Name == tools.ProposeSkill && c.p.May(skill.ScopeUpload)
	if !proposer && (c.p.Type != skill.Operator || !c.p.May(skill.ScopeAdmin)) {
		return false
	}
	caps := r.ClientCapabilities()
	return caps != nil && caps.Elicitation != nil && (caps.Elicitation.Form != nil || caps.Elicitation.URL == nil)
}

// runApproved runs a script, and where the operator has to approve it first, asks. In
// revisions with a handshake the client is asked while the call waits; in the others the
// call is answered with the question, and comes again with what was said.
func (c *caller) runApproved(ctx context.Context, r *mcp.CallToolRequest, run func() *skill.Result) (*mcp.CallToolResult, error) {
	if c.s.opt.Approvals == nil || !c.mayAsk(r) {
		return c.scriptResult(ctx, r, run()), nil
	}
	if said, ok := r.Params.InputResponses[question].(*mcp.ElicitResult); ok {
		if id, ok := c.unseal(r); ok {
			if err := c.decide(ctx, id, said.Action); err != nil {
				return nil, err
			}
		}
	}
	res := run()
	id := approval.PendingID(res)
	if id == "" || r.Params.InputResponses[question] != nil { // one question a call
		return c.scriptResult(ctx, r, res), nil
	}
	asked, err := c.s.opt.Approvals.Get(ctx, c.p, id)
	if err != nil {
		return c.scriptResult(ctx, r, res), nil
	}
	ask := &mcp.ElicitParams{Mode: "form", Message: questionOf(&asked), RequestedSchema: json.RawMessage(`{"type":"object","properties":{}}`)}
	if r.ProtocolVersion() >= stateless {
		out := needsInput()
		out.InputRequests, out.RequestState = mcp.InputRequestMap{question: ask}, c.seal(r, id)
		return &out, nil
	}
	if e := c.s.web.exchangeOf(r.Extra); e != nil {
		e.out.live() // the question comes before the answer
	}
	said, err := r.Session.Elicit(ctx, ask)
	if err != nil {
		return c.scriptResult(ctx, r, res), nil
	}
	if err := c.decide(ctx, id, said.Action); err != nil {
		return nil, err
	}
	return c.scriptResult(ctx, r, run()), nil
}

// decide puts on record what the person said; who said neither has not decided.
func (c *caller) decide(ctx context.Context, id, action string) error {
	if action != "accept" && action != "decline" {
		return nil
	}
	_, err := c.s.opt.Approvals.Decide(ctx, c.p, id, action == "accept")
	return err
}

// questionOf is what the person reads. It holds nothing that the skill's author worded.
func questionOf(a *approval.Approval) string {
	var b strings.Builder
	if a.Policy == approval.Enabling {
		fmt.Fprintf(&b, "The model proposes the skill %s, version %s (%.19s): the code is in its call; %s. ", a.Skill, a.Version, a.Digest, strings.Join(a.Arguments, ", "))
		if a.PreviousDigest != "" {
			b.WriteString("It replaces the version that is enabled now. ")
		}
		b.WriteString("Enable it?")
		return skill.CleanText(b.String(), 2000)
	}
	fmt.Fprintf(&b, "The Agent Skill %s (%s) asks to run %s", a.Skill, a.Trust, a.Script)
	if len(a.Arguments) > 0 {
		fmt.Fprintf(&b, " with the arguments %s", strings.Join(a.Arguments, " "))
		if a.ArgumentsCut {
			b.WriteString(" and more")
		}
	}
	b.WriteString(". ")
	if a.PreviousDigest != "" {
		b.WriteString("The skill has changed since it was approved. ")
	}
	if a.Policy == approval.PerVersion {
		b.WriteString("Approve all of its scripts, until the skill changes?")
	} else {
		b.WriteString("Approve this run?")
	}
	return skill.CleanText(b.String(), 2000)
}

// seal binds an approval's id to the call that asks, for a client to bring back.
func (c *caller) seal(r *mcp.CallToolRequest, id string) string {
	mac := hmac.New(sha256.New, c.s.secret)
	b, _ := json.Marshal([]string{c.p.ID, c.p.Tenant, r.Params.Name, string(r.Params.Arguments), id}) // plain data
	_, _ = mac.Write(b)                                                                               // never fails
	return id + "." + hex.EncodeToString(mac.Sum(nil))
}

func (c *caller) unseal(r *mcp.CallToolRequest) (id string, ok bool) {
	id, _, ok = strings.Cut(r.Params.RequestState, ".")
	return id, ok && hmac.Equal([]byte(c.seal(r, id)), []byte(r.Params.RequestState))
}
