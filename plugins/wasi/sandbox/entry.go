package sandbox

import (
	"io/fs"
	"path"
	"time"

	"openskill/sdk/skill"
	"openskill/wasm/guestfs"
)

// Stamp tells whether a file may have changed since it was looked at.
type Stamp struct {
	inode uint64
	size  int64
	mtime int64 // nanoseconds
}

func stampOf(st guestfs.Stat) Stamp { return Stamp{st.Inode, st.Size, st.Mtime.UnixNano()} }

// grain is how coarse a file system's times may be. A file that was written less
// than this before it was looked at may be written again and look the same.
const grain = 2 * time.Second

// Settled reports whether every change after now will show in the stamp.
func (s Stamp) Settled(now time.Time) bool { return now.UnixNano()-s.mtime > int64(grain) }

// Entry looks at the file that a skill begins with, a regular file below the
// folder. hint says what to do if it is not there. The error is a *skill.Error.
func (d *Folder) Entry(entry, hint string) (Stamp, error) {
	if !fs.ValidPath(entry) || entry == "." {
		return Stamp{}, &skill.Error{
			Op: "sandbox.Entry", Code: skill.InvalidManifest, Subject: skill.CleanText(entry, 80),
			Message: "invalid entry: use a path inside the skill's folder with slashes, such as scripts/main.py",
		}
	}
	if stamp, ok := d.lookedAt(entry); ok {
		return stamp, nil
	}
	now := time.Now()
	st, errno := d.Stat(entry, true)
	switch {
	case errno == guestfs.ENOENT || errno == guestfs.ENOTDIR:
		return Stamp{}, refuse(entry, skill.NotFound, "is not in the skill's folder; "+hint, errno)
	case errno != 0:
		return Stamp{}, refuse(entry, skill.InvalidManifest, "cannot be read, leads out of the skill's folder, or is not a regular file with one name", errno)
	case st.Kind != guestfs.KindRegular:
		return Stamp{}, refuse(entry, skill.InvalidManifest, "is not a regular file", guestfs.EISDIR)
	}
	d.looked.note(entry, stampOf(st), now)
	return stampOf(st), nil
}

// Read reads an entry and tells how the file looked. Of a file over limit bytes
// it reads limit+1. The error is a *skill.Error.
func (d *Folder) Read(entry, hint string, limit int64) ([]byte, Stamp, error) {
	if _, err := d.Entry(entry, hint); err != nil {
		return nil, Stamp{}, err
	}
	unreadable := func(errno guestfs.Errno) ([]byte, Stamp, error) {
		return nil, Stamp{}, refuse(entry, skill.InvalidManifest, "cannot be read", errno)
	}
	f, errno := d.Open(entry, 0)
	if errno != 0 {
		return unreadable(errno)
	}
	defer f.Close()
	// Of the file that was opened, and from before it is read, so that a change
	// meanwhile shows at the next look.
	st, errno := f.Stat()
	if errno != 0 {
		return unreadable(errno)
	}
	data := make([]byte, min(st.Size, limit)+1)
	n := 0
	for n < len(data) {
		more, errno := f.ReadAt(data[n:], int64(n))
		if errno != 0 {
			return unreadable(errno)
		}
		if more == 0 {
			break
		}
		n += more
	}
	return data[:n], stampOf(st), nil
}

func refuse(entry string, code skill.Code, what string, cause guestfs.Errno) error {
	return &skill.Error{
		Op: "sandbox.Entry", Code: code, Subject: skill.CleanText(entry, 80), Err: cause,
		Message: skill.CleanText(path.Base(entry), 80) + " " + what,
	}
}
