package app

import (
	"context"
	"io"
	"slices"

	"openskill/host/agentskills"
	"openskill/host/catalogue"
	"openskill/host/manifest"
	"openskill/sdk/skill"
)

// uploadChanges is the revision of all uploads.
func (h *Host) uploadChanges() uint64 {
	if h.uploads == nil {
		return 0
	}
	return h.uploads.Changes()
}

// uploadedAgents lists uploaded Agent Skills for package agentskills.
func (h *Host) uploadedAgents() (all []agentskills.Upload, whole bool) {
	if h.uploads == nil {
		return nil, true
	}
	found, whole := h.uploads.AgentSkills()
	all = make([]agentskills.Upload, len(found))
	for i, s := range found {
		all[i] = agentskills.Upload{Folder: s.Folder, Digest: s.Descriptor.Digest, Version: s.Descriptor.Version, Owner: s.Owner, Shared: s.Shared}
	}
	return all, whole
}

// ReadUpload reads the folder of an upload: of a skill, or of an Agent Skill.
func ReadUpload(o manifest.Options) func(folder string) (*manifest.Skill, []manifest.Problem) {
	return func(folder string) (*manifest.Skill, []manifest.Problem) {
		if manifest.Manifest(folder) != manifest.ManifestFile {
			return agentskills.ReadUpload(folder, o)
		}
		return manifest.ReadFolder(folder, o)
	}
}

// upload returns the version that an uploaded Agent Skill is, which may have been disabled or replaced since the list
// was made; nil if it was not uploaded. The error is a *skill.Error.
func (h *Host) upload(s *agentskills.FileSkill) (*manifest.Skill, error) {
	of := s.Upload()
	if of == nil {
		return nil, nil
	}
	found, err := h.uploads.Get(of.Owner, skill.ID(s.Frontmatter().Name), of.Version)
	if err == nil && (!found.Descriptor.Enabled || found.Descriptor.Digest != of.Digest) {
		err = &skill.Error{Op: "host.upload", Code: skill.NotFound, Subject: s.Frontmatter().Name, Message: "this version of the skill was disabled or replaced meanwhile; retry"}
	}
	return found, err
}

// freeName refuses an Agent Skill whose name is that of one of the operator's.
func (h *Host) freeName(ctx context.Context, p skill.Principal, s *manifest.Skill) error {
	if s.Descriptor.Runner != skill.Agentic {
		return nil
	}
	f, err := h.agents.Folder(ctx, skill.Principal{ID: p.ID, Tenant: p.Tenant, Scopes: []string{skill.ScopeRead}}, string(s.Descriptor.ID))
	switch {
	case err != nil && skill.CodeOf(err) != skill.NotFound:
		return err
	case err == nil && f.Upload() == nil && f.Owner() == "":
		return &skill.Error{
			Op: "host.upload", Code: skill.Conflict, Subject: string(s.Descriptor.ID),
			Message: "the name " + string(s.Descriptor.ID) + " is that of one of the operator's Agent Skills; choose another name in SKILL.md",
		}
	}
	return nil
}

// Uploaded implements [api.Uploads].
func (u *uploads) Uploaded(p skill.Principal, id skill.ID) ([]catalogue.Uploaded, error) {
	list := []catalogue.Uploaded{}
	for _, o := range u.UploadsOf(p.Tenant, id) {
		if u.ahead.host.skills.Has(o.ID) {
			continue // the name means one of the operator's skills
		}
		usable := o.Versions[:0]
		for _, v := range o.Versions {
			if id != "" || v.Version == o.Default { // a list shows no other description
				found, err := u.Get(p.Tenant, o.ID, v.Version)
				switch {
				case skill.CodeOf(err) == skill.NotFound, err == nil && found.Descriptor.Runner != skill.Agentic:
					continue // it is being fetched, or another kind of skill
				case err != nil:
					return nil, err
				}
				v.Description = found.Descriptor.Description
			}
			usable = append(usable, v)
		}
		if o.Versions = usable; slices.ContainsFunc(usable, func(v catalogue.UploadedVersion) bool { return v.Version == o.Default }) {
			list = append(list, o)
		}
	}
	return list, nil
}

// Archive implements [api.Uploads].
func (u *uploads) Archive(ctx context.Context, p skill.Principal, id skill.ID, version string, w io.Writer) error {
	s, err := u.own(p, id, version)
	if err != nil {
		return err
	}
	return packed(ctx, w, s.Folder, string(id), nil)
}
