package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// keptLines are what was typed in earlier chats, in a file that only its owner reads. A
// file that cannot be read or written costs the past, and nothing else.
type keptLines struct{ path string } // "": none are kept

// The most that is kept.
const (
	mostKept      = 500 // lines
	mostKeptBytes = 256 << 10
)

// load gives the lines, the oldest first. A file that has grown too long is begun anew
// with the last ones.
func (k *keptLines) load() []string {
	if k.path == "" {
		return nil
	}
	f, info, err := openRegular(k.path)
	if err != nil {
		return nil
	}
	defer f.Close()
	from := max(info.Size()-mostKeptBytes, 0)
	b := make([]byte, info.Size()-from)
	n, err := f.ReadAt(b, from)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil
	}
	all := strings.Split(strings.TrimSuffix(string(b[:n]), "\n"), "\n")
	if from > 0 {
		all = all[1:] // it may begin in the middle
	}
	var out []string
	for _, l := range all {
		if l = readable(l); l != "" {
			out = append(out, l)
		}
	}
	if long := len(out) > 2*mostKept || from > 0; long {
		out = out[max(len(out)-mostKept, 0):]
		k.replace(out)
	}
	return out[max(len(out)-mostKept, 0):]
}

// replace writes the file anew.
func (k *keptLines) replace(all []string) {
	f, err := os.CreateTemp(filepath.Dir(k.path), filepath.Base(k.path)+".*") // for its owner alone
	if err != nil {
		return
	}
	_, err = f.WriteString(strings.Join(all, "\n") + "\n")
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), k.path)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // there is nothing more to be done about it
	}
}

// add keeps a line.
func (k *keptLines) add(line string) {
	if line = readable(line); k.path == "" || line == "" {
		return
	}
	f, err := os.OpenFile(k.path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return
	}
	defer f.Close()
	_, _ = f.WriteString(line + "\n") // in one piece: several chats may write
	if info, err := f.Stat(); err == nil && info.Mode().Perm() != 0o600 {
		_ = f.Chmod(0o600)
	}
}
