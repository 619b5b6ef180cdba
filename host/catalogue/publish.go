package catalogue

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"openskill/host/catalogue/manifest"
	"openskill/sdk/skill"
)

// Upload is the place of one upload under way. It is for one goroutine.
type Upload struct {
	store  *Store
	tenant string
	dir    string
	bytes  int64 // reserved
}

// Admitted is what admission made of an upload.
type Admitted struct {
	Folder string // below [Upload.Staging]
	Skill  *manifest.Skill
	Digest string
}

func (v *version) public(id skill.ID) skill.VersionState {
	p := skill.VersionState{ID: id, Version: v.Version, Digest: v.Digest, State: v.state(), Shared: v.Approved != nil}
	if v.Quarantine != nil {
		p.Reason = v.Quarantine.Word
	}
	return p
}

// Begin makes a place for an upload of a tenant. It refuses a tenant that has used
// its quota up. Whoever gets it closes it.
func (s *Store) Begin(tenant string) (*Upload, error) {
	if tenant == "" {
		return nil, &skill.Error{Op: "versions.Begin", Code: skill.Forbidden, Message: "uploads require a tenant"}
	}
	s.mu.RLock()
	used, _ := s.used(tenant)
	err := s.room(tenant, used, 1)
	s.mu.RUnlock()
	if err != nil {
		return nil, err
	}
	return s.begin(tenant)
}

// begin makes the place.
func (s *Store) begin(tenant string) (*Upload, error) {
	s.mu.RLock()
	closed := s.closed
	s.mu.RUnlock()
	if closed {
		return nil, errClosed
	}
	dir, err := os.MkdirTemp(s.staging(), "")
	if errors.Is(err, fs.ErrNotExist) { // someone has tidied up
		if err = os.MkdirAll(s.staging(), 0o700); err == nil {
			dir, err = os.MkdirTemp(s.staging(), "")
		}
	}
	if err == nil {
		err = os.Mkdir(filepath.Join(dir, "out"), 0o700)
	}
	if err != nil {
		if dir != "" {
			s.discard(dir)
		}
		return nil, s.disk("versions.Begin", key{tenant: tenant}, err)
	}
	return &Upload{store: s, tenant: tenant, dir: dir}, nil
}

// File makes an empty file for a part of the upload as it comes in. The caller
// closes it; it is removed with the upload.
func (u *Upload) File() (*os.File, error) {
	f, err := os.CreateTemp(u.dir, "part-")
	if err != nil {
		return nil, u.store.disk("versions.File", key{tenant: u.tenant}, err)
	}
	return f, nil
}

// Staging is an empty folder for admission, in the store's file system.
func (u *Upload) Staging() string { return filepath.Join(u.dir, "out") }

// Reserve counts bytes against the tenant's quota while the upload is under way,
// instead of what it reserved before.
func (u *Upload) Reserve(bytes int64) error {
	s := u.store
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reserved[u.tenant] -= u.bytes
	used, _ := s.used(u.tenant)
	err := s.room(u.tenant, used, bytes)
	if err == nil {
		u.bytes = bytes
	}
	s.reserved[u.tenant] += u.bytes
	return err
}

// Close frees what the upload has reserved and removes what it left. It may be
// called twice.
func (u *Upload) Close() error {
	s := u.store
	s.mu.Lock()
	if s.reserved[u.tenant] -= u.bytes; s.reserved[u.tenant] <= 0 {
		delete(s.reserved, u.tenant)
	}
	u.bytes = 0
	s.mu.Unlock()
	if u.dir != "" {
		s.discard(u.dir)
		u.dir = ""
	}
	return nil
}

// used is the bytes of a tenant's versions on disk, the deleted ones included until
// their files are gone; mu is held.
func (s *Store) used(tenant string) (bytes int64, skills int) {
	for k, st := range s.skills {
		if k.tenant != tenant {
			continue
		}
		if len(st.live()) > 0 {
			skills++
		}
		for _, v := range st.onDisk() {
			bytes += v.Size
		}
	}
	return bytes, skills
}

// Used gives the skills of a tenant and their bytes on the disk, and the most of each.
func (s *Store) Used(tenant string) (skills, mostSkills int, bytes, mostBytes int64) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	bytes, skills = s.used(tenant)
	return skills, s.o.Skills, bytes, s.o.Bytes
}

// room refuses bytes that a tenant, which uses some, has no room for; mu is held.
func (s *Store) room(tenant string, used, bytes int64) error {
	if used+s.reserved[tenant]+bytes <= s.o.Bytes {
		return nil
	}
	return &skill.Error{
		Op: "versions.room", Code: skill.PayloadTooLarge, Subject: "quota",
		Message: fmt.Sprintf("upload quota of %d bytes exceeded: %d used, %d more needed; delete unneeded versions (their bytes are freed after %s)",
			s.o.Bytes, used+s.reserved[tenant], bytes, minutes(s.o.Grace)),
		Details: map[string]any{"quota": "bytes", "limit": s.o.Bytes, "used": used},
	}
}

func minutes(d time.Duration) string { return d.Round(time.Second).String() }

// Publish makes an admitted folder a version of the tenant, disabled. When it
// returns without an error the version is on the disk. The errors are CONFLICT for a
// version that is there already, and for a quota of numbers; PAYLOAD_TOO_LARGE for
// the quota of bytes.
func (u *Upload) Publish(ctx context.Context, a *Admitted, by string) (skill.VersionState, error) {
	s, d := u.store, &a.Skill.Descriptor
	k := key{u.tenant, d.ID}
	if u.dir == "" {
		return skill.VersionState{}, errors.New("versions.Publish: the upload is closed")
	}
	space := spaceOf(a.Folder)
	if _, err := s.takes(u, k, a, space); err != nil { // before the disk is made to work
		return skill.VersionState{}, err
	}
	if s.shared != nil {
		return u.publishShared(ctx, k, a, space, by)
	}
	if err := syncTree(a.Folder); err != nil {
		return skill.VersionState{}, s.disk("versions.Publish", k, err)
	}
	s.change.Lock()
	defer s.change.Unlock()
	if ctx.Err() != nil {
		return skill.VersionState{}, &skill.Error{Op: "versions.Publish", Code: skill.Cancelled, Message: "the client disconnected before the upload was published", Err: ctx.Err()}
	}
	st, err := s.takes(u, k, a, space)
	if err != nil {
		return skill.VersionState{}, err
	}
	restored := st.deleted(d.Version) != nil
	v := st.add(a, space, by, s.o.Now().UTC())

	folder := filepath.Join(s.at(k), v.folder())
	if err := s.place(k, a.Folder, folder, restored); err != nil {
		return skill.VersionState{}, s.disk("versions.Publish", k, err)
	}
	if err := st.write(s.at(k)); err != nil {
		if !restored {
			s.discard(folder)
		}
		s.forgetEmpty(k)
		return skill.VersionState{}, s.disk("versions.Publish", k, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reserved[u.tenant] -= u.bytes
	u.bytes = 0
	delete(s.garbage, folder)
	s.skills[k] = st
	s.index(k.tenant)
	return v.public(k.id), nil
}

// add makes a version of what was admitted, or brings one back whose files are still
// there.
func (st *state) add(a *Admitted, space int64, by string, now time.Time) *version {
	name := a.Skill.Descriptor.Version
	v := st.deleted(name)
	if v == nil {
		v = &version{Version: name, Digest: a.Digest, Size: space, Quarantine: st.remembered(name, a.Digest)}
		st.Versions = append(st.Versions, v)
	}
	v.Deleted, v.Enabled, v.Approved = nil, false, nil
	v.UploadedBy, v.UploadedAt = skill.CleanText(by, 128), now
	return v
}

// Check says whether Publish would take an admitted folder now.
func (u *Upload) Check(a *Admitted) error {
	_, err := u.store.takes(u, key{u.tenant, a.Skill.Descriptor.ID}, a, spaceOf(a.Folder))
	return err
}

// deleted gives the version of a name whose files are still there, or nil.
func (st *state) deleted(name string) *version {
	for _, v := range st.Versions {
		if v.Version == name && v.Deleted != nil && !v.Gone {
			return v
		}
	}
	return nil
}

// remembered takes what is known of a version whose files are gone out of the state,
// and gives its quarantine if these are the same files again.
func (st *state) remembered(name, digest string) (q *Decision) {
	st.Versions = slices.DeleteFunc(st.Versions, func(v *version) bool {
		if v.Version == name && v.Gone && v.Digest == digest {
			q = v.Quarantine
		}
		return v.Version == name && v.Gone
	})
	return q
}

// remembered is how many skills of a tenant there are or have been; mu is held.
func (s *Store) remembered(tenant string) (n int) {
	for k := range s.skills {
		if k.tenant == tenant {
			n++
		}
	}
	return n
}

// takes says whether a version can be added that takes space on the disk, and gives a
// copy of the skill's state.
func (s *Store) takes(u *Upload, k key, a *Admitted, space int64) (*state, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errClosed
	}
	st := s.skills[k]
	if st == nil {
		st = &state{Format: format, Tenant: k.tenant, ID: k.id}
	}
	st = st.clone()
	bytes, skills := s.used(k.tenant)
	return st, s.admits(u, st, a, space, bytes, skills)
}

// admits is takes for a state that is known, of a tenant that has these bytes and
// skills; mu is held.
func (s *Store) admits(u *Upload, st *state, a *Admitted, space, bytes int64, skills int) error {
	d, k := &a.Skill.Descriptor, key{st.Tenant, st.ID}
	conflict := func(message string, details map[string]any) error {
		return &skill.Error{Op: "versions.Publish", Code: skill.Conflict, Subject: string(k.id), Message: message, Details: details}
	}
	if s.o.Reserved(k.id) {
		return conflict(fmt.Sprintf("id %s is taken by one of the operator's skills; choose another id in skill.yaml", k.id), nil)
	}
	same := map[string]any{"id": string(k.id), "version": d.Version}
	if v := st.find(d.Version); v != nil {
		same["digest"], same["state"] = v.Digest, string(v.state())
		if v.Digest == a.Digest {
			return conflict(fmt.Sprintf("version %s of %s already exists with the same digest; nothing to upload", d.Version, k.id), same)
		}
		return conflict(fmt.Sprintf("version %s of %s already exists with other files; raise the version in skill.yaml", d.Version, k.id), same)
	}
	i := slices.IndexFunc(st.Versions, func(v *version) bool { return v.Version == d.Version }) // deleted
	switch {
	case i >= 0 && st.Versions[i].Digest != a.Digest:
		return conflict(fmt.Sprintf("version %s of %s was deleted and had other files; raise the version in skill.yaml", d.Version, k.id), same)
	case i >= 0 && !st.Versions[i].Gone:
		return nil
	case i < 0 && len(st.Versions) >= maxRemembered:
		return conflict(fmt.Sprintf("%s has reached the limit of %d versions; choose another id in skill.yaml", k.id, maxRemembered), map[string]any{"quota": "versions", "limit": maxRemembered})
	case len(st.Versions) == 0 && s.remembered(k.tenant) >= s.o.Skills+maxGoneSkills:
		return conflict(fmt.Sprintf("limit reached: the ids of %d deleted skills stay reserved; reuse one of them", maxGoneSkills), map[string]any{"quota": "skills", "limit": maxGoneSkills})
	}
	if len(st.onDisk()) >= s.o.Versions {
		return conflict(fmt.Sprintf("version quota of %d exceeded; delete a version of %s first (freed after %s)", s.o.Versions, k.id, minutes(s.o.Grace)),
			map[string]any{"quota": "versions", "limit": s.o.Versions})
	}
	if len(st.live()) == 0 && skills >= s.o.Skills {
		return conflict(fmt.Sprintf("skill quota of %d exceeded; delete all versions of an unneeded skill", s.o.Skills),
			map[string]any{"quota": "skills", "limit": s.o.Skills})
	}
	s.reserved[k.tenant] -= u.bytes // its own reservation does not stand against it
	err := s.room(k.tenant, bytes, space)
	if err == nil {
		u.bytes = space
	}
	s.reserved[k.tenant] += u.bytes
	return err
}

// place brings the files to where the state will say that they are. Until then they
// are nobody's.
func (s *Store) place(k key, from, to string, restored bool) error {
	if restored {
		return nil // they never left
	}
	for _, dir := range []string{s.Folder(k.tenant), s.at(k)} {
		if err := makeDir(dir); err != nil {
			return err
		}
	}
	s.mu.RLock()
	first := s.skills[k] == nil
	s.mu.RUnlock()
	if first { // so that a state that is not there is always one that was lost
		if err := leftAlone(s.at(k)); err != nil {
			return err
		}
		if err := (&state{Format: format, Tenant: k.tenant, ID: k.id, Versions: []*version{}}).write(s.at(k)); err != nil {
			s.forgetEmpty(k)
			return err
		}
	}
	if err := removeAll(to); err != nil { // what a failure before this one left
		return err
	}
	if err := move(from, to); err != nil {
		s.forgetEmpty(k)
		return err
	}
	return nil
}

// leftAlone refuses the folder of a skill whose record was damaged and could not be
// rescued: what it said, and the versions beside it, are for somebody to look at.
func leftAlone(folder string) error {
	_, err := readState(folder)
	names, listErr := os.ReadDir(folder)
	switch {
	case listErr != nil:
		return listErr
	case err == nil, errors.Is(err, fs.ErrNotExist) && !slices.ContainsFunc(names, isVersion):
		return nil
	}
	return fmt.Errorf("the record of this skill is damaged; it was not changed: %w", err)
}

// forgetEmpty removes the folder of a skill that has no version. Another upload may
// make it again, so it is not tried again later: the next start does.
func (s *Store) forgetEmpty(k key) {
	s.mu.RLock()
	st := s.skills[k]
	s.mu.RUnlock()
	if st == nil || len(st.Versions) == 0 {
		_ = removeAll(s.at(k)) // best effort, as said
	}
}
