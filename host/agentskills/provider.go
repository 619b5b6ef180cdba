package agentskills

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"openskill/host/manifest"
	"openskill/sdk/skill"
)

// Options of a [Provider]; nil and zero fields mean the defaults.
type Options struct {
	// InstructionPrompt is the template of [Provider.Instructions]; "": DefaultPrompt.
	// It must hold {skills}, where the list of skills goes; {resources} and {scripts}
	// become a sentence about the tool for them, or nothing.
	InstructionPrompt string
	// ScriptApproval is asked before a script runs; nil: none is. Its error is told to
	// the caller.
	ScriptApproval func(ctx context.Context, a Approval) error
	// DisableCaching asks the source for every call, and not at most once in Every.
	DisableCaching bool
	Every          time.Duration // 0: DefaultEvery
	// Changes is called at every look. If its value has changed, the source is read again. nil: only after Every.
	Changes func() uint64
	// ScriptRunner runs scripts that are files, where their source has no runner of its
	// own; nil: they are refused.
	ScriptRunner ScriptRunner
	// RunExtensions are those of the files that ScriptRunner takes; nil: [DefaultRunExtensions].
	RunExtensions []string
	Log           *slog.Logger // nil: slog.Default()
}

// Approval is a run of a script that is asked about.
type Approval struct {
	Principal     skill.Principal
	Skill, Script string
	Digest        string // of the skill as it is now
	Trust         skill.Trust
	Arguments     []string
}

// DefaultRunExtensions are those of files that the sandbox runs.
func DefaultRunExtensions() []string {
	return []string{".py", ".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".tsx", ".sh", ".bash"}
}

// Provider gives the skills of a source to callers. It is safe for concurrent use.
//
// Nobody (a principal without an id) is UNAUTHORIZED; reading needs the scope
// skills:read and running skills:invoke, or it is FORBIDDEN. A skill with an owner
// exists for the callers of that tenant alone. Errors are *skill.Error.
type Provider struct {
	source   Source // as callers get it
	reports  Source // as it was given
	options  Options
	prompt   prompt
	snapshot atomic.Pointer[snapshot]
	now      func() time.Time
}

// New makes a provider. The error says what is wrong with the options.
func New(s Source, o *Options) (*Provider, error) {
	if s == nil {
		return nil, errors.New("agentskills: a provider needs a source")
	}
	p := &Provider{source: s, reports: s, now: time.Now}
	if o != nil {
		p.options = *o
	}
	p.options.Log = logger(p.options.Log)
	var err error
	if p.options.RunExtensions, err = extensions(p.options.RunExtensions, DefaultRunExtensions()); err != nil {
		return nil, err
	}
	if p.prompt, err = parsePrompt(p.options.InstructionPrompt); err != nil {
		return nil, err
	}
	if !p.options.DisableCaching {
		c := Cache(s, p.options.Every)
		if own, ok := c.(*cache); ok {
			own.changes = p.options.Changes
		}
		p.source = c
	}
	return p, nil
}

// Problems lists what the source skipped when it last looked, and what authors should
// know, for the operator.
func (p *Provider) Problems() []manifest.Problem { return problemsOf(p.reports) }

// snapshot is what the source gave, prepared for callers.
type snapshot struct {
	given   []Skill
	members []member        // in order of name; of one name everybody's first
	shared  []member        // what callers of a tenant without skills of its own see
	tenants map[string]bool // that have some
	sums    sync.Map        // of what each of these tenants sees, and "" of shared
}

type member struct {
	skill Skill
	view  skill.AgentSkill
	owner string

	shared bool // an upload that is visible to all tenants
}

// look gives the skills as they are, or were a moment ago.
func (p *Provider) look(ctx context.Context) (*snapshot, error) {
	given, err := p.source.Skills(ctx)
	switch {
	case ctx.Err() != nil:
		return nil, cancelled(ctx.Err())
	case err != nil:
		return nil, &skill.Error{Op: "agentskills.look", Code: skill.Internal, Err: err}
	}
	if old := p.snapshot.Load(); old != nil && same(old.given, given) {
		return old, nil
	}
	s := &snapshot{given: given, members: make([]member, len(given)), tenants: map[string]bool{}}
	for i, g := range given {
		m := member{skill: g, view: view(g)}
		_, _, m.owner = origin(g)
		if f, ok := g.(*FileSkill); ok && f.upload != nil {
			m.view.Version, m.view.GrantName = f.upload.Version, f.GrantName()
			if m.shared = f.upload.Shared; m.shared {
				m.owner = ""
			}
		}
		if m.owner != "" {
			s.tenants[m.owner] = true
		}
		s.members[i] = m
	}
	slices.SortStableFunc(s.members, func(a, b member) int {
		if c := strings.Compare(a.view.Name, b.view.Name); c != 0 {
			return c
		}
		return strings.Compare(a.owner, b.owner) // "" is first
	})
	s.shared = s.of("")
	p.snapshot.Store(s)
	return s, nil
}

// Revision returns a value that compares equal as long as the skills that a tenant sees stay as they are.
func (p *Provider) Revision(ctx context.Context, tenant string) (any, error) {
	s, err := p.look(ctx)
	if err != nil {
		return nil, err
	}
	list := s.shared
	if !s.tenants[tenant] {
		tenant = ""
	} else if _, known := s.sums.Load(tenant); !known {
		list = s.of(tenant)
	}
	if sum, known := s.sums.Load(tenant); known {
		return sum, nil
	}
	h := sha256.New()
	for i := range list {
		v := &list[i].view
		_, _ = fmt.Fprintf(h, "%q %q %q %d\n", v.Name, v.Digest, v.Version, v.Trust) // a hash does not fail
	}
	sum, _ := s.sums.LoadOrStore(tenant, [sha256.Size]byte(h.Sum(nil)))
	return sum, nil
}

// visible gives the skills that exist for a caller, one of each name. The list is not
// to be changed.
func (s *snapshot) visible(p skill.Principal) []member {
	if !s.tenants[p.Tenant] {
		return s.shared
	}
	return s.of(p.Tenant)
}

// of gives what is everybody's, and a tenant's.
func (s *snapshot) of(tenant string) []member {
	var list []member
	for _, m := range s.members {
		if m.owner != "" && m.owner != tenant {
			continue
		}
		if n := len(list); n > 0 && list[n-1].view.Name == m.view.Name {
			if list[n-1].shared && m.owner == tenant && tenant != "" { // its own goes first
				list[n-1] = m
			}
			continue
		}
		list = append(list, m)
	}
	return list
}

// may refuses a caller who lacks a scope. name is the skill that it wants to use; where
// that is one skill's, the scope for it alone is enough to call it.
func may(p skill.Principal, scope, name string) error {
	switch {
	case p.ID == "":
		return &skill.Error{Op: "agentskills", Code: skill.Unauthorized, Message: "authentication required: send an API key or a token"}
	case scope == skill.ScopeInvoke && name != "" && p.MayInvoke(skill.ID(name)):
	case !p.May(scope):
		return &skill.Error{Op: "agentskills", Code: skill.Forbidden, Message: "missing scope " + scope}
	}
	return nil
}

// members are the skills that a caller finds; name is the one that it wants, "" for all.
func (p *Provider) members(ctx context.Context, who skill.Principal, scope, name string) ([]member, error) {
	if err := may(who, scope, name); err != nil {
		return nil, err
	}
	s, err := p.look(ctx)
	if err != nil {
		return nil, err
	}
	return s.visible(who), nil
}

// List gives the skills of a caller, in order of name. They are not to be changed.
func (p *Provider) List(ctx context.Context, who skill.Principal) ([]skill.AgentSkill, error) {
	members, err := p.members(ctx, who, skill.ScopeRead, "")
	if err != nil {
		return nil, err
	}
	list := make([]skill.AgentSkill, len(members))
	for i := range members {
		list[i] = members[i].view
	}
	return list, nil
}

// find gives one skill as it is now.
func (p *Provider) find(ctx context.Context, who skill.Principal, scope, name string) (*member, error) {
	members, err := p.members(ctx, who, scope, name)
	if err != nil {
		return nil, err
	}
	i, ok := slices.BinarySearchFunc(members, name, func(m member, name string) int { return strings.Compare(m.view.Name, name) })
	if !ok {
		all := make([]string, len(members))
		for i := range members {
			all[i] = members[i].view.Name
		}
		return nil, &skill.Error{
			Op: "agentskills.find", Code: skill.NotFound, Subject: skill.CleanText(name, 80),
			Message: skill.CleanText(fmt.Sprintf("skill not found: %q; %s", skill.CleanText(name, 80), offer(name, all, "there are none")), skill.MaxMessage),
		}
	}
	m := members[i]
	f, ok := m.skill.(*FileSkill)
	if !ok {
		return &m, nil
	}
	now, err := f.current()
	if err != nil {
		return nil, err
	}
	if now != f {
		m.skill, m.view = now, view(now)
	}
	return &m, nil
}

// Load gives a skill and the text of its SKILL.md, frontmatter included.
func (p *Provider) Load(ctx context.Context, who skill.Principal, name string) (skill.AgentSkill, string, error) {
	m, err := p.find(ctx, who, skill.ScopeRead, name)
	if err != nil {
		return skill.AgentSkill{}, "", err
	}
	return m.view, m.skill.Content(), nil
}

// ReadResource reads a resource of a skill, or the source of a script that is a file.
func (p *Provider) ReadResource(ctx context.Context, who skill.Principal, name, resource string) (skill.AgentResource, error) {
	m, err := p.find(ctx, who, skill.ScopeRead, name)
	if err != nil {
		return skill.AgentResource{}, err
	}
	r, info, err := m.resource(resource)
	if err != nil {
		return skill.AgentResource{}, err
	}
	b, err := r.Read(ctx)
	if err != nil {
		return skill.AgentResource{}, err
	}
	media := info.MediaType
	switch {
	case media != "":
	case text(b):
		media = "text/plain"
	default:
		media = "application/octet-stream"
	}
	return skill.AgentResource{Name: info.Name, MediaType: media, Data: b}, nil
}

// readable is what can be read: a Resource, or a script that is a file.
type readable interface {
	Info() skill.AgentFile
	Read(ctx context.Context) ([]byte, error)
}

// resource finds what a caller wants to read.
func (m *member) resource(given string) (readable, skill.AgentFile, error) {
	if err := checkName("resource", given); err != nil {
		return nil, skill.AgentFile{}, err
	}
	name := clean(given)
	all := make([]string, 0, len(m.view.Resources))
	for _, r := range m.skill.Resources() {
		info := r.Info()
		if info.Name == name || info.Name == given {
			return r, info, nil
		}
		all = append(all, info.Name)
	}
	for _, s := range m.skill.Scripts() {
		if f, ok := s.(readable); ok {
			info := s.Info()
			if info.Name == name || info.Name == "scripts/"+name {
				return f, info, nil
			}
			all = append(all, info.Name)
		}
	}
	if err := m.refused("resource", name); err != nil {
		return nil, skill.AgentFile{}, err
	}
	message := fmt.Sprintf("resource not found: the skill %s has no %q; %s", m.view.Name, skill.CleanText(given, 80), offer(name, all, "it has none"))
	switch {
	case name == FileName:
		message = fmt.Sprintf("%s is not a resource; %s returns it", FileName, ToolLoad)
	case slices.ContainsFunc(m.view.Scripts, func(f skill.AgentFile) bool { return f.Name == name }):
		message = fmt.Sprintf("%s is a script; use %s to run it", name, ToolRun)
	}
	return nil, skill.AgentFile{}, &skill.Error{
		Op: "agentskills.resource", Code: skill.NotFound, Subject: skill.CleanText(given, 80), Message: skill.CleanText(message, skill.MaxMessage),
	}
}

// script finds what a caller wants to run.
func (m *member) script(given string) (Script, error) {
	if err := checkName("script", given); err != nil {
		return nil, err
	}
	name := clean(given)
	all := make([]string, 0, len(m.view.Scripts))
	for _, wanted := range []string{given, name, "scripts/" + name} {
		for _, s := range m.skill.Scripts() {
			if s.Info().Name == wanted {
				return s, nil
			}
		}
	}
	for _, f := range m.view.Scripts {
		all = append(all, f.Name)
	}
	for _, n := range []string{name, "scripts/" + name} {
		if err := m.refused("script", n); err != nil {
			return nil, err
		}
	}
	message := fmt.Sprintf("script not found: the skill %s has no %q; %s", m.view.Name, skill.CleanText(given, 80), offer(name, all, "it has none"))
	if slices.ContainsFunc(m.view.Resources, func(f skill.AgentFile) bool { return f.Name == name }) {
		message = fmt.Sprintf("%s is a resource, not a script; use %s to read it", name, ToolRead)
	}
	return nil, &skill.Error{
		Op: "agentskills.script", Code: skill.NotFound, Subject: skill.CleanText(given, 80), Message: skill.CleanText(message, skill.MaxMessage),
	}
}

// refused says why a file that is there is not to be had, also one behind a link.
func (m *member) refused(kind, name string) error {
	f, ok := m.skill.(*FileSkill)
	if !ok {
		return nil
	}
	for at := name; at != "."; {
		if why := f.refused[at]; why != "" {
			return &skill.Error{
				Op: "agentskills.refused", Code: skill.ForbiddenPath, Subject: skill.CleanText(name, 80),
				Message: skill.CleanText(fmt.Sprintf("the %s %q is refused: %s %s, which could lead out of the skill's folder", kind, skill.CleanText(name, 80), skill.CleanText(at, 80), why), skill.MaxMessage),
			}
		}
		i := strings.LastIndexByte(at, '/')
		if i < 0 {
			break
		}
		at = at[:i]
	}
	return nil
}

// clean takes the ./ off that models write.
func clean(name string) string {
	for strings.HasPrefix(name, "./") {
		name = name[2:]
	}
	return name
}

// RunScript runs a script of a skill and never gives nil.
func (p *Provider) RunScript(ctx context.Context, who skill.Principal, r skill.ScriptRequest) *skill.Result {
	r.TraceID = traced(r.TraceID)
	return p.run(ctx, who, &r, nil)
}

// run runs a script; object is what the arguments were made of, nil for a list.
func (p *Provider) run(ctx context.Context, who skill.Principal, r *skill.ScriptRequest, object json.RawMessage) *skill.Result {
	begun := p.now()
	var meta skill.Meta
	answer := func(value any, err error) *skill.Result {
		meta.LatencyMS = p.now().Sub(begun).Milliseconds()
		return result(skillID(r.Skill), r.TraceID, meta, value, err)
	}
	m, err := p.find(ctx, who, skill.ScopeInvoke, r.Skill)
	if err != nil {
		return answer(nil, err)
	}
	meta.Digest, meta.Version = m.view.Digest, m.view.Metadata["version"]
	s, err := m.script(r.Script)
	if err == nil {
		err = checkArgs(r.Args)
	}
	if err != nil {
		return answer(nil, err)
	}
	if ask := p.options.ScriptApproval; ask != nil {
		err := ask(ctx, Approval{
			Principal: who, Skill: m.view.Name, Script: s.Info().Name, Digest: m.view.Digest, Trust: m.view.Trust, Arguments: slices.Clone(r.Args),
		})
		if err != nil {
			return answer(nil, p.refusal(err, r))
		}
	}
	within := r.Limits.Timeout
	if _, is := s.(*GoScript); is {
		meta.Runner, within = kindGo, r.Asked.Lower(r.Limits).Timeout // others have it from when they are ready
	}
	if within > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, within)
		defer stop()
	}
	return answer(s.Run(ctx, m.skill, &Call{
		Principal: who, Args: r.Args, Object: object, Stdin: r.Stdin, Files: r.Files, Workspace: r.Workspace, TraceID: r.TraceID, Limits: r.Limits, Asked: r.Asked, Turn: r.Turn,
		runner: p.options.ScriptRunner, runs: p.options.RunExtensions,
	}))
}

// kindGo is the runner of scripts that are functions of this program.
const kindGo skill.Kind = "go:function"

// refusal makes a FORBIDDEN of an approval's error that has no code.
func (p *Provider) refusal(err error, r *skill.ScriptRequest) error {
	if _, ok := errors.AsType[*skill.Error](err); ok {
		return err
	}
	return &skill.Error{
		Op: "agentskills.approval", Code: skill.Forbidden, Subject: skill.CleanText(r.Script, 80),
		Message: skill.CleanText("the run was not approved: "+err.Error(), skill.MaxMessage), Err: err,
	}
}

// traced gives the trace of a call, a new one where the caller has none.
func traced(id skill.TraceID) skill.TraceID {
	if skill.ValidTraceID(string(id)) {
		return id
	}
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return skill.TraceID(hex.EncodeToString(b[:]))
}

// skillID is a name as results carry it; what is no name is not repeated.
func skillID(name string) skill.ID {
	if skill.ValidAgentSkillName(name) {
		return skill.ID(name)
	}
	return ""
}

// result is the answer of a run: what was given, or an error.
func result(id skill.ID, trace skill.TraceID, meta skill.Meta, value any, err error) *skill.Result {
	if r, ok := value.(*skill.Result); ok && r != nil && err == nil {
		return r
	}
	if err != nil {
		return skill.Failure(id, trace, meta, told("script", string(id), err))
	}
	output, err := textOf(value)
	if err == nil && len(output) > MaxOutput {
		err = &skill.Error{
			Op: "agentskills.run", Code: skill.OutputLimit,
			Message: fmt.Sprintf("the script printed too much: %s, the limit is %s", sized(int64(len(output))), sized(MaxOutput)),
		}
	}
	var data json.RawMessage
	if err == nil {
		data, err = marshal(skill.OutputFields([]byte(output)))
	}
	if err != nil {
		return skill.Failure(id, trace, meta, err)
	}
	return &skill.Result{Success: true, SkillID: id, TraceID: trace, Data: data, Meta: meta}
}

// Folder gives a skill that is a folder, as it is now. It needs the scope skills:read.
func (p *Provider) Folder(ctx context.Context, who skill.Principal, name string) (*FileSkill, error) {
	m, err := p.find(ctx, who, skill.ScopeRead, name)
	if err != nil {
		return nil, err
	}
	f, ok := m.skill.(*FileSkill)
	if !ok {
		return nil, &skill.Error{Op: "agentskills.Folder", Code: skill.InvalidArgument, Subject: skill.CleanText(name, 80), Message: m.view.Name + " is not a folder"}
	}
	return f, nil
}

// Target is a script that is a file, as a door runs it.
type Target struct {
	Skill  *FileSkill
	Script *FileScript
}

// Target finds a script that is a file, as it is now, for a door that takes
// [skill.ScriptRequest] by itself. It needs the scope skills:invoke,
// or that for this skill.
func (p *Provider) Target(ctx context.Context, who skill.Principal, name, script string) (*Target, error) {
	m, err := p.find(ctx, who, skill.ScopeInvoke, name)
	if err != nil {
		return nil, err
	}
	s, err := m.script(script)
	if err != nil {
		return nil, err
	}
	f, isFile := s.(*FileScript)
	in, ok := m.skill.(*FileSkill)
	if !isFile || !ok {
		return nil, &skill.Error{
			Op: "agentskills.Target", Code: skill.InvalidArgument, Subject: skill.CleanText(script, 80),
			Message: fmt.Sprintf("the script %s of %s is not a file", s.Info().Name, m.view.Name),
		}
	}
	return &Target{Skill: in, Script: f}, nil
}
