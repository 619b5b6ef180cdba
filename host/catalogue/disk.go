package catalogue

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

// move renames a folder. Moving a folder writes to it, so it is
// made writable first and is read-only afterwards.
func move(from, to string) error {
	if err := os.Chmod(from, 0o700); err != nil {
		return err
	}
	if err := os.Rename(from, to); err != nil {
		return err
	}
	if err := os.Chmod(to, 0o555); err != nil {
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
