package share

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"openskill/host/admission"
	"openskill/host/manifest"
	"openskill/sdk/skill"
)

// stagingPrefix begins the names of folders in which skills are made ready. They are
// hidden, so that no host takes them for skills.
const stagingPrefix = ".openskill-pull-"

// install is a folder of skills that nobody else changes meanwhile.
type install struct {
	dir       string // absolute
	staging   string // below it, so that a rename is enough; removed at the end
	lock      *manifest.Lock
	restoring bool                // what the lock file has holds, whatever is in the folders
	replacing map[skill.ID]string // digests of folders that a pull that was cut off meant to replace
	torn      bool                // staging is left for the next one, which reads that there
	step      func(string) error  // of tests: what happens instead of the next step
}

// within calls do with the folder dir, which is made where it is missing, and removed
// again if nothing was put into it. Others who want to change it wait.
func (c *Carrier) within(ctx context.Context, dir string, do func(*install) error) (err error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return hostFault(err)
	}
	made, err := makeFolder(abs)
	if err != nil {
		return hostFault(err)
	}
	defer func() {
		if made != "" && err != nil {
			for at := abs; len(at) >= len(made) && os.Remove(at) == nil; at = filepath.Dir(at) {
			}
		}
	}()
	unlock, err := alone(ctx, abs)
	if err != nil {
		return err
	}
	defer unlock()
	in := &install{dir: abs, step: c.step, replacing: map[skill.ID]string{}}
	if in.lock, err = manifest.ReadLock(abs); err != nil {
		return &skill.Error{Op: "share.Pull", Code: skill.Conflict, Message: skill.CleanText(err.Error()+"; fix or remove it", skill.MaxMessage), Err: err}
	}
	in.sweep()
	if in.staging, err = os.MkdirTemp(abs, stagingPrefix); err != nil {
		return hostFault(err)
	}
	defer func() {
		if in.torn {
			return
		}
		if e := admission.Discard(in.staging); e != nil && err == nil {
			err = hostFault(e)
		}
	}()
	for id := range in.lock.Skills { // pulled before there were marks
		if _, err := os.Stat(in.path(id)); err == nil {
			_ = in.mark(in.path(id)) // the next one tries again; the entry says the same
		}
	}
	return do(in)
}

// makeFolder makes a folder, and says which is the topmost that was not there; "" for none.
func makeFolder(abs string) (top string, err error) {
	for at := abs; ; at = filepath.Dir(at) {
		if _, err := os.Stat(at); err == nil || at == filepath.Dir(at) {
			break
		}
		top = at
	}
	return top, os.MkdirAll(abs, 0o755)
}

// alone waits until nobody else changes the folder. The kernel lets go of a process that dies.
func alone(ctx context.Context, dir string) (unlock func(), err error) {
	name, flag := dir, os.O_RDONLY // the folder itself: no file is left behind
	if runtime.GOOS == "windows" {
		name, flag = filepath.Join(dir, ".openskill-pull.lock"), os.O_RDWR|os.O_CREATE
	}
	l := flock.New(name, flock.SetFlag(flag))
	if _, err := l.TryLockContext(ctx, 50*time.Millisecond); err != nil {
		if ctx.Err() != nil {
			return nil, &skill.Error{Op: "share.Pull", Code: skill.Cancelled, Message: "interrupted while waiting for another change of the folder of skills", Err: err}
		}
		return nil, hostFault(err)
	}
	return func() { _ = l.Close() }, nil
}

// replacingPrefix begins the names of files in staging folders that hold the digest of the
// folder of a skill that is about to be replaced.
const replacingPrefix = "replacing-"

// sweep removes what pulls that were killed have left, and remembers what they were about to
// replace. None is under way: this one is alone.
func (in *install) sweep() {
	entries, err := os.ReadDir(in.dir)
	if err != nil {
		return // whatever is wrong shows when something is written
	}
	for _, e := range entries {
		if e.IsDir() && strings.HasPrefix(e.Name(), stagingPrefix) {
			staged := os.DirFS(filepath.Join(in.dir, e.Name()))
			notes, _ := fs.Glob(staged, replacingPrefix+"*") // the pattern is a good one
			for _, n := range notes {
				if b, err := fs.ReadFile(staged, n); err == nil {
					in.replacing[skill.ID(strings.TrimPrefix(n, replacingPrefix))] = string(b)
				}
			}
			_ = admission.Discard(filepath.Join(in.dir, e.Name())) // the next one tries again
		}
	}
}

func (in *install) path(id skill.ID) string { return filepath.Join(in.dir, string(id)) }

// digest is that of the folder of a skill; "" where there is none.
func (in *install) digest(id skill.ID) (string, error) {
	info, err := os.Lstat(in.path(id))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	case err != nil:
		return "", hostFault(err)
	case !info.IsDir():
		return "", conflict("share.Pull", "a file or link named %s is in the place of the skill's folder", id)
	}
	d, err := manifest.Digest(in.path(id))
	if err != nil {
		return "something else", nil
	}
	return d, nil
}

// intact reports whether a skill's folder has just these files.
func (in *install) intact(id skill.ID, digest string) bool {
	is, err := in.digest(id)
	return err == nil && is == digest
}

// may says whether a version may be put where another one is.
func (in *install) may(id skill.ID, e *manifest.LockEntry, downgrade bool) error {
	old := in.lock.Skills[id]
	is, err := in.digest(id)
	if err != nil {
		return err
	}
	if old == nil {
		if is != "" && is != e.Digest {
			return conflict("share.Pull", "the folder %s exists but was not pulled, or its lock entry is missing; move it away first", id)
		}
		return nil
	}
	switch {
	case old.Version == e.Version && old.Digest != e.Digest:
		return conflict("share.Pull", "%s %s has other files than before (%s, was %s): versions do not change", id, e.Version, e.Digest, old.Digest)
	case in.restoring && old.Version != e.Version:
		return conflict("share.Pull", "%s is %s there but %s in %s", id, e.Version, old.Version, manifest.LockName)
	case old.Key != "" && e.Key == "":
		return &skill.Error{Op: "share.Pull", Code: skill.SignatureMissing, Message: skill.CleanText(fmt.Sprintf(
			"%s %s was signed, but %s is not verified by any key: remove %s from %s to accept that", id, old.Version, e.Version, id, manifest.LockName), skill.MaxMessage)}
	case !downgrade && old.Version != e.Version && Compare(e.Version, old.Version) <= 0:
		return &skill.Error{Op: "share.Pull", Code: skill.DowngradeRefused, Message: fmt.Sprintf(
			"%s %s is installed and %s is not higher; use --allow-downgrade to install it", id, old.Version, e.Version)}
	case !in.restoring && is != "" && is != old.Digest && is != e.Digest && is != in.replacing[id]:
		return conflict("share.Pull", "the folder %s changed since it was pulled; move it away, or restore it with openskill skill pull --locked", id)
	}
	return nil
}

// keep is place for a skill whose folder is right as it is, but for the mark of origin, which
// one of the operator's own has not.
func (in *install) keep(id skill.ID, e *manifest.LockEntry, sig []byte) (*Pulled, error) {
	old, is := in.lock.Skills[id], Pulled{ID: id, Path: in.path(id), LockEntry: *e}
	if err := in.mark(in.path(id)); err != nil {
		return nil, hostFault(err)
	}
	if old != nil && *old == *e {
		if now, err := ReadSignature(in.path(id)); err == nil && bytes.Equal(now, sig) {
			return &is, nil
		}
	}
	is.Changed = true
	return &is, in.record(id, e, sig)
}

// place puts an admitted folder in place of what is there. A stranger's folder is at no
// moment without its records: the mark is in it, and the signature and the lock file are on
// the disk, before it is where a host finds it. On an error they are as they were. A process
// that is killed in between leaves an entry of the lock file whose folder is missing or is
// another one, which no host serves, and which the same pull again makes whole.
func (in *install) place(id skill.ID, folder string, e *manifest.LockEntry, sig []byte) (*Pulled, error) {
	if err := in.settle(folder); err != nil {
		return nil, hostFault(err)
	}
	to, old := in.path(id), in.lock.Skills[id]
	is, err := in.digest(id)
	if err == nil && is != "" {
		err = in.write(filepath.Join(in.staging, replacingPrefix+string(id)), []byte(is))
	}
	if err != nil {
		return nil, hostFault(err)
	}
	before, err := ReadSignature(to)
	if err != nil {
		before = nil // nobody could read it
	}
	err = in.record(id, e, sig)
	if err == nil {
		err = in.step("exchange")
	}
	if err == nil {
		if err = exchange(folder, to, filepath.Join(in.staging, "before")); err == nil || in.intact(id, e.Digest) {
			return &Pulled{ID: id, Path: to, Changed: true, LockEntry: *e}, asFault(err) // a folder that is there keeps its records
		}
	}
	undone := in.record(id, old, before)
	in.torn = undone != nil
	return nil, hostFault(errors.Join(err, undone))
}

// record writes the lock file and the signature beside the folder. nil takes one away.
func (in *install) record(id skill.ID, e *manifest.LockEntry, sig []byte) error {
	if e == nil {
		delete(in.lock.Skills, id)
	} else {
		in.lock.Skills[id] = e
	}
	b, err := in.lock.Encode()
	file := filepath.Join(in.dir, manifest.LockName)
	if err == nil && len(in.lock.Skills) == 0 {
		if err = os.Remove(file); err == nil || errors.Is(err, fs.ErrNotExist) { // the first installation failed
			err = through(in.dir)
		}
	} else if err == nil {
		err = in.write(file, b)
	}
	if err != nil {
		return hostFault(err)
	}
	beside := in.path(id) + SignatureExt
	if sig != nil {
		err = in.write(beside, sig)
	} else if err = os.Remove(beside); errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return asFault(err)
}

// write replaces a file, whole or not at all.
func (in *install) write(to string, b []byte) error {
	if err := in.step("write " + filepath.Base(to)); err != nil {
		return err
	}
	f, err := os.CreateTemp(in.staging, "file-")
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Chmod(0o644), f.Sync(), f.Close()); err != nil {
		return err
	}
	return errors.Join(os.Rename(f.Name(), to), through(filepath.Dir(to)))
}

// mark puts the mark of origin into a folder.
func (in *install) mark(folder string) error {
	if manifest.Marked(folder) { // one that is another makes the digest another
		return nil
	}
	return in.write(filepath.Join(folder, manifest.MarkFile), []byte(manifest.Mark))
}

// settle makes an admitted folder one that its owner can remove, marks it, and writes it
// through to the disk. Its files stay read-only: what was pulled is not edited where it is.
func (in *install) settle(folder string) error {
	if err := os.Chmod(folder, 0o755); err != nil {
		return err
	}
	if err := in.mark(folder); err != nil {
		return err
	}
	return filepath.WalkDir(folder, func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			err = os.Chmod(p, 0o755)
		}
		if err != nil {
			return err
		}
		return through(p)
	})
}

// through writes a file or folder through to the disk, where that can be done.
func through(name string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// asFault is hostFault, of nothing too.
func asFault(err error) error {
	if err == nil {
		return nil
	}
	return hostFault(err)
}

// hostFault is what the operator must mend.
func hostFault(err error) error {
	if _, ok := errors.AsType[*skill.Error](err); ok {
		return err
	}
	return &skill.Error{Op: "share", Code: skill.Internal, Message: skill.CleanText("cannot change the folder of skills: "+unpathed(err), skill.MaxMessage), Err: err}
}
