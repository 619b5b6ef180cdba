package catalogue

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"openskill/host/catalogue/manifest"
	"openskill/host/internal/gate"
	"openskill/sdk/skill"
)

// Options of a Store. Dir and Read are required.
type Options struct {
	Dir string // absolute; made when missing
	// Read reads the folder of a version, as admission read it; see [manifest.ReadFolder].
	Read func(folder string) (*manifest.Skill, []manifest.Problem)
	// Reserved reports ids that uploads may not take; nil: none.
	Reserved func(skill.ID) bool

	Skills   int           // of one tenant; 0: 100
	Versions int           // of one skill; 0: 20
	Bytes    int64         // of one tenant's versions on the disk, in blocks of 4 KiB; 0: 1 GiB
	Grace    time.Duration // from the deletion of a version to that of its files; 0: 10 minutes
	Alone    bool          // all uploads are of one tenant, which may have all fetches

	// Shared is where several hosts keep their uploads together. nil: the files in Dir are
	// all that there is, of this host alone. With it Pack and Readmit are required.
	Shared Shared
	// Pack writes the files of an admitted folder as one archive, the same for the same
	// files.
	Pack func(to io.Writer, folder string) error
	// Readmit does with what Pack wrote on another host as admission does with an upload.
	Readmit func(ctx context.Context, archive *os.File, tenant, staging string) (*Admitted, error)

	// RecordQuarantine puts a quarantine on record, and calls do in any case. nil: none is.
	RecordQuarantine func(tenant string, id skill.ID, version, reason string, do func() error) error

	Log *slog.Logger     // nil: slog.Default()
	Now func() time.Time // nil: the system's clock
}

// Store holds the uploaded skills of one state folder. It is safe for concurrent
// use: those who look never wait for the disk's writes.
type Store struct {
	o    Options
	lock *flock.Flock

	// change is held while something is changed, over the writes to disk. It comes
	// before mu.
	change sync.Mutex

	mu       sync.RWMutex
	skills   map[key]*state
	approved map[skill.ID]string // tenant of the approved versions of an id
	reserved map[string]int64    // bytes, by tenant, of uploads under way

	changes   map[string]uint64 // of the skills of each tenant
	approvals uint64            // changes of the skills of tenants that have approved ones

	closed   bool
	problems []manifest.Problem
	garbage  map[string]bool // folders that could not be removed

	loaded cache

	shared     *sharing // nil: the files are this host's alone
	refreshing sync.Mutex
	fetcher    *gate.Gate      // of versions that are fetched
	ctx        context.Context //nolint:containedctx // of what goes on in the background, until Close
	stop       context.CancelFunc
	fetches    sync.WaitGroup
}

// key names one skill of one tenant.
type key struct {
	tenant string
	id     skill.ID
}

// Open opens the store and removes what a crash left there. It fails when another
// process has the store open.
func Open(o Options) (*Store, error) {
	if o.Dir == "" || o.Read == nil {
		return nil, errors.New("versions.Open: Dir and Read are required")
	}
	if o.Shared != nil && (o.Pack == nil || o.Readmit == nil) {
		return nil, errors.New("versions.Open: what is shared needs Pack and Readmit")
	}
	or(&o.Skills, 100)
	or(&o.Versions, 20)
	or(&o.Bytes, 1<<30)
	or(&o.Grace, 10*time.Minute)
	if o.Reserved == nil {
		o.Reserved = func(skill.ID) bool { return false }
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &Store{
		o: o, skills: map[key]*state{}, approved: map[skill.ID]string{}, changes: map[string]uint64{},
		reserved: map[string]int64{}, garbage: map[string]bool{}, fetcher: gate.New(gate.Options{Places: fetchers, Queue: 1 << 20, Alone: o.Alone}),
	}
	s.ctx, s.stop = context.WithCancel(context.Background())
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("cannot create the uploads folder: %w", err)
	}
	s.lock = flock.New(filepath.Join(o.Dir, ".lock"))
	locked, err := s.lock.TryLock()
	switch {
	case err != nil:
		return nil, fmt.Errorf("cannot lock the uploads folder: %w", err)
	case !locked:
		return nil, errors.New("another openskill uses this state folder; stop it, or choose another folder with --state")
	}
	if o.Shared != nil {
		err = s.openShared()
	} else {
		err = s.read()
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func or[T int | int64 | time.Duration](p *T, d T) {
	if *p <= 0 {
		*p = d
	}
}

// Close gives the store up. Uploads under way fail. It may be called twice.
func (s *Store) Close() error {
	s.mu.Lock()
	closed := s.closed
	s.closed = true
	s.mu.Unlock()
	s.stop()
	s.fetches.Wait()
	s.change.Lock()
	defer s.change.Unlock()
	if closed {
		return nil
	}
	return s.lock.Unlock()
}

// Folder is where all versions of a tenant are.
func (s *Store) Folder(tenant string) string { return filepath.Join(s.o.Dir, Folder(tenant)) }

// Problems lists what was found damaged when the store was opened, and since.
func (s *Store) Problems() []manifest.Problem {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Clone(s.problems)
}

// report tells the operator of something that should not be so.
func (s *Store) report(path, message string) {
	if rel, err := filepath.Rel(s.o.Dir, path); err == nil {
		path = filepath.ToSlash(rel)
	}
	s.mu.Lock()
	s.problems = append(s.problems, manifest.Problem{File: path, Message: message})
	s.mu.Unlock()
	s.o.Log.Error("a problem with uploads", slog.String("file", path), slog.String("problem", message))
}

// staging is where uploads are worked on, in the same file system.
func (s *Store) staging() string { return filepath.Join(s.o.Dir, ".staging") }

// at is the folder of one skill.
func (s *Store) at(k key) string { return filepath.Join(s.Folder(k.tenant), string(k.id)) }

// clearStaging removes what a crash left of uploads under way.
func (s *Store) clearStaging() error {
	if err := removeAll(s.staging()); err != nil {
		return fmt.Errorf("cannot remove leftover upload files: %w", err)
	}
	if err := os.Mkdir(s.staging(), 0o700); err != nil {
		return fmt.Errorf("cannot write the uploads folder: %w", err)
	}
	return nil
}

// read finds what is on disk.
func (s *Store) read() error {
	if err := s.clearStaging(); err != nil {
		return err
	}
	tenants, err := os.ReadDir(s.o.Dir)
	if err != nil {
		return fmt.Errorf("cannot read the uploads folder: %w", err)
	}
	for _, t := range tenants {
		if strings.HasPrefix(t.Name(), ".") {
			continue
		}
		dir := filepath.Join(s.o.Dir, t.Name())
		ids, err := os.ReadDir(dir)
		if err != nil {
			s.report(dir, "is not a tenant folder; ignored: "+plain(err))
			continue
		}
		for _, id := range ids {
			s.readSkill(filepath.Join(dir, id.Name()))
		}
	}
	s.index("") // of all; nobody has a revision yet
	return nil
}

// readSkill finds one skill, and removes versions that were never acknowledged.
func (s *Store) readSkill(folder string) {
	names, err := os.ReadDir(folder)
	if err != nil {
		s.report(folder, "is not a skill folder; ignored: "+plain(err))
		return
	}
	st, err := readState(folder)
	if err != nil {
		if len(names) == 0 || errors.Is(err, fs.ErrNotExist) && !slices.ContainsFunc(names, isVersion) {
			s.discard(folder)
			return
		}
		s.rescue(folder, names, err)
		return
	}
	if len(st.Versions) == 0 {
		s.discard(folder)
		return
	}
	known := map[string]bool{}
	for _, v := range st.onDisk() {
		known[v.folder()] = true
		if !slices.ContainsFunc(names, func(e fs.DirEntry) bool { return e.Name() == v.folder() }) {
			s.report(filepath.Join(folder, v.folder()), "is missing although the version was published; it cannot be called")
		}
	}
	for _, e := range names {
		if e.Name() != StateFile && e.Name() != damagedFile && !known[e.Name()] {
			s.discard(filepath.Join(folder, e.Name()))
		}
	}
	s.skills[key{st.Tenant, st.ID}] = st
}

func isVersion(e fs.DirEntry) bool { return e.IsDir() && strings.Contains(e.Name(), "@") }

// rescue makes a state of the versions that lie beside a damaged one. The tenant is
// known only where its folder bears its name; elsewhere nothing is touched, nor
// published there, until somebody has looked.
func (s *Store) rescue(folder string, names []fs.DirEntry, why error) {
	path := filepath.Join(folder, StateFile)
	s.report(path, "is damaged ("+plain(why)+"); the skill is disabled until the operator enables a version of it")
	tenant, ok := strings.CutPrefix(filepath.Base(filepath.Dir(folder)), "t-")
	id, err := skill.ParseID(filepath.Base(folder))
	if !ok || Folder(tenant) != filepath.Base(filepath.Dir(folder)) || err != nil {
		s.report(folder, "is ignored: its owner was recorded only in the damaged file")
		return
	}
	now := s.o.Now()
	st := &state{Format: format, Tenant: tenant, ID: id}
	for _, e := range names {
		if !isVersion(e) {
			continue
		}
		found, problems := s.o.Read(filepath.Join(folder, e.Name()))
		if found == nil || len(problems) > 0 || found.Descriptor.ID != id || folderName(found.Descriptor.Version, found.Descriptor.Digest) != e.Name() {
			s.report(filepath.Join(folder, e.Name()), "is incomplete; ignored")
			continue
		}
		st.Versions = append(st.Versions, &version{
			Version: found.Descriptor.Version, Digest: found.Descriptor.Digest, Size: spaceOf(found.Folder), UploadedAt: now,
			Quarantine: &Decision{By: byHost, At: now, Word: "the record of this skill was damaged; past decisions about it are unknown"},
		})
	}
	err = os.Rename(path, filepath.Join(folder, damagedFile))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err = errors.Join(err, st.write(folder)); err != nil {
		s.report(path, "cannot be replaced: "+plain(err))
	}
	s.skills[key{tenant, id}] = st
}

// byHost is who the host itself is in a Decision.
const byHost = "host"

// discard removes a folder or file now, or tries again with every Sweep.
func (s *Store) discard(path string) {
	err := removeAll(path)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		delete(s.garbage, path)
		return
	}
	if !s.garbage[path] {
		s.garbage[path] = true
		s.o.Log.Warn("cannot remove leftover files of an upload; retrying", slog.String("path", path), slog.String("error", err.Error()))
	}
}

// Revision changes with everything that is kept of the skills that a tenant finds: two of
// one tenant that are equal mean the same lists.
type Revision struct{ own, approved uint64 }

// Revision is the one of a tenant now.
func (s *Store) Revision(tenant string) Revision {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return Revision{s.changes[tenant], s.approvals}
}

// index finds out again whose approved versions an id means, after a change of a tenant's
// skills; mu is held, or nobody else has the store yet.
func (s *Store) index(changed string) {
	s.changes[changed]++
	shared := s.shares(changed)
	clear(s.approved)
	for k, st := range s.skills {
		if slices.ContainsFunc(st.live(), func(v *version) bool { return v.Approved != nil && !v.absent }) {
			s.approved[k.id] = k.tenant
		}
	}
	if shared || s.shares(changed) {
		s.approvals++ // all tenants see it
	}
}

// shares reports whether a tenant has approved versions, which others find.
func (s *Store) shares(tenant string) bool {
	for _, owner := range s.approved {
		if owner == tenant {
			return true
		}
	}
	return false
}

// changing holds change for a decision, and gives what ends it. Where records are shared
// the database has decisions come one after the other, and change is for the disk alone.
func (s *Store) changing() (done func()) {
	if s.shared != nil {
		return func() {}
	}
	s.change.Lock()
	return s.change.Unlock
}

// update changes the state of one skill: for good first, then for those who look. It is
// called between changing and its end. The error of do, which may be called again, comes
// back as it is. With must, the change holds for this process even if the disk refuses it.
func (s *Store) update(k key, must bool, do func(st *state) error) error {
	if s.shared != nil {
		return s.updateShared(k, do)
	}
	s.mu.RLock()
	st, closed := s.skills[k], s.closed
	s.mu.RUnlock()
	if closed {
		return errClosed
	}
	if st == nil {
		return notFound(k.id)
	}
	st = st.clone()
	switch err := do(st); {
	case errors.Is(err, errNothing):
		return nil
	case err != nil:
		return err
	}
	err := st.write(s.at(k))
	if err != nil {
		err = s.disk("versions.write", k, err)
		if !must {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.skills[k] = st
	s.index(k.tenant)
	return err
}

var errClosed = &skill.Error{Op: "versions", Code: skill.Internal, Message: "the store of uploads is closed"}

func notFound(id skill.ID) error {
	return &skill.Error{
		Op: "versions.Get", Code: skill.NotFound, Subject: skill.CleanText(string(id), 64),
		Message: "skill not found; GET /skills lists all",
	}
}

func noVersion(id skill.ID, list []string) error {
	return &skill.Error{
		Op: "versions.Get", Code: skill.NotFound, Subject: string(id),
		Message: skill.CleanText(fmt.Sprintf("no such version of %s; available: %s", id, strings.Join(list, ", ")), skill.MaxMessage),
	}
}

// disk makes an error of what the system refused, which is the host's own matter:
// the log says what to do, and nothing has changed.
func (s *Store) disk(op string, k key, err error) error {
	s.o.Log.Error("upload storage failed: check the state folder's free space and permissions, and the limit of open files; no restart needed",
		slog.String("op", op), slog.String("tenant", skill.CleanText(k.tenant, 128)), slog.String("skill_id", string(k.id)), slog.String("error", err.Error()))
	return &skill.Error{Op: op, Code: skill.Internal, Subject: string(k.id), Message: "the operating system refused it; nothing was changed", Err: err}
}

// plain takes the path out of a file error.
func plain(err error) string {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err.Error()
	}
	return err.Error()
}
