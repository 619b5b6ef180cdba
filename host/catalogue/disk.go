package catalogue

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"sync"
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
	return writeThrough(dir)
}

// makeDir makes a folder below one that is there, and returns when it is on the
// disk. It may be there already.
func makeDir(path string) error {
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return writeThrough(filepath.Dir(path))
}

// syncTree writes all files and folders below folder through to the disk, several at
// a time: file systems put what comes together into one write.
func syncTree(folder string) error {
	paths, err := survey(folder)
	if err != nil {
		return err
	}
	const atOnce = 16
	var all sync.WaitGroup
	errs := make([]error, atOnce)
	for i := range errs {
		all.Go(func() {
			for j := i; j < len(paths) && errs[i] == nil; j += atOnce {
				errs[i] = writeThrough(paths[j])
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// block is what file systems give to a file or folder at least, in bytes.
const block = 4 << 10

// spaceOf is what a folder takes of a disk, in bytes: whole blocks for each file and
// folder. By the bytes of files alone a tenant could fill a disk with empty ones.
func spaceOf(folder string) (n int64) {
	_ = filepath.WalkDir(folder, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		size := int64(block)
		if info, err := d.Info(); err == nil && d.Type().IsRegular() {
			size = max(block, (info.Size()+block-1)/block*block)
		}
		n += size
		return nil
	})
	return n
}

// move renames a folder, through to the disk. Moving a folder writes to it, so it is
// made writable first and is read-only afterwards.
func move(from, to string) error {
	if err := os.Chmod(from, 0o700); err != nil {
		return err
	}
	if err := os.Rename(from, to); err != nil {
		return err
	}
	if err := errors.Join(os.Chmod(to, 0o555), writeThrough(filepath.Dir(to))); err != nil {
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
			_ = os.Chmod(path, 0o700)
		}
		return nil
	})
	return os.RemoveAll(folder)
}
