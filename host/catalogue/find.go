package catalogue

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"syscall"
	"time"

	"openskill/host/manifest"
	"openskill/sdk/skill"
)

// cache holds what was read of versions' folders, which do not change.
type cache struct {
	mu   sync.Mutex
	have map[string]*known // by folder
}

// known is what is known of one folder.
type known struct {
	mu     sync.Mutex
	skill  *manifest.Skill // nil: not read yet, or fault
	fault  *fault
	paths  []string // of the folder and all in it, when it was read
	stamp  uint64   // of paths, right before
	looked time.Time
}

func (c *cache) of(folder string) *known {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.have == nil {
		c.have = map[string]*known{}
	}
	k := c.have[folder]
	if k == nil {
		k = &known{}
		c.have[folder] = k
	}
	return k
}

func (c *cache) forget(folder string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.have, folder)
}

// A fault is why the files of a version cannot be used, for good.
type fault struct {
	why     string
	changed bool // they are not those that were admitted
}

func (f *fault) Error() string { return f.why }

// load gives the skill of a folder, which must have the digest. The files are read
// the first time, and again when they look different. The error is a *fault, or else
// something of the host's own that passes.
func (s *Store) load(folder, digest string) (*manifest.Skill, error) {
	k := s.loaded.of(folder)
	k.mu.Lock()
	defer k.mu.Unlock()
	if why := s.refusal(folder); why != "" {
		return nil, &fault{why, false}
	}
	now := s.o.Now()
	if k.skill != nil && len(k.paths) > manyFiles && now.Sub(k.looked) < lookAgain {
		return k.skill, nil
	}
	if k.paths != nil {
		if seen, err := stamp(k.paths); err == nil && seen == k.stamp {
			k.looked = now
			switch {
			case k.fault != nil:
				return nil, k.fault
			case k.skill != nil:
				return k.skill, nil
			}
		}
	}
	k.skill, k.fault, k.paths = nil, nil, nil
	paths, err := survey(folder)
	var seen uint64
	if err == nil {
		seen, err = stamp(paths)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, &fault{"its files do not match the admitted ones: some are missing", true}
	case err != nil:
		return nil, fmt.Errorf("catalogue: look at a version's files: %w", err)
	}
	k.paths, k.stamp, k.looked = paths, seen, now
	found, problems := s.o.Read(folder)
	if len(problems) == 0 && found.Descriptor.Digest == digest {
		k.skill = found
		return found, nil
	}
	// Not every reason for a problem is one against the files.
	is, err := manifest.Digest(folder)
	switch _, ok := errors.AsType[syscall.Errno](err); {
	case ok && !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("catalogue: read a version's files: %w", err)
	case err != nil:
		k.fault = &fault{"its files do not match the admitted ones: " + plain(err), true}
	case is != digest:
		k.fault = &fault{"its files do not match the admitted ones: their digest is " + is, true}
	case len(problems) > 0:
		k.fault = &fault{"no longer accepted by this host: " + problems[0].Message, false}
	default:
		return nil, errors.New("catalogue: a version's files changed while they were read")
	}
	return nil, k.fault
}

// of finds the skill that an id means to a tenant.
func (s *Store) of(tenant string, id skill.ID) *record {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if r := s.skills[key{tenant, id}]; r != nil && tenant != "" && len(r.live()) > 0 {
		return r
	}
	if owner, ok := s.approved[id]; ok && !s.closed {
		return s.skills[key{owner, id}]
	}
	return nil
}

// Own names the versions of a skill that a tenant has uploaded and not deleted, whatever
// was decided about them since.
func (s *Store) Own(tenant string, id skill.ID) []string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	r := s.skills[key{tenant, id}]
	if r == nil {
		return nil
	}
	var names []string
	for _, v := range r.live() {
		names = append(names, v.version)
	}
	return names
}

// Uploaded is what a tenant has of a skill that it uploaded.
type Uploaded struct {
	ID       skill.ID
	Default  string            // the version of calls without a version; the newest if there is none
	Versions []UploadedVersion // without deleted ones, in the order of their upload; at least one
}

// UploadedVersion is one version of an [Uploaded].
type UploadedVersion struct {
	Version, Description string
	At                   time.Time
}

// UploadsOf returns what a tenant has of a skill, or of all its skills if id is "", without descriptions. The order
// is arbitrary.
func (s *Store) UploadsOf(tenant string, id skill.ID) (list []Uploaded) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for k, r := range s.skills {
		live := r.live()
		if k.tenant != tenant || id != "" && k.id != id || len(live) == 0 {
			continue
		}
		u := Uploaded{ID: k.id, Default: r.currentOr().version}
		for _, v := range live {
			u.Versions = append(u.Versions, UploadedVersion{Version: v.version, At: v.uploadedAt})
		}
		list = append(list, u)
	}
	return list
}

// Get finds a version for a caller of a tenant; "" is the current one. A version
// that is disabled is found, and its Descriptor says so. The files are those that
// were admitted: they are compared when they look different from before. The error
// is an *skill.Error with the code NOT_FOUND, or INTERNAL where the host cannot read
// them now.
func (s *Store) Get(tenant string, id skill.ID, name string) (*manifest.Skill, error) {
	r := s.of(tenant, id)
	if r == nil {
		return nil, notFound(id)
	}
	v, may := r.choose(tenant, name)
	switch {
	case v == nil:
		var names []string
		for _, v := range r.shown(tenant) {
			names = append(names, v.version)
		}
		return nil, noVersion(id, names)
	case v.absent:
		return nil, onItsWay(v, id)
	}
	return s.skill(r, v, may)
}

// skill makes what the door and the catalogue need of a version. One whose files are
// not what they were is quarantined, and all that is known of it is its name.
func (s *Store) skill(r *record, v *version, may bool) (*manifest.Skill, error) {
	k := r.key
	found, err := s.load(s.folder(k, v), v.digest)
	var broken *fault
	switch {
	case errors.As(err, &broken) && broken.changed:
		s.lost(k, v, broken.why)
		return nil, onItsWay(v, k.id)
	case errors.As(err, &broken):
		w := *v
		if w.quarantine == nil {
			w.enabled, w.quarantine = false, &Mark{By: byHost, Reason: broken.why}
		}
		found = &manifest.Skill{Owner: k.tenant, Descriptor: skill.Descriptor{ID: k.id, Description: "This version cannot be used.", InputSchema: anyObject, OutputSchema: anyObject}}
		v = &w
	case err != nil:
		return nil, s.disk("catalogue.Get", k, err)
	}
	out := *found
	var requires []string
	if broken == nil {
		if out.Packages, requires, err = s.usePackages(k, v); err != nil {
			return nil, err
		}
	}
	d := &out.Descriptor
	out.Owner = k.tenant
	d.Version, d.Digest, d.Trust = v.version, v.digest, skill.Community
	d.State, d.Shared = v.state(), v.approved != nil
	if v.quarantine != nil {
		d.Reason = v.quarantine.Reason
	}
	if !may && d.State == skill.StateEnabled {
		d.State = skill.StateDisabled // it may be called by its name only
	}
	d.Enabled = d.State == skill.StateEnabled
	if len(requires) > 0 {
		d.Requires = slices.Concat(d.Requires, requires)
	}
	return &out, nil
}

var anyObject = []byte(`{"type":"object"}`)

// List gives the current version of every skill that a tenant finds, in the order
// of ids. The error is the host's own.
func (s *Store) List(tenant string) ([]*manifest.Skill, error) {
	s.mu.RLock()
	ids := map[skill.ID]bool{}
	for k := range s.skills {
		if k.tenant == tenant {
			ids[k.id] = true
		}
	}
	for id := range s.approved {
		ids[id] = true
	}
	s.mu.RUnlock()
	list := make([]*manifest.Skill, 0, len(ids))
	for id := range ids {
		found, err := s.Get(tenant, id, "")
		switch {
		case err == nil:
			list = append(list, found)
		case skill.CodeOf(err) != skill.NotFound: // it may have gone meanwhile
			return nil, err
		}
	}
	slices.SortFunc(list, func(a, b *manifest.Skill) int { return cmp.Compare(a.Descriptor.ID, b.Descriptor.ID) })
	return list, nil
}

// AgentSkill is an uploaded Agent Skill.
type AgentSkill struct {
	*manifest.Skill
	Shared bool // other tenants find this version
}

// AgentSkills returns the Agent Skills of all tenants that can be used: of each the current version, and the one that
// other tenants find, if that is another one. whole is false if some cannot be read now.
func (s *Store) AgentSkills() (list []AgentSkill, whole bool) {
	whole = true
	s.mu.RLock()
	records := slices.Collect(maps.Values(s.skills))
	s.mu.RUnlock()
	for _, r := range records {
		own, may := r.choose(r.key.tenant, "")
		if !may {
			own = nil
		}
		others, may := r.choose("", "")
		if !may || r.key.tenant == "" {
			others = nil
		}
		versions := []*version{own, others}
		if own == others {
			versions = versions[:1]
		}
		for _, v := range versions {
			if v == nil || v.absent || manifest.Manifest(s.folder(r.key, v)) == manifest.ManifestFile {
				continue // it is not here, or another kind of skill
			}
			found, err := s.skill(r, v, true)
			switch {
			case skill.CodeOf(err) == skill.NotFound: // it is being fetched again
			case err != nil:
				s.o.Log.Warn("an uploaded Agent Skill cannot be read, and is left out", slog.String("skill_id", string(r.key.id)), slog.String("error", err.Error()))
				whole = false
			case found.Descriptor.Runner == skill.Agentic && found.Descriptor.Enabled:
				list = append(list, AgentSkill{found, v == others})
			}
		}
	}
	return list, whole
}

// Versions gives every version that a tenant finds, in the order of their upload.
func (s *Store) Versions(tenant string, id skill.ID) ([]*manifest.Skill, error) {
	r := s.of(tenant, id)
	if r == nil {
		return nil, notFound(id)
	}
	var list []*manifest.Skill
	for _, v := range r.shown(tenant) {
		found, err := s.skill(r, v, true)
		switch {
		case skill.CodeOf(err) == skill.NotFound:
			continue // it is being fetched again
		case err != nil:
			return nil, err
		}
		list = append(list, found)
	}
	return list, nil
}
