package manifest

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"

	"openskill/internal/digest"
)

// What a folder may hold to have a digest.
const (
	MaxFiles       = 10_000
	MaxFolderBytes = 1 << 30
)

// digestLabel begins the hashed text, so that another way of listing files can
// never give the same digest.
const digestLabel = "openskill folder 1\n"

// Digest is the identity of a folder's content: "sha256:" and the SHA-256, in
// hex, of
//
//	"openskill folder 1\n"
//	for each file, in the order of the bytes of its path:
//	    length of the path   8 bytes, big endian
//	    path                 relative, with /
//	    size                 8 bytes, big endian
//	    SHA-256 of the file  32 bytes
//
// Every regular file counts, hidden ones too, but for the mark of origin that a pull puts
// into the folder ([Mark]); folders count only through their
// files; modes and times do not count. A symbolic link or anything else that is
// no regular file is refused, as are more than [MaxFiles] files or
// [MaxFolderBytes] bytes.
func Digest(folder string) (string, error) {
	return digestFolder(folder, MaxFiles, MaxFolderBytes, func(string, [sha256.Size]byte) {})
}

// DigestOfFiles is [Digest], with the digest of each file by its path.
func DigestOfFiles(folder string) (whole string, files map[string]string, err error) {
	files = map[string]string{}
	whole, err = digestFolder(folder, MaxFiles, MaxFolderBytes, func(path string, sum [sha256.Size]byte) { files[path] = digest.Text(sum) })
	return whole, files, err
}

// digestFolder is Digest; note is told of each file.
func digestFolder(folder string, maxFiles int, maxBytes int64, note func(path string, sum [sha256.Size]byte)) (string, error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return "", err
	}
	defer root.Close()
	var paths []string
	err = fs.WalkDir(root.FS(), ".", func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			return nil
		case d.Type()&fs.ModeSymlink != 0:
			return fmt.Errorf("%s is a symbolic link; a skill's folder holds only files and folders", p)
		case !d.Type().IsRegular():
			return fmt.Errorf("%s is not a regular file", p)
		case p == MarkFile && marks(root):
			return nil
		case len(paths) == maxFiles:
			return fmt.Errorf("too many files in the folder; the limit is %d", maxFiles)
		}
		paths = append(paths, p)
		return nil
	})
	if err != nil {
		return "", err
	}
	return digestOf(root, paths, maxBytes, note)
}

// DigestFiles is [Digest] of these files of a folder alone, for folders that hold
// other things too. Paths are relative, with /; the list is put in order.
func DigestFiles(root *os.Root, paths []string) (string, error) {
	if i := slices.Index(paths, MarkFile); i >= 0 && marks(root) {
		paths = slices.Delete(slices.Clone(paths), i, i+1)
	}
	if len(paths) > MaxFiles {
		return "", fmt.Errorf("too many files in the folder; the limit is %d", MaxFiles)
	}
	return digestOf(root, paths, MaxFolderBytes, func(string, [sha256.Size]byte) {})
}

// marks reports whether the file of the mark is just that.
func marks(root *os.Root) bool {
	b, err := readSmall(root, MarkFile, int64(len(Mark)))
	return err == nil && string(b) == Mark
}

// digestOf hashes the named files of root by the scheme of [Digest].
func digestOf(root *os.Root, paths []string, maxBytes int64, note func(path string, sum [sha256.Size]byte)) (string, error) {
	slices.Sort(paths)
	h := sha256.New()
	_, _ = io.WriteString(h, digestLabel)
	left := maxBytes
	for _, p := range paths {
		size, sum, err := hashFile(root, p, left)
		if err != nil {
			return "", err
		}
		if size > left {
			return "", fmt.Errorf("the folder is too large; the limit is %d bytes", maxBytes)
		}
		left -= size
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(p)))
		h.Write(n[:])
		_, _ = io.WriteString(h, p)
		binary.BigEndian.PutUint64(n[:], uint64(size))
		h.Write(n[:])
		h.Write(sum[:])
		note(p, sum)
	}
	return digest.Text([sha256.Size]byte(h.Sum(nil))), nil
}

// hashFile counts the bytes that it reads rather than trusting the size on record,
// and stops one byte after most.
func hashFile(root *os.Root, p string, most int64) (size int64, sum [sha256.Size]byte, err error) {
	f, err := root.Open(p)
	if err != nil {
		return 0, sum, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return 0, sum, err
	}
	if !info.Mode().IsRegular() {
		return 0, sum, fmt.Errorf("%s is not a regular file", p)
	}
	sum, size, err = digest.Read(io.LimitReader(f, most+1))
	return size, sum, err
}

// readSmall reads a regular file, and not what a symbolic link points to. More
// than most bytes are refused.
func readSmall(root *os.Root, name string, most int64) ([]byte, error) {
	info, err := root.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("must be a regular file, not a link, folder or device")
	}
	f, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(b)) > most {
		err = fmt.Errorf("has more than %d bytes", most)
	}
	return b, err
}
