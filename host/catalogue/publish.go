package catalogue

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"openskill/host/admission"
	"openskill/host/records"
	"openskill/host/store"
	"openskill/sdk/skill"
)

// Upload is the place of one upload under way. It is for one goroutine.
type Upload struct {
	store  *Store
	by     skill.Principal
	tenant string
	dir    string
	bytes  int64 // reserved
}

// Begin makes a place for an upload of a principal that may upload. It refuses a tenant that has
// used its quota up. The caller closes it.
func (s *Store) Begin(by skill.Principal) (*Upload, error) {
	if err := authorize(by, skill.ScopeUpload); err != nil {
		return nil, err
	}
	switch tenant := by.Tenant; {
	case tenant == "":
		return nil, &skill.Error{Op: "catalogue.Begin", Code: skill.Forbidden, Message: "uploads require a tenant"}
	case store.Plain(tenant) != tenant:
		return nil, &skill.Error{Op: "catalogue.Begin", Code: skill.InvalidArgument, Subject: "tenant", Message: "the name of the tenant is not text that the database can hold"}
	}
	s.mu.RLock()
	err := s.room(by.Tenant, s.usage(by.Tenant).bytes, 1)
	s.mu.RUnlock()
	if err != nil {
		return nil, err
	}
	u, err := s.begin(by.Tenant)
	if err == nil {
		u.by = by
	}
	return u, err
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
		return nil, s.disk("catalogue.Begin", key{tenant: tenant}, err)
	}
	return &Upload{store: s, tenant: tenant, dir: dir}, nil
}

// File makes an empty file for a part of the upload as it comes in. The caller
// closes it; it is removed with the upload.
func (u *Upload) File() (*os.File, error) {
	f, err := os.CreateTemp(u.dir, "part-")
	if err != nil {
		return nil, u.store.disk("catalogue.File", key{tenant: u.tenant}, err)
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
	err := s.room(u.tenant, s.usage(u.tenant).bytes, bytes)
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

// usage is what a tenant has, by the records that are here; mu is held.
func (s *Store) usage(tenant string) (u usage) {
	for k, r := range s.skills {
		if k.tenant != tenant {
			continue
		}
		u.remembered++
		if len(r.live()) > 0 {
			u.skills++
		}
		for _, v := range r.kept() {
			u.bytes += v.bytes + v.packages.bytes
		}
	}
	return u
}

// Used gives the skills of a tenant and their bytes on the disk, and the most of each.
func (s *Store) Used(tenant string) (skills, mostSkills int, bytes, mostBytes int64) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	u := s.usage(tenant)
	return u.skills, s.o.Skills, u.bytes, s.o.Bytes
}

// room refuses bytes that a tenant, which uses some, has no room for; mu is held.
func (s *Store) room(tenant string, used, bytes int64) error {
	if used+s.reserved[tenant]+bytes <= s.o.Bytes {
		return nil
	}
	return &skill.Error{
		Op: "catalogue.room", Code: skill.PayloadTooLarge, Subject: "quota",
		Message: fmt.Sprintf("upload quota of %d bytes exceeded: %d used, %d more needed; delete unneeded versions (their bytes are freed after %s)",
			s.o.Bytes, used+s.reserved[tenant], bytes, minutes(s.o.Grace)),
		Details: map[string]any{"quota": "bytes", "limit": s.o.Bytes, "used": used},
	}
}

func minutes(d time.Duration) string { return d.Round(time.Second).String() }

// Publish puts on record that an admitted folder becomes a version of the tenant, disabled, and
// makes it one. Origin is where it came from. When it returns without an error the version is in
// the database, which is that of every host, whatever becomes of this one. The errors are CONFLICT
// for a version that is there already, and for a quota of numbers; PAYLOAD_TOO_LARGE for the quota
// of bytes.
func (u *Upload) Publish(ctx context.Context, a *admission.Admitted, origin string) (now skill.VersionState, err error) {
	d := &a.Skill.Descriptor
	change := records.Change{Tenant: u.tenant, Action: "skill.upload", Subject: string(d.ID), Details: map[string]string{"version": d.Version, "digest": a.Digest, "origin": origin}}
	err = records.Around(ctx, records.NewStore(u.store.o.DB), u.by, change, func() error {
		now, err = u.publish(ctx, a)
		return err
	})
	if err == nil {
		u.store.o.Log.InfoContext(ctx, "a version was uploaded", slog.String("tenant", skill.CleanText(u.tenant, 128)), slog.String("principal", skill.CleanText(u.by.ID, 128)),
			slog.String("skill_id", string(d.ID)), slog.String("version", d.Version), slog.String("digest", a.Digest), slog.String("origin", origin))
	}
	return now, err
}

func (u *Upload) publish(ctx context.Context, a *admission.Admitted) (skill.VersionState, error) {
	s, k := u.store, key{u.tenant, a.Skill.Descriptor.ID}
	if u.dir == "" {
		return skill.VersionState{}, errors.New("catalogue.Publish: the upload is closed")
	}
	if err := u.Check(a); err != nil { // before the disk is made to work
		return skill.VersionState{}, err
	}
	archive, err := u.File()
	if err != nil {
		return skill.VersionState{}, err
	}
	defer archive.Close()
	if err := s.o.Admission.Pack(archive, a.Folder); err != nil {
		return skill.VersionState{}, s.disk("catalogue.Publish", k, err)
	}
	defer s.bringing(s.folder(k, &version{digest: a.Digest}))()
	var v *version
	space := spaceOf(a.Folder)
	err = s.change(ctx, "catalogue.Publish", k, []blob{{a.Digest, archive}}, func(t *tx) error {
		before, err := t.record(k)
		if err != nil {
			return err
		}
		has, err := t.usage(k.tenant)
		if err != nil {
			return err
		}
		r := &record{key: k}
		if before != nil {
			r = before.clone()
		}
		s.mu.Lock()
		err = s.admits(u, r, a, space, has)
		s.mu.Unlock()
		if err != nil {
			return err
		}
		v = r.add(a, space, u.by.ID, s.o.Now())
		return t.save(r, before)
	})
	switch {
	case ctx.Err() != nil && skill.CodeOf(err) == skill.Internal:
		return skill.VersionState{}, &skill.Error{Op: "catalogue.Publish", Code: skill.Cancelled, Message: "the client disconnected during publishing; check whether the version exists", Err: err}
	case err != nil:
		return skill.VersionState{}, err
	}
	// The version is there. Where its files cannot be put here now, they are fetched like
	// those of another host.
	if err := s.arrive(k, v, a.Folder); err != nil {
		s.o.Log.Warn("could not store the files of an upload; fetching them again", slog.String("skill_id", string(k.id)), slog.String("error", err.Error()))
	}
	s.mu.Lock()
	s.reserved[u.tenant] -= u.bytes
	u.bytes = 0
	s.mu.Unlock()
	return v.public(k.id), nil
}

// bringing keeps others from fetching the files of a version, until the returned function is
// called.
func (s *Store) bringing(folder string) (done func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fetching[folder] = true
	return func() {
		s.mu.Lock()
		delete(s.fetching, folder)
		s.mu.Unlock()
		s.fetchMissing()
	}
}

// add makes a version of what was admitted, or brings one back. Of the same files that were
// quarantined before they were removed the quarantine holds.
func (r *record) add(a *admission.Admitted, space int64, by string, now time.Time) *version {
	name, last := a.Skill.Descriptor.Version, int64(0)
	var v *version
	for _, w := range r.versions {
		if last = max(last, w.position); w.version == name {
			v = w
		}
	}
	if v == nil || v.gone {
		was := v
		v = &version{version: name, digest: a.Digest, bytes: space, position: last + 1}
		if was != nil {
			v.quarantine = was.quarantine
			r.versions = slices.DeleteFunc(r.versions, func(w *version) bool { return w == was })
		}
		r.versions = append(r.versions, v)
	}
	v.deleted, v.enabled, v.approved, v.packages = time.Time{}, false, nil, locked{}
	v.uploadedBy, v.uploadedAt = skill.CleanText(by, 128), now
	return v
}

// Check says whether Publish would take an admitted folder now.
func (u *Upload) Check(a *admission.Admitted) error {
	s, k := u.store, key{u.tenant, a.Skill.Descriptor.ID}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errClosed
	}
	r := s.skills[k]
	if r == nil {
		r = &record{key: k}
	}
	return s.admits(u, r, a, spaceOf(a.Folder), s.usage(k.tenant))
}

// admits says whether a version can be added to a record, of a tenant that has so much; mu is
// held.
func (s *Store) admits(u *Upload, r *record, a *admission.Admitted, space int64, has usage) error {
	d, id := &a.Skill.Descriptor, r.key.id
	conflict := func(message string, details map[string]any) error {
		return &skill.Error{Op: "catalogue.Publish", Code: skill.Conflict, Subject: string(id), Message: message, Details: details}
	}
	if s.o.Reserved(id) {
		return conflict(fmt.Sprintf("id %s is taken by one of the operator's skills; choose another id in skill.yaml", id), nil)
	}
	same := map[string]any{"id": string(id), "version": d.Version}
	i := slices.IndexFunc(r.versions, func(v *version) bool { return v.version == d.Version })
	if i >= 0 && r.versions[i].deleted.IsZero() {
		v := r.versions[i]
		same["digest"], same["state"] = v.digest, string(v.state())
		if v.digest == a.Digest {
			return conflict(fmt.Sprintf("version %s of %s already exists with the same digest; nothing to upload", d.Version, id), same)
		}
		return conflict(fmt.Sprintf("version %s of %s already exists with other files; raise the version in skill.yaml", d.Version, id), same)
	}
	switch {
	case i >= 0 && r.versions[i].digest != a.Digest:
		return conflict(fmt.Sprintf("version %s of %s was deleted and had other files; raise the version in skill.yaml", d.Version, id), same)
	case i >= 0 && !r.versions[i].gone:
		return nil
	case i < 0 && len(r.versions) >= maxRemembered:
		return conflict(fmt.Sprintf("%s has reached the limit of %d versions; choose another id in skill.yaml", id, maxRemembered), map[string]any{"quota": "versions", "limit": maxRemembered})
	case len(r.versions) == 0 && has.remembered >= s.o.Skills+maxGoneSkills:
		return conflict(fmt.Sprintf("limit reached: the ids of %d deleted skills stay reserved; reuse one of them", maxGoneSkills), map[string]any{"quota": "skills", "limit": maxGoneSkills})
	}
	if len(r.kept()) >= s.o.Versions {
		return conflict(fmt.Sprintf("version quota of %d exceeded; delete a version of %s first (freed after %s)", s.o.Versions, id, minutes(s.o.Grace)),
			map[string]any{"quota": "versions", "limit": s.o.Versions})
	}
	if len(r.live()) == 0 && has.skills >= s.o.Skills {
		return conflict(fmt.Sprintf("skill quota of %d exceeded; delete all versions of an unneeded skill", s.o.Skills),
			map[string]any{"quota": "skills", "limit": s.o.Skills})
	}
	s.reserved[u.tenant] -= u.bytes // its own reservation does not stand against it
	err := s.room(u.tenant, has.bytes, space)
	if err == nil {
		u.bytes = space
	}
	s.reserved[u.tenant] += u.bytes
	return err
}
