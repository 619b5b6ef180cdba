package catalogue

import (
	"context"
	"database/sql"
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

	"openskill/host/admission"
	"openskill/host/internal/gate"
	"openskill/host/manifest"
	"openskill/host/store"
	"openskill/sdk/skill"
)

// Options of a Store. DB, Dir, Read and Admission are required.
type Options struct {
	DB  *store.DB
	Dir string // of the copies of files; absolute; made when missing
	// Old is the folder where releases before schema 14 kept uploads; "": none.
	Old string
	// Read reads the folder of a version, as admission read it; see [manifest.ReadFolder].
	Read func(folder string) (*manifest.Skill, []manifest.Problem)
	// Admission packs what it has admitted, and checks what comes from the database.
	Admission *admission.Admission
	// Packages keeps the packages of versions on this host; nil: versions get none.
	Packages Packages
	// Reserved reports ids that uploads may not take; nil: none.
	Reserved func(skill.ID) bool

	Skills   int           // of one tenant; 0: 100
	Versions int           // of one skill; 0: 20
	Bytes    int64         // of one tenant's versions on the disk, in blocks of 4 KiB; 0: 1 GiB
	Grace    time.Duration // from the deletion of a version to that of its files; 0: 10 minutes
	Alone    bool          // all uploads are of one tenant, which may have all fetches

	// Enabled is told of every version that is enabled here; it must not wait. nil: nobody is.
	Enabled func(tenant string, id skill.ID, version string)

	Log *slog.Logger     // nil: slog.Default()
	Now func() time.Time // nil: the system's clock
}

// Store holds the uploaded skills of a database, and copies of their files in a folder. It
// is safe for concurrent use: who looks waits neither for the database nor for the disk.
type Store struct {
	o    Options
	lock *flock.Flock

	files      sync.Mutex // held while copies come and go; it comes before mu
	refreshing sync.Mutex // held while records are read; it comes before files

	mu       sync.RWMutex
	skills   map[key]*record
	revision int64               // up to which records were read
	approved map[skill.ID]string // tenant of the approved versions of an id
	reserved map[string]int64    // bytes, by tenant, of uploads under way
	held     map[heldVersion]*Mark

	here     map[string]bool   // folders of versions that are whole
	fetching map[string]bool   // folders
	refused  map[string]string // why this host does not accept the files, by folder

	changes   map[string]uint64 // of the skills of each tenant
	approvals uint64            // changes of the skills of tenants that have approved ones
	all       uint64            // changes of the skills of all tenants

	closed  bool
	garbage map[string]bool // folders that could not be removed

	loaded cache

	fetcher *gate.Gate      // of versions that are fetched
	ctx     context.Context //nolint:containedctx // of what goes on in the background, until Close
	stop    context.CancelFunc
	fetches sync.WaitGroup
}

// heldVersion names a version whose quarantine is still to be written.
type heldVersion struct {
	key     key
	version string
}

const (
	// patience bounds one change of the database.
	patience = 30 * time.Second
	// unnamed is how long an archive stays that no version needs.
	unnamed = time.Hour
)

// Open takes over the uploads of an older release, reads the records, and finds which files
// are here; what is missing is fetched in the background. It fails when another process has
// the folder open.
func Open(o Options) (*Store, error) {
	if o.DB == nil || o.Dir == "" || o.Read == nil || o.Admission == nil {
		return nil, errors.New("catalogue.Open: DB, Dir, Read and Admission are required")
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
		o: o, skills: map[key]*record{}, approved: map[skill.ID]string{}, changes: map[string]uint64{}, reserved: map[string]int64{},
		held: map[heldVersion]*Mark{}, here: map[string]bool{}, fetching: map[string]bool{}, refused: map[string]string{}, garbage: map[string]bool{},
		fetcher: gate.New(gate.Options{Places: fetchers, Queue: 1 << 20, Alone: o.Alone}),
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
	if err := s.start(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// start finds what is in the database and on the disk.
func (s *Store) start() error {
	if err := removeAll(s.staging()); err != nil {
		return fmt.Errorf("cannot remove leftover upload files: %w", err)
	}
	if err := os.Mkdir(s.staging(), 0o700); err != nil {
		return fmt.Errorf("cannot write the uploads folder: %w", err)
	}
	if err := s.importOld(); err != nil {
		return fmt.Errorf("cannot import the uploads of an older release: %w", err)
	}
	found, err := fs.Glob(os.DirFS(s.o.Dir), "*/*")
	if err != nil {
		return err
	}
	for i, name := range found {
		found[i] = filepath.Join(s.o.Dir, name)
		s.here[found[i]] = !strings.HasPrefix(name, ".")
	}
	ctx, stop := context.WithTimeout(s.ctx, patience)
	defer stop()
	if err := s.Refresh(ctx); err != nil {
		return fmt.Errorf("cannot read the upload records: %w", err)
	}
	s.files.Lock()
	defer s.files.Unlock()
	named := map[string]bool{s.staging(): true}
	s.mu.RLock() // files are being fetched already
	for k, r := range s.skills {
		for _, v := range r.kept() {
			named[s.folder(k, v)] = true
		}
	}
	s.mu.RUnlock()
	for _, folder := range found {
		if !named[folder] && filepath.Dir(folder) != s.staging() {
			s.drop(folder)
		}
	}
	return nil
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
	s.files.Lock()
	defer s.files.Unlock()
	if closed {
		return nil
	}
	return s.lock.Unlock()
}

// Folder is where all versions of a tenant are.
func (s *Store) Folder(tenant string) string { return filepath.Join(s.o.Dir, Folder(tenant)) }

// staging is where uploads are worked on, in the same file system.
func (s *Store) staging() string { return filepath.Join(s.o.Dir, ".staging") }

func (s *Store) folder(k key, v *version) string {
	return filepath.Join(s.Folder(k.tenant), folderName(v.digest))
}

// Refresh reads what was changed since the last time, by this host or by others, and begins to
// fetch what is missing here. Who calls it when the database says that [Topic] has changed is
// up to date within moments.
func (s *Store) Refresh(ctx context.Context) error {
	s.refreshing.Lock()
	defer s.refreshing.Unlock()
	s.writeHeld()
	var upTo int64
	if err := s.o.DB.Urgent.QueryRowContext(ctx, "SELECT revision FROM revisions WHERE topic = $1", Topic).Scan(&upTo); err != nil {
		return err
	}
	s.mu.RLock()
	after := s.revision
	s.mu.RUnlock()
	if upTo < after { // the database has come back without its last changes
		s.o.Log.Error("the upload database lost changes seen by this host; using the database's state")
		after = -1
	}
	list, err := selectRecords(ctx, s.o.DB.Urgent, "u.revision > $1", after)
	if err != nil {
		return err
	}
	s.files.Lock()
	defer s.files.Unlock()
	s.mu.Lock()
	now := map[key]*record{}
	if after >= 0 {
		for k, r := range s.skills {
			now[k] = r
		}
	}
	for _, r := range list {
		now[r.key], upTo = r, max(upTo, r.revision)
	}
	stale := s.replace(now, upTo)
	s.mu.Unlock()
	for _, folder := range stale {
		s.drop(folder)
	}
	s.fetchMissing()
	return nil
}

// replace makes records those that who looks finds, and returns the folders of versions that
// are no more; mu is held.
func (s *Store) replace(now map[key]*record, upTo int64) (stale []string) {
	if s.closed {
		return nil
	}
	changed, keep := map[string]bool{}, map[string]bool{}
	for k, r := range now {
		if s.skills[k] == r {
			continue
		}
		changed[k.tenant] = true
		for _, v := range r.kept() {
			folder := s.folder(k, v)
			keep[folder] = true
			if old := s.skills[k]; old != nil && old.packagesOf(v.version) != v.packages {
				delete(s.refused, folder) // it may have been for the packages
			}
			v.absent = s.lacks(folder, v)
		}
		s.hold(r)
	}
	for k, old := range s.skills {
		if now[k] == old {
			continue
		}
		changed[k.tenant] = true
		for _, v := range old.kept() {
			if folder := s.folder(k, v); !keep[folder] {
				stale = append(stale, folder)
			}
		}
	}
	s.skills, s.revision = now, upTo
	for tenant := range changed {
		s.index(tenant)
	}
	return stale
}

// sync is Refresh for a decision: it must know what other hosts have just taken in. What
// the database cannot tell now, the decision itself will find.
func (s *Store) sync() {
	ctx, stop := context.WithTimeout(s.ctx, patience)
	defer stop()
	if err := s.Refresh(ctx); err != nil {
		s.o.Log.Warn("cannot read the changes of uploads", slog.String("error", err.Error()))
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

// Changes changes with everything that is kept of the skills of all tenants.
func (s *Store) Changes() uint64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.all
}

// index finds out again whose approved versions an id means, after a change of a tenant's
// skills; mu is held.
func (s *Store) index(changed string) {
	s.changes[changed]++
	s.all++
	shared := s.shares(changed)
	clear(s.approved)
	for k, r := range s.skills {
		if slices.ContainsFunc(r.live(), func(v *version) bool { return v.approved != nil }) {
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

// blob is kept by its digest: the archive of a version's files, or what there is of its packages.
type blob struct {
	digest string
	from   io.ReadSeeker
}

// change changes the record of a skill in the database, and then here. files may be nil; do
// may be called again, and its error comes back as it is, with nothing changed.
func (s *Store) change(ctx context.Context, op string, k key, files []blob, do func(t *tx) error) error {
	err := s.commit(ctx, op, k, files, do)
	if err == nil {
		s.sync()
	}
	return err
}

// commit is change for the database alone. The files are written before the turn of this
// transaction among all changes, which is short then.
func (s *Store) commit(ctx context.Context, op string, k key, files []blob, do func(t *tx) error) error {
	s.mu.RLock()
	closed := s.closed
	s.mu.RUnlock()
	if closed {
		return errClosed
	}
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	db := s.o.DB
	err := db.InTopic(ctx, Topic, k.tenant, func() error {
		return db.InTx(ctx, func(inner *sql.Tx) error {
			for _, b := range files {
				if err := db.WriteBlob(ctx, inner, b.digest, b.from); err != nil {
					return err
				}
			}
			revision, err := db.Raise(ctx, inner, Topic)
			if err != nil {
				return err
			}
			return do(&tx{inner, ctx, revision})
		})
	})
	if _, ok := errors.AsType[*skill.Error](err); err == nil || ok {
		return err
	}
	return s.database(op, k, err)
}

// update returns what changes the record of one skill that is there.
func update(k key, do func(t *tx, r *record) error) func(t *tx) error {
	return func(t *tx) error {
		before, err := t.record(k)
		if err != nil {
			return err
		}
		if before == nil {
			return notFound(k.id)
		}
		r := before.clone()
		if err := do(t, r); err != nil {
			return err
		}
		return t.save(r, before)
	}
}

var errClosed = &skill.Error{Op: "catalogue", Code: skill.Internal, Message: "the store of uploads is closed"}

// database makes an error of what the database refused.
func (s *Store) database(op string, k key, err error) error {
	s.o.Log.Error("upload database unavailable: make it reachable; no restart needed",
		slog.String("op", op), slog.String("tenant", skill.CleanText(k.tenant, 128)), slog.String("skill_id", string(k.id)), slog.String("error", strings.TrimSpace(err.Error())))
	return &skill.Error{Op: op, Code: skill.Internal, Subject: string(k.id), Message: "database write failed; check the result and retry", Err: err}
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
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err.Error()
	}
	return err.Error()
}
