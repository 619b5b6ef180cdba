package pgtest

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// initialise makes the data folder by initdb, and keeps a copy of it for the next server: it
// takes two seconds of a processor, and what it makes is the same each time.
func (s *Server) initialise(kept string) error {
	if err := os.RemoveAll(s.data()); err != nil { // half a copy
		return err
	}
	s.password = rand.Text()
	words := filepath.Join(s.folder, "password")
	if err := os.WriteFile(words, []byte(s.password), 0o600); err != nil {
		return err
	}
	if err := s.as.own(words); err != nil {
		return err
	}
	// md5 is computed in no time, unlike what protects real passwords.
	err := s.run("initdb", "-D", s.data(), "-U", "openskill", "--auth=md5", "--pwfile="+words, "-E", "UTF8", "--locale=C", "--no-sync")
	if err == nil && kept != "" {
		s.keep(kept)
	}
	return err
}

// keeper is the folder of what this version of PostgreSQL makes, "" outside the repository.
func (s *Server) keeper() (string, error) {
	version, err := s.say("initdb", "--version")
	if err != nil {
		return "", err
	}
	state := os.Getenv("OPENSKILL_STATE_DIR")
	if state == "" {
		state = ".openskill"
	}
	if !filepath.IsAbs(state) {
		root, err := repository()
		if root == "" || err != nil {
			return "", err
		}
		state = filepath.Join(root, state)
	}
	sum := sha256.Sum256([]byte(s.programs + "\n" + version))
	return filepath.Join(state, "testing", "postgres-"+hex.EncodeToString(sum[:6])), nil
}

// repository is the folder of go.mod, "" where tests run elsewhere.
func repository() (string, error) {
	dir, err := os.Getwd()
	for err == nil {
		if _, missing := os.Stat(filepath.Join(dir, "go.mod")); missing == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", nil
		}
		dir = filepath.Dir(dir)
	}
	return "", err
}

// keep keeps a copy of what initdb has made, with the password of its owner. Where that fails, the
// next one makes it again; of two at once one comes first.
func (s *Server) keep(kept string) {
	if os.MkdirAll(filepath.Dir(kept), 0o700) != nil {
		return
	}
	part, err := os.MkdirTemp(filepath.Dir(kept), ".postgres-")
	if err != nil {
		return
	}
	defer os.RemoveAll(part)
	mine := asUser{}
	if copyTree(s.data(), filepath.Join(part, "data"), mine) != nil || copyFile(filepath.Join(s.folder, "password"), filepath.Join(part, "password"), mine) != nil {
		return
	}
	_ = os.Rename(part, kept)
}

// copyKept begins with what was kept.
func (s *Server) copyKept(kept string) error {
	password, err := os.ReadFile(filepath.Join(kept, "password"))
	if err != nil {
		return err
	}
	s.password = string(password)
	return copyTree(filepath.Join(kept, "data"), s.data(), s.as)
}

// copyTree copies folders and files, and nothing else there is, to a user alone.
func copyTree(from, to string, owner asUser) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := filepath.Join(to, strings.TrimPrefix(path, from))
		switch {
		case d.IsDir():
			return errors.Join(os.Mkdir(name, 0o700), owner.own(name))
		case d.Type().IsRegular():
			return copyFile(path, name, owner)
		}
		return fmt.Errorf("%s is neither a file nor a folder", path)
	})
}

func copyFile(from, to string, owner asUser) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close(), owner.own(to))
}
