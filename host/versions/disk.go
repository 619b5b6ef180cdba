package versions

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
)

var plainTenant = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,47}$`)

// Folder is the name of a tenant's folder below that of the store: any string makes
// one name, and no two strings the same.
func Folder(tenant string) string {
	if plainTenant.MatchString(tenant) {
		return "t-" + tenant
	}
	sum := sha256.Sum256([]byte(tenant))
	return "h-" + hex.EncodeToString(sum[:])
}

// replace makes b the content of a file, whole or not at all, and returns when it is
// on the disk. A crash may leave a file whose name begins with a dot.
func replace(path string, b []byte) error {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, ".state-*")
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // the next start removes it otherwise
		return err
	}
	return syncDir(dir)
}

// makeDir makes a folder below one that is there, and returns when it is on the
// disk. It may be there already.
func makeDir(path string) error {
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// syncTree writes all files and folders below folder through to the disk.
func syncTree(folder string) error {
	return filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			return syncDir(path)
		}
		f, err := os.Open(path) //nolint:gosec // below our own folder
		if err != nil {
			return err
		}
		return errors.Join(f.Sync(), f.Close())
	})
}

// move renames a folder, through to the disk. Moving a folder writes to it, so it is
// made writable first and is read-only afterwards.
func move(from, to string) error {
	if err := os.Chmod(from, 0o700); err != nil { //nolint:gosec // a folder, for its owner
		return err
	}
	if err := os.Rename(from, to); err != nil {
		return err
	}
	if err := errors.Join(os.Chmod(to, 0o555), syncDir(filepath.Dir(to))); err != nil { //nolint:gosec // read-only
		return errors.Join(err, removeAll(to))
	}
	return nil
}

// removeAll removes a folder of which parts are read-only.
func removeAll(folder string) error {
	err := os.RemoveAll(folder)
	if err == nil {
		return nil
	}
	_ = filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			_ = os.Chmod(path, 0o700) //nolint:gosec // removing tells whether it helped
		}
		return nil //nolint:nilerr // the same
	})
	return os.RemoveAll(folder)
}
