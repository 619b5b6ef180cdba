package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"

	"openskill/host/agentskills"
	"openskill/host/dispatch/allow"
	"openskill/host/dispatch/grants"
	"openskill/host/manifest"
	"openskill/host/pysource/preflight"
	"openskill/host/store"
	"openskill/plugins/python/runtimes"
	"openskill/sdk/skill"
)

// ScriptGrants keeps what scripts of Agent Skills are allowed, in a database and with the key of
// a state folder.
func ScriptGrants(db *store.DB, stateDir string) *allow.Store {
	return allow.New(db, func(create bool) ([]byte, error) { return stateKey(stateDir, "grants", create) }, nil)
}

// granted is what the operator allowed the scripts of a skill with these files; nil: nothing. A
// command that names a folder says itself what its scripts may do.
func (h *Host) granted(ctx context.Context, s *agentskills.FileSkill) (*skill.Grants, error) {
	if h.tries {
		return h.tried, nil
	}
	return h.grants.Granted(ctx, s.GrantName(), s.Digest())
}

// Allowing reviews, allows and revokes what the scripts of Agent Skills may request and know.
type Allowing struct{ host *Host }

// Allowing is how grants of scripts are changed.
func (h *Host) Allowing() Allowing { return Allowing{h} }

// Review says what the scripts of a skill ask for, beside what they are allowed. It needs the
// scope skills:read. The error is an *skill.Error.
func (a Allowing) Review(ctx context.Context, p skill.Principal, name string) (*allow.Review, error) {
	f, err := a.host.agents.Folder(ctx, p, name)
	if err != nil {
		return nil, err
	}
	c := allow.Current{Skill: f.GrantName(), Folder: f.Path()}
	if c.Digest, c.Files, err = manifest.DigestOfFiles(f.Path()); err != nil {
		return nil, &skill.Error{Op: "host.Review", Code: skill.Conflict, Subject: name, Err: err, Message: skill.CleanText(fmt.Sprintf("the folder of %s cannot be allowed anything: %v", name, causeOf(err)), skill.MaxMessage)}
	}
	if c.Digest != f.Digest() {
		return nil, changed(errors.New("the digest is another one"))
	}
	report, err := a.host.preflight(ctx, f.Path(), p.Tenant)
	if err != nil {
		return nil, err
	}
	given := a.host.live.Load().Allowed().Scripts(grants.Skill{ID: skill.ID(f.Frontmatter().Name), Trust: f.Trust(), Owner: f.Owner()})
	for _, n := range report.Needs.HTTP {
		if rule, err := allow.ParseRule(n.Name); err == nil {
			c.HTTP = append(c.HTTP, allow.Ask{Name: rule, File: n.File, Line: n.Line, Given: grants.Permit(given.HTTP, rule)})
		}
	}
	for _, n := range report.Needs.Env {
		c.Env = append(c.Env, allow.Ask{Name: n.Name, File: n.File, Line: n.Line, Given: slices.Contains(given.Env, n.Name)})
	}
	for _, n := range report.Needs.Packages {
		if !n.Native { // packages with native code cannot be added
			c.Packages = append(c.Packages, allow.Ask{Name: n.Ecosystem + ":" + n.Name, File: n.File, Line: n.Line})
		}
	}
	g, err := a.host.grants.Get(ctx, c.Skill)
	if err != nil {
		return nil, err
	}
	return allow.Compare(c, g), nil
}

// causeOf leaves paths of the host out.
func causeOf(err error) error {
	if at, ok := errors.AsType[*os.PathError](err); ok {
		return at.Err
	}
	return err
}

// Standing finds the skill whose script a call of run_skill_script with these arguments runs. It
// reads no scripts. The caller must be one who may run it.
func (a Allowing) Standing(ctx context.Context, p skill.Principal, args json.RawMessage) (allow.Standing, error) {
	name, script, err := agentskills.ScriptOf(args)
	if err != nil {
		return allow.Standing{}, err
	}
	t, err := a.host.agents.Target(ctx, p, name, script)
	if err != nil {
		return allow.Standing{}, err
	}
	out := allow.Standing{Skill: t.Skill.GrantName(), Digest: t.Skill.Digest(), State: allow.Nothing}
	g, err := a.host.grants.Get(ctx, out.Skill)
	if g != nil {
		out.State = allow.Digests{g.Skill: g.Digest}.State(out.Skill, out.Digest)
	}
	return out, err
}

// Allow makes a grant of a wish, and gives the review as it is with it. It needs the scope skills:admin.
func (a Allowing) Allow(ctx context.Context, p skill.Principal, name string, w allow.Wish) (*allow.Review, error) {
	if err := allow.Authorize(p); err != nil { // before a look at the scripts, which takes time
		return nil, err
	}
	r, err := a.Review(ctx, p, name)
	if err != nil {
		return nil, err
	}
	g, err := w.Grant(r)
	if err != nil {
		return nil, err
	}
	made, err := a.host.grants.Allow(ctx, p, g)
	if err != nil {
		return nil, err
	}
	return allow.Compare(r.Current, made), nil
}

// Digests says which files are allowed something. It needs the scope skills:admin.
func (a Allowing) Digests(ctx context.Context, p skill.Principal) (allow.Digests, error) {
	if err := allow.Authorize(p); err != nil {
		return nil, err
	}
	return a.host.grants.Digests(ctx)
}

// Revoke removes a grant. It needs the scope skills:admin.
func (a Allowing) Revoke(ctx context.Context, p skill.Principal, name string) error {
	if err := allow.Authorize(p); err != nil {
		return err
	}
	reader := skill.Principal{ID: p.ID, Tenant: p.Tenant, Scopes: []string{skill.ScopeRead}}
	switch f, err := a.host.agents.Folder(ctx, reader, name); {
	case err == nil:
		name = f.GrantName()
	case skill.CodeOf(err) != skill.NotFound:
		return err
	default: // it is disabled or gone, and its grant is to go, too
		own := p.Tenant + "/" + name
		if g, err := a.host.grants.Get(ctx, own); err != nil {
			return err
		} else if g != nil {
			name = own
		}
	}
	return a.host.grants.Revoke(ctx, p, name)
}

// preflight looks at the scripts of a folder, which has the packages that it was given.
func (h *Host) preflight(ctx context.Context, folder, tenant string) (*preflight.Report, error) {
	o, err := PreflightOptions(runtimes.New(h.settings.StateDir))
	if err != nil {
		return nil, err
	}
	if o.Python, err = h.analyzer(); err != nil {
		return nil, err
	}
	o.Tenant = tenant
	if o, _, err = WithPackages(o, h.packages, folder); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, changed(err)
	}
	defer root.Close()
	return preflight.Check(ctx, root, o)
}
