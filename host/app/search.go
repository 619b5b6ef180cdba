package app

import (
	"context"
	"errors"
	"fmt"
	"io"

	"openskill/host/admission"
	"openskill/host/agent/tools"
	"openskill/host/store"
	"openskill/sdk/skill"
)

// searchable is the index of what the callers of a tenant can find.
type searchable struct {
	index *store.TextIndex
	found []skill.Found
}

// maxSearchable bounds the memory of indexes in bytes. Tenants share it.
const maxSearchable = 128 << 20

// Search implements [tools.Finder].
func (h *Host) Search(ctx context.Context, p skill.Principal, query string, limit int) ([]skill.Found, error) {
	if !p.May(skill.ScopeRead) {
		return nil, &skill.Error{Op: "host.Search", Code: skill.Forbidden, Message: "searching skills needs the scope " + skill.ScopeRead}
	}
	if err := tools.CheckSearch(query, limit); err != nil {
		return nil, err
	}
	s, err := h.searchable(ctx, p)
	if err != nil {
		return nil, err
	}
	at, err := s.index.Search(ctx, query, limit, func(i int) bool {
		f := &s.found[i]
		return f.Type != skillType || p.MayInvoke(skill.ID(f.Name))
	})
	if err != nil {
		return nil, &skill.Error{Op: "host.Search", Code: skill.Internal, Err: err}
	}
	out := make([]skill.Found, len(at))
	for i, n := range at {
		out[i] = s.found[n]
	}
	return out, nil
}

// The types of [skill.Found].
const (
	skillType      = "skill"
	agentSkillType = "agent_skill"
)

// searchable returns the index of a tenant, and builds it if the skills have changed.
func (h *Host) searchable(ctx context.Context, p skill.Principal) (*searchable, error) {
	at := h.revision(ctx, p) // before anything is read
	if v, ok := h.indexes.Get(p.Tenant, "", at); ok {
		s, _ := v.(*searchable) // of this kind of cache
		return s, nil
	}
	skills, err := h.Catalogue().list(p.Tenant)
	if err != nil {
		return nil, err
	}
	s := &searchable{}
	size := 0
	var docs []store.Document
	for i := range skills {
		d := &skills[i]
		if !d.Callable() || d.ID == skill.RunCode {
			continue
		}
		t := tools.Of(d)
		size += len(t.Description) + len(t.InputSchema)
		s.found = append(s.found, skill.Found{Type: skillType, Name: string(d.ID), Description: t.Description, InputSchema: t.InputSchema})
		docs = append(docs, store.Document{Name: t.Name, Description: t.Description, Text: string(t.InputSchema)})
	}
	agents, err := h.agents.List(ctx, p)
	if err != nil {
		return nil, err
	}
	for i := range agents {
		a := &agents[i]
		_, text, err := h.agents.Load(ctx, p, a.Name)
		if skill.CodeOf(err) == skill.NotFound {
			continue // it was removed meanwhile
		}
		if err != nil {
			return nil, err
		}
		description := skill.CleanText(a.Description, maxFoundDescription)
		size += len(description)
		s.found = append(s.found, skill.Found{Type: agentSkillType, Name: a.Name, Description: description})
		docs = append(docs, store.Document{Name: a.Name, Description: description, Text: text})
	}
	if s.index, err = store.NewTextIndex(ctx, docs); err != nil {
		return nil, &skill.Error{Op: "host.Search", Code: skill.Internal, Err: err}
	}
	h.indexes.Put(p.Tenant, "", at, s, s.index.Size()+size+len(docs)*mostID)
	return s, nil
}

// maxFoundDescription bounds the description of an Agent Skill in a result, in bytes.
const maxFoundDescription = 1024

// maxSkillArchive bounds the archive of an Agent Skill in bytes.
const maxSkillArchive = 16 << 20

var errLargeArchive = errors.New("the archive is too large")

// bounded writes at most left bytes, while ctx has not ended.
type bounded struct {
	ctx  context.Context //nolint:containedctx // of the request whose answer is written
	w    io.Writer
	left int
}

func (b *bounded) Write(p []byte) (int, error) {
	if b.left -= len(p); b.left < 0 {
		return 0, errLargeArchive
	}
	if err := b.ctx.Err(); err != nil {
		return 0, err
	}
	return b.w.Write(p)
}

// SkillArchive implements [api.SkillArchive].
func (h *Host) SkillArchive(ctx context.Context, p skill.Principal, name string, w io.Writer) (digest string, err error) {
	f, err := h.agents.Folder(ctx, p, name)
	if err != nil {
		return "", err
	}
	return f.Digest(), packed(ctx, w, f.Path(), name, func(name string, _ bool) bool { return !f.Travels(name) })
}

// packed writes the folder of an Agent Skill as a zip, without what leave names; nil: all of it.
func packed(ctx context.Context, w io.Writer, folder, name string, leave func(name string, folder bool) bool) error {
	err := admission.PackSome(&bounded{ctx, w, maxSkillArchive}, folder, leave)
	switch {
	case errors.Is(err, errLargeArchive):
		return &skill.Error{Op: "host.SkillArchive", Code: skill.PayloadTooLarge, Subject: name, Message: fmt.Sprintf("the skill %s is too large for a download; the limit is %d bytes", name, maxSkillArchive)}
	case err != nil:
		return &skill.Error{Op: "host.SkillArchive", Code: skill.Internal, Subject: name, Err: err, Message: "the skill " + name + " cannot be read"}
	}
	return nil
}
