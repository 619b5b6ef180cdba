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

	"openskill/host/registry"
	"openskill/host/share/lock"
	"openskill/host/share/signature"
	"openskill/host/upload"
	"openskill/sdk/skill"
)

// stagingPrefix begins the names of folders in which skills are made ready. They are
// hidden, so that no host takes them for skills.
const stagingPrefix = ".openskill-pull-"

// install is a folder of skills that nobody else changes meanwhile.
type install struct {
	dir       string // absolute
	staging   string // below it, so that a rename is enough; removed at the end
	lock      *lock.File
	restoring bool // what the lock file has holds, whatever is in the folders
}

// within calls do with the folder dir, which is made where it is missing, and removed
// again if nothing was put into it. Others who want to change it wait.
func within(ctx context.Context, dir string, do func(*install) error) (err error) {
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
			for at := abs; len(at) >= len(made) && os.Remove(at) == nil; at = filepath.Dir(at) { //nolint:revive // up to what was there, as long as they are empty
			}
		}
	}()
	unlock, err := alone(ctx, abs)
	if err != nil {
		return err
	}
	defer unlock()
	in := &install{dir: abs}
	if in.lock, err = lock.Read(abs); err != nil {
		return &skill.Error{Op: "share.Pull", Code: skill.Conflict, Message: skill.CleanText(err.Error()+"; mend it, or take it away", skill.MaxMessage), Err: err}
	}
	in.sweep()
	if in.staging, err = os.MkdirTemp(abs, stagingPrefix); err != nil {
		return hostFault(err)
	}
	defer func() {
		if e := upload.Discard(in.staging); e != nil && err == nil {
			err = hostFault(e)
		}
	}()
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
	return top, os.MkdirAll(abs, 0o755) //nolint:gosec // skills are for hosts of other users too
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
			return nil, &skill.Error{Op: "share.Pull", Code: skill.Cancelled, Message: "interrupted while somebody else changes the folder of skills", Err: err}
		}
		return nil, hostFault(err)
	}
	return func() { _ = l.Close() }, nil
}

// sweep removes what pulls that were killed have left. None is under way: this one is alone.
func (in *install) sweep() {
	entries, err := os.ReadDir(in.dir)
	if err != nil {
		return // whatever is wrong shows when something is written
	}
	for _, e := range entries {
		if e.IsDir() && strings.HasPrefix(e.Name(), stagingPrefix) {
			_ = upload.Discard(filepath.Join(in.dir, e.Name())) // the next one tries again
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
		return "", conflict("share.Pull", "there is a file or a link named %s where the skill's folder would be", id)
	}
	d, err := registry.Digest(in.path(id))
	if err != nil {
		return "something else", nil //nolint:nilerr // it has no digest, so it is not what was pulled
	}
	return d, nil
}

// intact reports whether a skill's folder has just these files.
func (in *install) intact(id skill.ID, digest string) bool {
	is, err := in.digest(id)
	return err == nil && is == digest
}

// may says whether a version may be put where another one is.
func (in *install) may(id skill.ID, e *lock.Entry, downgrade bool) error {
	old := in.lock.Skills[id]
	is, err := in.digest(id)
	if err != nil {
		return err
	}
	if old == nil {
		if is != "" && is != e.Digest {
			return conflict("share.Pull", "there is a folder %s already that was not pulled; move it away first", id)
		}
		return nil
	}
	switch {
	case old.Version == e.Version && old.Digest != e.Digest:
		return conflict("share.Pull", "%s %s has other files now than when it was pulled (%s, and was %s): a version does not change", id, e.Version, e.Digest, old.Digest)
	case in.restoring && old.Version != e.Version:
		return conflict("share.Pull", "%s is %s there, and %s in %s", id, e.Version, old.Version, lock.FileName)
	case old.Key != "" && e.Key == "":
		return &skill.Error{Op: "share.Pull", Code: skill.SignatureMissing, Message: skill.CleanText(fmt.Sprintf(
			"%s %s was signed, and %s is not verified by any key: take %s out of %s if that is meant", id, old.Version, e.Version, id, lock.FileName), skill.MaxMessage)}
	case !downgrade && old.Version != e.Version && Compare(e.Version, old.Version) <= 0:
		return &skill.Error{Op: "share.Pull", Code: skill.DowngradeRefused, Message: fmt.Sprintf(
			"%s %s is here, and %s is not higher; --allow-downgrade takes it all the same", id, old.Version, e.Version)}
	case !in.restoring && is != "" && is != old.Digest && is != e.Digest:
		return conflict("share.Pull", "the folder %s was changed since it was pulled; move it away, or take it back with openskill skill pull --locked", id)
	}
	return nil
}

// keep is place for a skill whose folder is right as it is.
func (in *install) keep(id skill.ID, e *lock.Entry, sig []byte) (*Pulled, error) {
	old, is := in.lock.Skills[id], Pulled{ID: id, Path: in.path(id), Entry: *e}
	if old != nil && *old == *e {
		if now, err := ReadSignature(in.path(id)); err == nil && bytes.Equal(now, sig) {
			return &is, nil
		}
	}
	is.Changed = true
	return &is, in.record(id, e, sig)
}

// place puts an admitted folder in place of what is there, then its signature and the lock
// file. A process that is killed in between leaves a folder that is not the one of the
// lock file, which no host serves, and which the same pull again makes whole.
func (in *install) place(id skill.ID, folder string, e *lock.Entry, sig []byte) (*Pulled, error) {
	if err := settle(folder); err != nil {
		return nil, hostFault(err)
	}
	to := in.path(id)
	if err := exchange(folder, to, filepath.Join(in.staging, "before")); err != nil {
		return nil, hostFault(err)
	}
	if err := in.record(id, e, sig); err != nil {
		return nil, err
	}
	return &Pulled{ID: id, Path: to, Changed: true, Entry: *e}, nil
}

// record writes the signature beside the folder, and the lock file.
func (in *install) record(id skill.ID, e *lock.Entry, sig []byte) error {
	beside := in.path(id) + signature.Ext
	var err error
	if sig == nil {
		if err = os.Remove(beside); errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	} else {
		err = in.write(beside, sig)
	}
	if err != nil {
		return hostFault(err)
	}
	in.lock.Skills[id] = e
	b, err := in.lock.Encode()
	if err == nil {
		err = in.write(filepath.Join(in.dir, lock.FileName), b)
	}
	if err != nil {
		return hostFault(err)
	}
	return nil
}

// write replaces a file, whole or not at all.
func (in *install) write(to string, b []byte) error {
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

// settle makes an admitted folder one that its owner can remove, and writes it through to
// the disk. Its files stay read-only: what was pulled is not edited where it is.
func settle(folder string) error {
	return filepath.WalkDir(folder, func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			err = os.Chmod(p, 0o755) //nolint:gosec // a folder, which hosts of other users read
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
	f, err := os.Open(name) //nolint:gosec // a file of ours
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// hostFault is what the operator must mend.
func hostFault(err error) error {
	var known *skill.Error
	if errors.As(err, &known) {
		return err
	}
	return &skill.Error{Op: "share", Code: skill.Internal, Message: skill.CleanText("the folder of skills cannot be changed: "+unpathed(err), skill.MaxMessage), Err: err}
}
