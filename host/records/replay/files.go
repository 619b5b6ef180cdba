package replay

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"syscall"
	"unicode/utf8"

	"openskill/sdk/skill"
)

// compareFiles looks whether what a run saw in its folder of data is there as it was. data
// is the folder that it is granted now.
func (r *Report) compareFiles(ctx context.Context, rec *Recording, data string) {
	if rec.More {
		r.Notes = append(r.Notes, "the run read more of the data folder than was recorded: "+strconv.Itoa(len(rec.Seen))+" files and folders were compared")
	}
	if len(rec.Seen) == 0 {
		return
	}
	root, err := os.OpenRoot(data)
	if err != nil {
		r.differ(Difference{Field: "file", Name: ".", Then: "a folder", Now: "the data folder cannot be opened"})
		return
	}
	defer root.Close()
	for _, then := range rec.Seen {
		if ctx.Err() != nil {
			return // the replay itself says so
		}
		now, same := look(root, then)
		if !same {
			r.differ(Difference{Field: "file", Name: then.Path, Then: shownSeen(then), Now: now})
		}
	}
}

// look reports whether something is as it was seen, and what it is now.
func look(root *os.Root, then skill.Seen) (now string, same bool) {
	info, err := root.Stat(then.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR):
		return shownSeen(skill.Seen{Kind: skill.SeenMissing}), then.Kind == skill.SeenMissing
	case err != nil:
		return "cannot read its attributes", false
	case info.IsDir():
		is := skill.Seen{Path: then.Path, Kind: skill.SeenFolder}
		if then.SHA256 != "" && then.Kind == skill.SeenFolder {
			is.SHA256, err = listed(root, then.Path)
		}
		return shownOr(is, err), err == nil && is == then
	case info.Mode().IsRegular():
		is := skill.Seen{Path: then.Path, Kind: skill.SeenFile, Size: info.Size()}
		if then.SHA256 != "" && then.Kind == skill.SeenFile && is.Size == then.Size {
			is.SHA256, err = contentOf(root, then.Path, then.Size)
		}
		return shownOr(is, err), err == nil && is == then
	}
	return "it is neither a file nor a folder", false
}

func shownOr(s skill.Seen, err error) string {
	if err != nil {
		return "it cannot be read"
	}
	return shownSeen(s)
}

func shownSeen(s skill.Seen) string {
	switch s.Kind {
	case skill.SeenFile:
		text := fmt.Sprintf("a file of %d bytes", s.Size)
		if s.SHA256 != "" {
			text += ", sha256 " + s.SHA256
		}
		return text
	case skill.SeenFolder:
		if s.SHA256 != "" {
			return "a folder, its listing has sha256 " + s.SHA256
		}
		return "a folder"
	case skill.SeenMissing:
	}
	return "nothing of that name"
}

// contentOf is the digest of a file that has a size; of one that grows meanwhile it is
// another file's.
func contentOf(root *os.Root, path string, size int64) (string, error) {
	f, err := root.OpenFile(path, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return "", errors.Join(err, fs.ErrInvalid) // it was replaced just now
	}
	h := sha256.New()
	if _, err := io.Copy(h, io.LimitReader(f, size+1)); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// mostListed bounds a folder's entries; recordings have no larger ones.
const mostListed = 25_000

func listed(root *os.Root, path string) (string, error) {
	f, err := root.OpenFile(path, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	entries, err := f.ReadDir(mostListed)
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		name := e.Name()
		if !utf8.ValidString(name) { // no guest sees it
			continue
		}
		if e.IsDir() {
			name += "/"
		}
		names = append(names, name)
	}
	return skill.ListingDigest(names), nil
}
