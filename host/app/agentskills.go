package app

import (
	"context"
	"log/slog"
	"path/filepath"

	"openskill/host/agentskills"
	"openskill/host/app/config"
	"openskill/host/dispatch/approval"
	"openskill/host/dispatch/grants"
	"openskill/host/manifest"
	"openskill/sdk/skill"
)

// AgentRoots are the folders of Agent Skills that settings name, or those given
// instead. What is in them is trusted as far as [manifest.Origins] say.
func AgentRoots(s *config.Settings, given []string) []agentskills.Root {
	optional := false
	if given == nil {
		if given = s.AgentSkillsDirs(); given == nil {
			given, optional = []string{s.SkillsDir}, true // whether it must be there is said of skills
		}
	}
	roots := make([]agentskills.Root, len(given))
	for i, path := range given {
		roots[i] = agentskills.Root{Path: path, Trust: skill.Trusted, Optional: optional, Native: s.AgentNative != "" && filepath.Clean(path) == s.AgentNative}
	}
	return roots
}

// openAgentSkills makes what gives Agent Skills to callers. Their scripts run through
// the door.
func (h *Host) openAgentSkills(given []string, granted *skill.Grants) error {
	roots := AgentRoots(h.settings, given)
	for i := range roots {
		path, err := filepath.Abs(roots[i].Path) // a worker has another working folder
		if err != nil {
			return err
		}
		roots[i].Path, roots[i].Lenient = path, given != nil // who names a folder wants to run what is in it
		h.agentDirs = append(h.agentDirs, path)
	}
	run := func(ctx context.Context, s *agentskills.FileSkill, script *agentskills.FileScript, c *agentskills.Call) (any, error) {
		return h.door.RunScript(ctx, c.Principal, skill.ScriptRequest{
			Skill: s.Frontmatter().Name, Script: script.Path(), Args: c.Args, Stdin: c.Stdin, Files: c.Files, Workspace: c.Workspace, TraceID: c.TraceID, Limits: c.Limits, Asked: c.Asked, Turn: c.Turn,
		}), nil
	}
	var err error
	h.tries, h.tried = given != nil, granted
	h.grants = ScriptGrants(h.kept.db, h.settings.StateDir)
	h.agents, err = agentskills.NewBuilder().UseRoots(roots, AgentOptions(h.settings)).UseUploads(h.uploadChanges, h.uploadedAgents, AgentOptions(h.settings)).UseFilter(h.offered).UseFileScriptRunner(run).UseLogger(h.log).Build()
	return err
}

// AgentOptions are what folders of Agent Skills are read with.
func AgentOptions(s *config.Settings) *agentskills.FileOptions {
	return &agentskills.FileOptions{StateDir: s.StateDir}
}

// offered reports whether an Agent Skill is given to callers. One whose folder has a skill
// too is disabled with it, and one that was pulled has no name of the operator's own skills.
func (h *Host) offered(s agentskills.Skill) bool {
	f, ok := s.(*agentskills.FileSkill)
	if !ok || h.skills == nil {
		return true
	}
	why := h.skills.Hides(f.Path(), skill.ID(f.Frontmatter().Name), f.Pulled())
	if told, _ := h.hidden.Swap(f.Path(), why); why != "" && told != why {
		h.log.Warn("Agent Skill skipped", slog.String("problem", skill.CleanText(f.Path()+" "+why, 1000)))
	}
	return why == ""
}

// AgentSkills gives Agent Skills to callers.
func (h *Host) AgentSkills() *agentskills.Provider { return h.agents }

// RunScript runs a script of an Agent Skill through the door. The reply has its streams
// and exit code; it is nil where the script has not run.
func (h *Host) RunScript(ctx context.Context, p skill.Principal, r skill.ScriptRequest) (*skill.Result, *skill.Reply) {
	return h.door.Script(ctx, p, r)
}

// scripts are the scripts of Agent Skills as the door sees them.
type scripts struct{ *Host }

// scriptKinds are the runners of scripts, by extension.
var scriptKinds = map[string]skill.Kind{
	".py": skill.WasmPython, ".js": skill.WasmJavaScript, ".mjs": skill.WasmJavaScript, ".cjs": skill.WasmJavaScript,
	".ts": skill.WasmJavaScript, ".mts": skill.WasmJavaScript, ".cts": skill.WasmJavaScript, ".tsx": skill.WasmJavaScript,
	".sh": skill.WasmShell, ".bash": skill.WasmShell,
}

// shellFuel is how much more fuel scripts of the shell get by default than others: it
// interprets text, and a turn of a loop takes some 100,000 units.
const shellFuel = 10

// AgentFolder implements [dispatch.Scripts].
func (s scripts) AgentFolder(ctx context.Context, p skill.Principal, name string) (skill.Folder, error) {
	f, err := s.agents.Folder(ctx, p, name)
	if err != nil {
		return skill.Folder{}, err
	}
	of := skill.Folder{Name: f.Frontmatter().Name, Path: f.Path(), Digest: f.Digest(), Files: []string{agentskills.FileName}}
	for _, r := range f.Resources() {
		of.Files = append(of.Files, r.Info().Name)
	}
	for _, r := range f.Scripts() {
		of.Files = append(of.Files, r.Info().Name)
	}
	return of, nil
}

// packagesOf returns the folder of the packages of an Agent Skill, and those of runtimes that it requires. uploaded is nil
// if it is the operator's own.
func (s scripts) packagesOf(f *agentskills.FileSkill, uploaded *manifest.Skill) (set string, requires []string, err error) {
	if uploaded != nil {
		return uploaded.Packages, uploaded.Descriptor.Requires, nil
	}
	return s.packages.Use(f.Path())
}

// Script implements [dispatch.Scripts].
func (s scripts) Script(ctx context.Context, p skill.Principal, name, script string) (*manifest.Skill, error) {
	t, err := s.agents.Target(ctx, p, name, script)
	if err != nil {
		return nil, err
	}
	kind, ok := scriptKinds[t.Script.Ending()]
	if !ok {
		return nil, &skill.Error{
			Op: "host.Script", Code: skill.InvalidArgument, Subject: skill.CleanText(script, 80),
			Message: "unsupported script type: the sandbox runs .py, .js, .mjs, .cjs, .ts, .mts, .cts, .tsx, .sh and .bash",
		}
	}
	native := kind == skill.WasmPython && t.Skill.Native()
	if native {
		kind = skill.CLIPython
	}
	uploaded, err := s.upload(t.Skill)
	if err != nil {
		return nil, err
	}
	granted, err := s.granted(ctx, t.Skill)
	if err != nil {
		return nil, err
	}
	folder := t.Skill.Path()
	if s.approvals.Policy() != approval.Never || granted != nil && !s.tries {
		if folder, err = s.copies.of(folder, t.Skill.Digest()); err != nil {
			return nil, err
		}
	}
	version := t.Skill.Frontmatter().Metadata["version"]
	set, requires, err := s.packagesOf(t.Skill, uploaded)
	if err != nil {
		return nil, err
	}
	if uploaded != nil {
		version = uploaded.Descriptor.Version
	}
	caps := s.settings.Caps()
	limits := s.settings.Defaults().Lower(caps)
	if kind == skill.WasmShell {
		limits.Fuel = max(limits.Fuel, min(limits.Fuel, caps.Fuel/shellFuel)*shellFuel)
	}
	// A skill of the operator's own, or one that the operator trusts, may read what the
	// operator shows to skills. Requests and variables are those of entries that name it.
	permissions := s.live.Load().Allowed().Scripts(grants.Skill{ID: skill.ID(t.Skill.Frontmatter().Name), Trust: t.Skill.Trust(), Owner: t.Skill.Owner()})
	permissions.Data, permissions.Scratch = t.Skill.Trust() >= skill.Trusted, native
	return &manifest.Skill{
		Descriptor: skill.Descriptor{
			ID: skill.ID(t.Skill.Frontmatter().Name), Version: version, Description: t.Skill.Frontmatter().Description,
			Runner: kind, Trust: t.Skill.Trust(), Digest: t.Skill.Digest(), Requires: requires, Enabled: s.offered(t.Skill), // which may have changed since the list was made
		},
		Owner: t.Skill.Owner(), Folder: folder, Limits: limits,
		Primary:     skill.Target{Kind: kind, Entry: t.Script.Path()},
		Permissions: permissions, Granted: granted, Packages: set,
	}, nil
}
