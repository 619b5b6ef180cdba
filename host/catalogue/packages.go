package catalogue

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"strconv"

	"openskill/host/records"
	"openskill/internal/digest"
	"openskill/sdk/skill"
)

// Packages keeps the packages of versions on one host, by the folders of their files. It is safe
// for concurrent use.
type Packages interface {
	// Has reports whether a folder has the packages of the lock with this digest here. It is
	// asked often, and compares no files.
	Has(folder, lock string) bool
	// UseLocked gives the folder that scripts see of them, "" for none, and the packages of runtimes
	// that they need. An error says that they must be fetched.
	UseLocked(folder, lock string) (set string, requires []string, err error)
	// Install puts a lock and the archive of its files here. A *skill.Error other than INTERNAL
	// says that this host does not accept them.
	Install(ctx context.Context, folder string, lock []byte, set *os.File) error
	// Forget removes what a folder has.
	Forget(folder string)
}

// Given are packages for a version: they go into the database.
type Given struct {
	Lock  []byte // says which
	Set   string // digest of their files; "": all are of the runtimes
	Files *os.File
	Space string // folder whose bytes count against the tenant's quota; "" like Set
}

// locked is what a row has of the packages of a version. The zero value is none.
type locked struct {
	lock  string // digest of the blob of the lock
	set   string // digest of the files, and of the blob with their archive; "": all are of the runtimes
	bytes int64  // of the disk
}

// maxLock bounds the lock of packages, in bytes.
const maxLock = 4 << 20

// SetPackages gives a version packages, or takes them away where choose gives nil. Choose is asked
// after the principal is authorized; it may take long, and gets the folder of the version, in which
// nothing changes, and whether it has packages now. Where another one has changed them
// meanwhile, the error is a CONFLICT, and nothing has changed. Action and Version of d are
// ignored and required.
func (s *Store) SetPackages(ctx context.Context, d Decision, choose func(tenant, folder string, has bool) (*Given, error)) (skill.VersionState, error) {
	var none skill.VersionState
	if err := authorize(d.By, skill.ScopeAdmin); err != nil {
		return none, err
	}
	d.Action = Disable // of a version that is named: any state, and it need not be approved
	v, err := s.meant(&d)
	if err != nil {
		return none, err
	}
	k, was := key{d.Tenant, d.ID}, v.packages
	if s.o.Packages == nil || v.absent {
		return none, onItsWay(v, d.ID)
	}
	folder := s.folder(k, v)
	if s.refusal(folder) != "" {
		return none, &skill.Error{Op: "catalogue.SetPackages", Code: skill.Conflict, Subject: string(d.ID), Message: "this host does not accept the files of this version; add packages on another host"}
	}
	if was.lock == "" {
		s.o.Packages.Forget(folder) // what an attempt left that did not come to its end
	}
	given, err := choose(d.Tenant, folder, was.lock != "")
	if err != nil {
		return none, err
	}
	now, files := locked{}, []blob(nil)
	if given != nil {
		now.lock = digest.Of(given.Lock)
		files = []blob{{now.lock, bytes.NewReader(given.Lock)}}
		if given.Set != "" {
			now.set, now.bytes = given.Set, spaceOf(given.Space)
			files = append(files, blob{given.Set, given.Files})
		}
	}
	defer s.bringing(folder)()
	change := records.Change{
		Tenant: d.Tenant, Action: "skill.packages", Subject: string(d.ID),
		Details: map[string]string{"version": v.version, "digest": v.digest, "lock": now.lock, "bytes": strconv.FormatInt(now.bytes, 10), "reason": skill.CleanText(d.Reason, 400)},
	}
	var state skill.VersionState
	err = records.Around(ctx, records.NewStore(s.o.DB), d.By, change, func() error {
		return s.change(ctx, "catalogue.SetPackages", k, files, update(k, func(t *tx, r *record) error {
			v, err := d.pick(r)
			if err != nil {
				return err
			}
			if v.packages.lock != was.lock {
				return &skill.Error{Op: "catalogue.SetPackages", Code: skill.Conflict, Subject: string(d.ID), Message: "the packages of this version were changed meanwhile; look at them and retry"}
			}
			has, err := t.usage(k.tenant)
			if err != nil {
				return err
			}
			s.mu.RLock()
			err = s.room(k.tenant, has.bytes-v.packages.bytes, now.bytes)
			s.mu.RUnlock()
			if err != nil {
				return err
			}
			v.packages, state = now, v.public(d.ID)
			return nil
		}))
	})
	if err != nil || given == nil {
		if now, _ := s.now(k, v); now == nil || now.packages.lock == "" {
			s.o.Packages.Forget(folder)
		}
	}
	if err == nil {
		s.o.Log.InfoContext(ctx, "the packages of an upload were changed", slog.String("principal", skill.CleanText(d.By.ID, 128)), slog.String("tenant", skill.CleanText(d.Tenant, 128)),
			slog.String("skill_id", string(d.ID)), slog.String("version", v.version), slog.String("lock", now.lock))
	}
	return state, err
}

// now gives a version as it is now; false where it was deleted.
func (s *Store) now(k key, v *version) (*version, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	r := s.skills[k]
	if r == nil {
		return nil, false
	}
	now := r.find(v.version)
	return now, now != nil
}

// PackagesOf gives the lock of a version that a tenant finds; nil: it has no packages. The
// error is a *skill.Error.
func (s *Store) PackagesOf(ctx context.Context, tenant string, id skill.ID, name string) ([]byte, error) {
	r := s.of(tenant, id)
	if r == nil {
		return nil, notFound(id)
	}
	v, _ := r.choose(tenant, name)
	switch {
	case v == nil:
		return nil, noVersion(id, nil)
	case v.packages.lock == "":
		return nil, nil
	}
	lock, err := s.readLock(ctx, v.packages.lock)
	if err != nil {
		return nil, s.database("catalogue.PackagesOf", r.key, err)
	}
	return lock, nil
}

// readLock reads a lock from the database, and compares it with its digest.
func (s *Store) readLock(ctx context.Context, name string) ([]byte, error) {
	var b bytes.Buffer
	if err := s.o.DB.ReadBlob(ctx, name, &atMost{&b, maxLock}); err != nil {
		return nil, err
	}
	if is := digest.Of(b.Bytes()); is != name {
		return nil, &skill.Error{Op: "catalogue.readLock", Code: skill.ArchiveRejected, Message: fmt.Sprintf("the lock in the database does not match the one that was made: its digest is %s", is)}
	}
	return b.Bytes(), nil
}

// atMost refuses what is more than left bytes.
type atMost struct {
	to   io.Writer
	left int
}

func (w *atMost) Write(p []byte) (int, error) {
	if w.left -= len(p); w.left < 0 {
		return 0, errors.New("it is too large")
	}
	return w.to.Write(p)
}

// lacks reports whether files of a version, or of its packages, are still to be fetched; mu
// is held.
func (s *Store) lacks(folder string, v *version) bool {
	if s.refused[folder] != "" {
		return false
	}
	return !s.here[folder] || v.packages.lock != "" && s.o.Packages != nil && !s.o.Packages.Has(folder, v.packages.lock)
}

// usePackages gives the folder of the packages of a version that is here, and those of the
// runtimes that it needs. What is missing or was changed is fetched again.
func (s *Store) usePackages(k key, v *version) (set string, requires []string, err error) {
	if v.packages.lock == "" || s.o.Packages == nil {
		return "", nil, nil
	}
	folder := s.folder(k, v)
	if set, requires, err = s.o.Packages.UseLocked(folder, v.packages.lock); err == nil {
		return set, requires, nil
	}
	s.o.Log.Warn("the local packages of an upload are missing or changed; fetching them again",
		slog.String("tenant", skill.CleanText(k.tenant, 128)), slog.String("skill_id", string(k.id)), slog.String("version", v.version), slog.String("reason", err.Error()))
	s.o.Packages.Forget(folder)
	s.mark(k, folder, true, "")
	s.fetchMissing()
	return "", nil, onItsWay(v, k.id)
}

// fetchPackages brings the packages of a version here whose own files are.
func (s *Store) fetchPackages(k key, v *version) error {
	folder := s.folder(k, v)
	if v.packages.lock == "" || s.o.Packages == nil || s.o.Packages.Has(folder, v.packages.lock) {
		return nil
	}
	u, err := s.begin(k.tenant)
	if err != nil {
		return err
	}
	defer u.Close()
	ctx, stop := context.WithTimeout(s.ctx, 2*patience)
	defer stop()
	lock, err := s.readLock(ctx, v.packages.lock)
	var set *os.File
	if err == nil && v.packages.set != "" {
		if set, err = u.File(); err != nil {
			return err
		}
		defer set.Close()
		err = s.o.DB.ReadBlob(ctx, v.packages.set, set)
	}
	if err == nil {
		err = s.o.Packages.Install(ctx, folder, lock, set)
	}
	switch told, ok := errors.AsType[*skill.Error](err); {
	case errors.Is(err, fs.ErrNotExist):
		s.refuse(k, v, "its packages are missing from the database")
	case ok && told.Code != skill.Internal:
		s.refuse(k, v, "its packages: "+told.Message)
	case err != nil:
		return err
	default:
		s.mark(k, folder, true, "")
	}
	return nil
}

// packagesOf gives the packages of a version that was not deleted.
func (r *record) packagesOf(name string) locked {
	if v := r.find(name); v != nil {
		return v.packages
	}
	return locked{}
}
