package runtimes

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"openskill/sdk/skill"
)

// waitDelay is how long output of a killed package manager is waited for, and
// lockRetry how often a lock is asked for.
const (
	waitDelay = 2 * time.Second
	lockRetry = 50 * time.Millisecond
)

// InstallOptions configure an installation; nil means all of their zero values.
type InstallOptions struct {
	// From is the archive as a file, a wheel or a tgz; "" fetches it.
	From string
	// Step is called in order with what is being done, from 0 to 1 of the whole; nil
	// is not called.
	Step func(what string, done float64)
}

// Report says what an installation did.
type Report struct {
	Status
	// Changed is false if the runtime was installed already.
	Changed bool `json:"changed"`
}

// Install makes a runtime in the state folder, unless it is there and every file has
// its hash. It appears by one rename, complete and on disk, or not at all. Of two
// installations at once, by whatever processes, one waits for the other and then has
// nothing to do.
//
// The error is a *skill.Error: TOOL_INVOCATION_ERROR if the archive cannot be had, with
// the package manager's own words as its cause, INVALID_ARGUMENT if it is not the one that is pinned, INTERNAL if the state folder
// cannot be written; or ctx's.
func (s *Store) Install(ctx context.Context, name string, opts *InstallOptions) (*Report, error) {
	r, err := s.recipe("runtimes.Install", name)
	if err != nil {
		return nil, err
	}
	var o InstallOptions
	if opts != nil {
		o = *opts
	}
	if o.Step == nil {
		o.Step = func(string, float64) {}
	}
	unlock, err := s.lock(ctx, r)
	if err != nil {
		return nil, err
	}
	defer unlock()
	o.Step("looking at what is there", 0)
	changed := false
	if r.verify(s.folder(r)) != nil {
		if err := s.install(ctx, r, &o); err != nil {
			return nil, err
		}
		changed = true
	} else if err := s.sweep(r); err != nil {
		return nil, err
	}
	st := s.status(r, nil)
	st.Default = r == s.recipes[0]
	o.Step("installed", 1)
	return &Report{st, changed}, nil
}

// Remove deletes a runtime, whatever its state. It reports whether there was
// anything. Who runs it keeps the files that are open.
func (s *Store) Remove(ctx context.Context, name string) (bool, error) {
	r, err := s.recipe("runtimes.Remove", name)
	if err != nil {
		return false, err
	}
	if _, err := os.Lstat(s.folder(r)); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	unlock, err := s.lock(ctx, r)
	if err != nil {
		return false, err
	}
	defer unlock()
	work, err := s.work(r)
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(work)
	// A rename first: a folder that is half deleted must not be taken for a runtime.
	err = os.Rename(s.folder(r), filepath.Join(work, "old"))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, broken(r, err)
}

// lock takes the runtime's lock between processes, which the kernel frees when its
// owner dies.
func (s *Store) lock(ctx context.Context, r *recipe) (unlock func(), err error) {
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return nil, broken(r, err)
	}
	l := flock.New(filepath.Join(s.dir, "."+r.name+".lock"))
	if _, err := l.TryLockContext(ctx, lockRetry); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, broken(r, err)
	}
	return func() { _ = l.Unlock() }, nil
}

// work makes a folder beside the runtimes for what is not done yet.
func (s *Store) work(r *recipe) (string, error) {
	if err := s.sweep(r); err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp(s.dir, workPrefix(r))
	return dir, broken(r, err)
}

func workPrefix(r *recipe) string { return ".work-" + r.name + "-" }

// sweep removes the work folders that a killed installation left: the lock says that nobody
// uses them.
func (s *Store) sweep(r *recipe) error {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return broken(r, err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), workPrefix(r)) {
			_ = os.RemoveAll(filepath.Join(s.dir, e.Name())) // it is tried again the next time
		}
	}
	return nil
}

func (s *Store) install(ctx context.Context, r *recipe, o *InstallOptions) error {
	work, err := s.work(r)
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	archive, err := s.archive(ctx, r, o, work)
	if err != nil {
		return err
	}
	o.Step("checking the archive", 0.3)
	// This is for the message: whoever changes the file afterwards is found by the
	// hashes of what comes out.
	sum, err := hashFile(archive, r.source.size)
	if err != nil || sum != r.source.sha256 {
		return notPinned(r, sum, err)
	}
	made := filepath.Join(work, "new")
	if err := os.Mkdir(made, 0o755); err != nil {
		return broken(r, err)
	}
	if err := s.make(ctx, r, o, archive, made); err != nil {
		return err
	}
	o.Step("putting it in place", 0.95)
	if err := os.Rename(s.folder(r), filepath.Join(work, "old")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return broken(r, err)
	}
	if err := os.Rename(made, s.folder(r)); err != nil {
		return broken(r, err)
	}
	return broken(r, syncDir(s.dir))
}

// archive brings the archive into work, or takes the operator's file.
func (s *Store) archive(ctx context.Context, r *recipe, o *InstallOptions, work string) (string, error) {
	if o.From != "" {
		return o.From, nil
	}
	dir := filepath.Join(work, "fetched")
	if err := os.Mkdir(dir, 0o755); err != nil {
		return "", broken(r, err)
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", broken(r, err)
	}
	o.Step(fmt.Sprintf("fetching %s with %s (%d MB)", r.source.String(), r.source.manager, r.source.size/1e6), 0.05)
	path, err := s.fetch(ctx, &r.source, dir)
	if err == nil || ctx.Err() != nil {
		return path, err
	}
	why := "cannot fetch the archive"
	if m := (*missing)(nil); errors.As(err, &m) {
		why = m.what
	}
	return "", &skill.Error{
		Op: "runtimes.Install", Code: skill.ToolInvocationError, Subject: r.name, Err: err,
		Message: "the runtime " + r.name + " was not installed: " + why,
	}
}

// make builds the outputs into dir, compares them with what is pinned, and writes
// the manifest.
func (s *Store) make(ctx context.Context, r *recipe, o *InstallOptions, archive, dir string) error {
	member, closing, err := archiveReader(r.source.manager, archive)
	if err != nil {
		return notPinned(r, "", err)
	}
	defer closing() //nolint:errcheck // only read
	done := 0.4
	b := &builder{
		member: func(name string, most int64) ([]byte, error) {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			return member(name, most)
		},
		write: func(name string, data []byte) error {
			out := r.output(name)
			if out == nil {
				return fmt.Errorf("%s is no file of the runtime", name)
			}
			if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != out.sha256 || int64(len(data)) != out.size {
				return fmt.Errorf("%s has the SHA-256 %x and %d bytes, want %s and %d", name, sum, len(data), out.sha256, out.size)
			}
			return writeSynced(filepath.Join(dir, name), data)
		},
		step: func(what string) {
			o.Step(what, done)
			done += 0.2
		},
	}
	err = r.build(b)
	if err == nil {
		err = writeSynced(filepath.Join(dir, manifestFile), r.manifest())
	}
	if err == nil {
		err = syncDir(dir)
	}
	if err == nil {
		err = r.verify(dir)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return broken(r, err)
}

func notPinned(r *recipe, sum string, err error) error {
	detail := "it cannot be read as one"
	if err == nil {
		detail = "its SHA-256 is " + sum
	}
	return &skill.Error{
		Op: "runtimes.Install", Code: skill.InvalidArgument, Subject: r.name, Err: err,
		Message: fmt.Sprintf("the archive does not match the pinned one of the runtime %s (%s, SHA-256 %s): %s; nothing was installed",
			r.name, r.source.String(), r.source.sha256, detail),
	}
}

// broken is a failure of the host while it installs; nil stays nil.
func broken(r *recipe, err error) error {
	if err == nil {
		return nil
	}
	return &skill.Error{
		Op: "runtimes.Install", Code: skill.Internal, Subject: r.name, Err: err,
		Message: "the runtime " + r.name + " cannot be installed; see the log",
	}
}

// writeSynced writes a new file and waits until it is on disk.
func writeSynced(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if serr := f.Sync(); err == nil {
		err = serr
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}
