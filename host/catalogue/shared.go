package catalogue

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"openskill/sdk/skill"
)

// Topic is what changes of shared uploads are announced by.
const Topic = "uploads"

// Shared is what several hosts keep their uploads in together: records of skills, and
// archives of files. Implementations are safe for concurrent use, by several processes
// too; their errors are as the database gave them.
type Shared interface {
	// Records gives every record that was changed after a revision, in the order of the
	// changes, and the revision up to which that is all.
	Records(ctx context.Context, after uint64) (records []Record, upTo uint64, err error)

	// Change has one record changed, while nobody changes any other. do gets what there
	// is; what it gives is written together with files, all or nothing, and its error
	// comes back as it is, with nothing changed. It is called again where the database
	// wants the transaction again. files may be nil; what is there already of the digest
	// is not written again.
	Change(ctx context.Context, tenant string, id skill.ID, files *Files, do func(now Now) (*Next, error)) (revision uint64, err error)

	// Archive writes the archive of a digest; fs.ErrNotExist is of one that is not there.
	Archive(ctx context.Context, digest string, to io.Writer) error

	// Tidy removes archives that no record names, and that none was written of since.
	Tidy(ctx context.Context, since time.Time) error
}

// Record is what is so of one skill, as this package wrote it.
type Record struct {
	Tenant   string
	ID       skill.ID
	Revision uint64
	State    []byte
}

// Now is what a change begins with.
type Now struct {
	State    []byte // nil: there is no record
	Bytes    int64  // of all versions of all skills of the tenant
	Skills   int    // of the tenant that have a version
	Approved string // tenant of whom a version of this id is approved for all; "": none
}

// Next is what a change ends with.
type Next struct {
	State    []byte // nil: the record is removed
	Live     bool   // the skill has a version
	Approved bool   // one of them is for all tenants
	Versions []Stored
}

// Stored is one version whose files are kept.
type Stored struct {
	Version string
	Digest  string
	Bytes   int64
}

// Files are those of one version, as the archive that Options.Pack writes.
type Files struct {
	Digest string
	From   io.ReadSeeker // read from its beginning, perhaps more than once
}

const (
	// patience bounds one change of the database.
	patience = 30 * time.Second
	// fetchers is how many versions are fetched and admitted at once.
	fetchers = 4
	// The time between tries to fetch a version.
	firstRetry = time.Second
	lastRetry  = 30 * time.Second
	// unnamed is how long an archive stays that no record names.
	unnamed = time.Hour
)

// sharing is what a store that shares its uploads knows beside them; mu is held for it.
type sharing struct {
	revision  uint64             // up to which records were read
	newest    uint64             // of all changes that were seen
	revisions map[key]uint64     // of Store.skills
	here      map[string]bool    // folders of versions that are whole
	fetching  map[string]bool    // folders
	refused   map[string]string  // why this host does not accept the files, by folder
	owed      map[owed]*Decision // quarantines that could not be written
}

type owed struct {
	key
	version string
}

// openShared reads the records, and finds which files are here. What is on disk is a
// copy of the database: what no record names is removed, and what is missing is fetched
// in the background.
func (s *Store) openShared() error {
	s.shared = &sharing{
		revisions: map[key]uint64{}, here: map[string]bool{}, fetching: map[string]bool{}, refused: map[string]string{}, owed: map[owed]*Decision{},
	}
	if err := s.clearStaging(); err != nil {
		return err
	}
	found, err := fs.Glob(os.DirFS(s.o.Dir), "*/*/*@*")
	if err != nil {
		return err
	}
	for i, name := range found {
		found[i] = filepath.Join(s.o.Dir, name)
		s.shared.here[found[i]] = true
	}
	ctx, stop := context.WithTimeout(s.ctx, patience)
	defer stop()
	if err := s.Refresh(ctx); err != nil {
		return fmt.Errorf("cannot read the upload records: %w", err)
	}
	s.change.Lock()
	defer s.change.Unlock()
	s.mu.RLock()
	named := map[string]bool{}
	for k, st := range s.skills {
		for _, v := range st.onDisk() {
			named[s.folder(k, v)] = true
		}
	}
	s.mu.RUnlock()
	for _, folder := range found {
		if !named[folder] {
			s.drop(folder)
		}
	}
	return nil
}

func (s *Store) folder(k key, v *version) string { return filepath.Join(s.at(k), v.folder()) }

// Refresh reads what other hosts have changed, and begins to fetch what is missing here.
// A store that is not shared has nothing to read.
func (s *Store) Refresh(ctx context.Context) error {
	if s.shared == nil {
		return nil
	}
	s.refreshing.Lock()
	defer s.refreshing.Unlock()
	s.payOwed()
	s.mu.RLock()
	after, newest := s.shared.revision, s.shared.newest
	s.mu.RUnlock()
	records, upTo, err := s.o.Shared.Records(ctx, after)
	if err == nil && upTo < newest { // the database has come back without its last changes
		if records, upTo, err = s.o.Shared.Records(ctx, 0); err == nil {
			s.forgetLost(records)
		}
	}
	if err != nil {
		return err
	}
	for _, r := range records {
		st, err := decodeState(r.State, key{r.Tenant, r.ID})
		if err != nil { // of a later release, or written by hand: nothing of it is used
			s.report(s.at(key{r.Tenant, r.ID}), "its record in the database "+err.Error()+"; this host does not serve the skill")
			st = nil
		}
		s.apply(key{r.Tenant, r.ID}, st, r.Revision)
	}
	s.mu.Lock()
	s.shared.revision = upTo
	s.mu.Unlock()
	s.fetchMissing()
	return nil
}

// forgetLost goes back to what the database has, which are all of its records: what this
// host knows beyond them was never said.
func (s *Store) forgetLost(records []Record) {
	has := map[key]bool{}
	for _, r := range records {
		has[key{r.Tenant, r.ID}] = true
	}
	s.mu.Lock()
	clear(s.shared.revisions)
	s.shared.newest = 0
	var lost []key
	for k := range s.skills {
		if !has[k] {
			lost = append(lost, k)
		}
	}
	s.mu.Unlock()
	s.o.Log.Error("the upload database lost changes seen by this host; using the database's state", slog.Int("skills", len(lost)))
	for _, k := range lost {
		s.apply(k, nil, 0)
	}
}

// sync is Refresh for a decision: it must know what other hosts have just taken in. What
// the database cannot tell now, the decision itself will find.
//
// decisions have no context; the store's own ends with it
func (s *Store) sync() {
	if s.shared == nil {
		return
	}
	ctx, stop := context.WithTimeout(s.ctx, patience)
	defer stop()
	if err := s.Refresh(ctx); err != nil {
		s.o.Log.Warn("cannot read the uploads of other hosts", slog.String("error", err.Error()))
	}
}

// decodeState reads a record.
func decodeState(b []byte, k key) (*state, error) {
	st := &state{}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(st); err != nil {
		return nil, errors.New("is not JSON of this openskill version")
	}
	if st.Tenant != k.tenant {
		return nil, errors.New("is about another tenant")
	}
	return st, st.check(Folder(k.tenant), string(k.id))
}

// next is the record of st; a skill without versions has none.
func (st *state) next() (*Next, error) {
	if len(st.Versions) == 0 {
		return &Next{}, nil
	}
	b, err := json.Marshal(st)
	if err != nil {
		return nil, err
	}
	if len(b) >= maxState {
		return nil, fmt.Errorf("the record of the skill would exceed %d bytes", maxState)
	}
	n := &Next{State: b, Live: len(st.live()) > 0}
	for _, v := range st.live() {
		n.Approved = n.Approved || v.Approved != nil
	}
	for _, v := range st.onDisk() {
		n.Versions = append(n.Versions, Stored{v.Version, v.Digest, v.Size})
	}
	return n, nil
}

// apply takes a record over for those who look; nil is one that is not there. One that
// is older than what is known changes nothing.
func (s *Store) apply(k key, st *state, revision uint64) {
	s.change.Lock()
	defer s.change.Unlock()
	s.mu.Lock()
	if s.closed || revision < s.shared.revisions[k] {
		s.mu.Unlock()
		return
	}
	old := s.skills[k]
	keep := map[string]bool{}
	if st == nil || len(st.Versions) == 0 {
		delete(s.skills, k)
	} else {
		st.besides = nil
		for _, v := range st.onDisk() {
			folder := s.folder(k, v)
			keep[folder] = true
			v.absent = !s.shared.here[folder] && s.shared.refused[folder] == ""
		}
		s.hold(k, st)
		s.skills[k] = st
	}
	s.shared.revisions[k], s.shared.newest = revision, max(s.shared.newest, revision)
	s.index(k.tenant)
	s.mu.Unlock()
	if old == nil {
		return
	}
	for _, v := range old.onDisk() {
		if folder := s.folder(k, v); !keep[folder] {
			s.drop(folder)
		}
	}
	if len(keep) == 0 {
		_ = os.Remove(s.at(k)) // if it is empty; the next start removes it otherwise
	}
}

// forgetShared takes a record out of this host's view that the database has no more.
func (s *Store) forgetShared(k key) {
	s.mu.RLock()
	known := s.shared.revisions[k]
	s.mu.RUnlock()
	s.apply(k, nil, known)
}

// hold puts quarantines that are still to be written into a record; mu is held.
func (s *Store) hold(k key, st *state) {
	for o, d := range s.shared.owed {
		if v := st.find(o.version); o.key == k && v != nil && v.Quarantine == nil {
			v.Enabled, v.Quarantine = false, d
		}
	}
}

// drop removes the local copy of a version; change is held.
func (s *Store) drop(folder string) {
	s.mu.Lock()
	delete(s.shared.here, folder)
	delete(s.shared.refused, folder)
	s.mu.Unlock()
	s.loaded.forget(folder)
	s.discard(folder)
}

// changeShared changes the record of a skill in the database, and then here. st is nil
// where there is no record; do gives the one that is written, and may be called again.
func (s *Store) changeShared(ctx context.Context, op string, k key, files *Files, do func(st *state, now Now) (*state, error)) (*state, error) {
	s.mu.RLock()
	closed := s.closed
	s.mu.RUnlock()
	if closed {
		return nil, errClosed
	}
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	var made *state
	revision, err := s.o.Shared.Change(ctx, k.tenant, k.id, files, func(now Now) (*Next, error) {
		var st *state
		if now.State != nil {
			var err error
			if st, err = decodeState(now.State, k); err != nil {
				return nil, fmt.Errorf("versions: the record of a skill %w", err)
			}
			st.besides = &now
		}
		next, err := do(st, now)
		if err != nil {
			return nil, err
		}
		made = next
		return next.next()
	})
	var told *skill.Error
	switch {
	case errors.As(err, &told), errors.Is(err, errNothing):
		return nil, err
	case err != nil:
		return nil, s.database(op, k, err)
	}
	s.apply(k, made, revision)
	return made, nil
}

// errNothing says that there is nothing to change.
var errNothing = errors.New("versions: nothing to change")

// updateShared is update where the records are shared.
func (s *Store) updateShared(k key, do func(st *state) error) error {
	_, err := s.changeShared(s.ctx, "versions.write", k, nil, func(st *state, _ Now) (*state, error) {
		if st == nil {
			return nil, notFound(k.id)
		}
		return st, do(st)
	})
	if errors.Is(err, errNothing) {
		return nil
	}
	return err
}

// owe makes a quarantine hold here until it can be written.
func (s *Store) owe(k key, version string, d *Decision) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.skills[k]
	if st == nil || st.find(version) == nil {
		return
	}
	s.shared.owed[owed{k, version}] = d
	st = st.clone()
	s.hold(k, st)
	s.skills[k] = st
	s.index(k.tenant)
}

// payOwed writes the quarantines that could not be written before.
func (s *Store) payOwed() {
	s.mu.RLock()
	all := make(map[owed]*Decision, len(s.shared.owed))
	for o, d := range s.shared.owed {
		all[o] = d
	}
	s.mu.RUnlock()
	for o, d := range all {
		err := s.updateShared(o.key, func(st *state) error { return st.quarantine(o.key.id, o.version, d) })
		if err != nil && skill.CodeOf(err) != skill.NotFound {
			return // the database is not back; the next Refresh tries again
		}
		s.mu.Lock()
		delete(s.shared.owed, o)
		s.mu.Unlock()
	}
}

// publishShared is Publish where the records are shared: the database decides, and what
// it has taken is a version of every host, whatever becomes of this one.
func (u *Upload) publishShared(ctx context.Context, k key, a *Admitted, space int64, by string) (skill.VersionState, error) {
	s := u.store
	archive, err := u.File()
	if err != nil {
		return skill.VersionState{}, err
	}
	defer archive.Close()
	if err := s.o.Pack(archive, a.Folder); err != nil {
		return skill.VersionState{}, s.disk("versions.Publish", k, err)
	}
	var v *version
	_, err = s.changeShared(ctx, "versions.Publish", k, &Files{a.Digest, archive}, func(st *state, now Now) (*state, error) {
		if st == nil {
			st = &state{Format: format, Tenant: k.tenant, ID: k.id}
		}
		s.mu.Lock()
		err := s.admits(u, st, a, space, now.Bytes, now.Skills)
		s.mu.Unlock()
		if err != nil {
			return nil, err
		}
		v = st.add(a, space, by, s.o.Now().UTC())
		return st, nil
	})
	switch {
	case ctx.Err() != nil && skill.CodeOf(err) == skill.Internal:
		return skill.VersionState{}, &skill.Error{Op: "versions.Publish", Code: skill.Cancelled, Message: "the client disconnected during publishing; check whether the version exists", Err: err}
	case err != nil:
		return skill.VersionState{}, err
	}
	// The version is there. Where its files cannot be put here now, they are fetched like
	// those of another host.
	if err := s.arrive(k, v, a.Folder); err != nil {
		s.o.Log.Warn("could not store the files of an upload; fetching them again", slog.String("skill_id", string(k.id)), slog.String("error", err.Error()))
		s.fetchMissing()
	}
	s.mu.Lock()
	s.reserved[u.tenant] -= u.bytes
	u.bytes = 0
	s.mu.Unlock()
	return v.public(k.id), nil
}

// database makes an error of what the database refused.
func (s *Store) database(op string, k key, err error) error {
	s.o.Log.Error("upload database unavailable: make it reachable; no restart needed",
		slog.String("op", op), slog.String("tenant", skill.CleanText(k.tenant, 128)), slog.String("skill_id", string(k.id)), slog.String("error", strings.TrimSpace(err.Error())))
	return &skill.Error{Op: op, Code: skill.Internal, Subject: string(k.id), Message: "database write failed; check the result and retry", Err: err}
}

// tidy removes archives that nobody needs from the database.
func (s *Store) tidy() {
	if s.shared == nil {
		return
	}
	ctx, stop := context.WithTimeout(s.ctx, patience)
	defer stop()
	if err := s.o.Shared.Tidy(ctx, s.o.Now().Add(-unnamed)); err != nil && s.ctx.Err() == nil {
		s.o.Log.Warn("cannot remove archives of deleted uploads; retrying", slog.String("error", err.Error()))
	}
}
