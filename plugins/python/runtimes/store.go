package runtimes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"openskill/sdk/skill"
)

// Store is the runtimes below one state folder. It is safe for concurrent use, by
// several processes too.
type Store struct {
	dir     string // STATE/runtimes
	recipes []*recipe
	fetch   fetcher

	mu       sync.Mutex
	verified map[string]os.FileInfo // files that had their hash, as they were then
}

// New gives the runtimes of a state folder; "" means .openskill in the working
// directory. Nothing is read or made yet.
func New(state string) *Store {
	if state == "" {
		state = ".openskill"
	}
	return newStore(state, recipes(), fetchArchive)
}

func newStore(state string, r []*recipe, f fetcher) *Store {
	return &Store{dir: filepath.Join(state, "runtimes"), recipes: r, fetch: f, verified: make(map[string]os.FileInfo)}
}

// Names are the runtimes that there are, the default first.
func (s *Store) Names() []string {
	names := make([]string, len(s.recipes))
	for i, r := range s.recipes {
		names[i] = r.name
	}
	return names
}

// recipe finds a runtime by name. The error is a *skill.Error of code NOT_FOUND.
func (s *Store) recipe(op, name string) (*recipe, error) {
	for _, r := range s.recipes {
		if r.name == name {
			return r, nil
		}
	}
	return nil, &skill.Error{
		Op: op, Code: skill.NotFound, Subject: skill.CleanText(name, 80),
		Message: fmt.Sprintf("unknown runtime %q: use %s", skill.CleanText(name, 80), strings.Join(s.Names(), ", ")),
	}
}

func (s *Store) folder(r *recipe) string { return filepath.Join(s.dir, r.name) }

// State is how a runtime is found in the state folder.
type State string

// The states.
const (
	Installed State = "installed" // its files are there, with their sizes
	Absent    State = "absent"
	Damaged   State = "damaged" // a file is missing or differs
	Foreign   State = "foreign" // made by another version of openskill, or by something else
)

// Status is what is known of a runtime without reading its files.
type Status struct {
	Name    string `json:"name"`
	Version string `json:"version"` // of Python
	State   State  `json:"state"`
	Detail  string `json:"detail,omitempty"` // what is wrong; empty for Installed and Absent
	Default bool   `json:"default"`
	Bytes   int64  `json:"bytes"` // on disk when installed
	Fetched int64  `json:"fetched_bytes"`
	Source  string `json:"source"`
	About   string `json:"about"`
}

// List gives all runtimes, the default first.
func (s *Store) List() []Status {
	list := make([]Status, len(s.recipes))
	for i, r := range s.recipes {
		list[i] = s.status(r, r.present(s.folder(r)))
		list[i].Default = i == 0
	}
	return list
}

func (s *Store) status(r *recipe, err error) Status {
	st := Status{
		Name: r.name, Version: r.version, Fetched: r.source.size,
		Source: string(r.source.manager) + " " + r.source.String(), About: r.about,
	}
	for _, o := range r.outputs {
		st.Bytes += o.size
	}
	st.State = Installed
	if err != nil {
		st.State, st.Detail = Damaged, err.Error()
		switch {
		case errors.Is(err, errAbsent):
			st.State, st.Detail = Absent, ""
		case errors.Is(err, errForeign):
			st.State = Foreign
		}
	}
	return st
}

// Verify reads every file of a runtime and compares it with its SHA-256. Status says
// what was found; the error is only for a name that there is not.
func (s *Store) Verify(ctx context.Context, name string) (Status, error) {
	r, err := s.recipe("runtimes.Verify", name)
	if err != nil {
		return Status{}, err
	}
	err = r.verify(s.folder(r))
	if ctx.Err() != nil {
		return Status{}, ctx.Err()
	}
	st := s.status(r, err)
	st.Default = r == s.recipes[0]
	return st, nil
}

// Runtime is an installed runtime whose files have been verified.
type Runtime struct {
	Name    string
	Version string // of Python
	Module  File   // the module that is run; its digest is what the engine computes
	Mounts  []Mount
	Run
}

// File is a file of a runtime.
type File struct {
	Path   string // on the host
	Digest string // "sha256:" and hexadecimal digits
	Size   int64  // bytes
}

// Mount is what a guest must see, read-only: at Guest, an absolute path, a folder with
// the members of File, which is a zip archive. [Runtime.Mount] opens them.
type Mount struct {
	Guest string
	File
}

// Open gives an installed runtime. Its files are read and compared with their hashes,
// once in the life of the Store as long as they do not change. The error is a
// *skill.Error of code TOOL_INVOCATION_ERROR that says what to install, or NOT_FOUND
// for a name that there is not.
func (s *Store) Open(name string) (*Runtime, error) {
	r, err := s.recipe("runtimes.Open", name)
	if err != nil {
		return nil, err
	}
	dir, err := filepath.Abs(s.folder(r))
	if err == nil {
		err = r.present(dir)
	}
	for i := range r.outputs {
		if o := &r.outputs[i]; err == nil {
			err = s.check(o, filepath.Join(dir, o.name))
		}
	}
	if err != nil {
		return nil, unavailable(r, err)
	}
	return s.At(name)
}

// At gives a runtime as it is when it is installed, for those who are told that somebody
// has opened it: nothing is looked at.
func (s *Store) At(name string) (*Runtime, error) {
	r, err := s.recipe("runtimes.At", name)
	if err != nil {
		return nil, err
	}
	dir, err := filepath.Abs(s.folder(r))
	if err != nil {
		return nil, unavailable(r, err)
	}
	files := make(map[string]File, len(r.outputs))
	for _, o := range r.outputs {
		files[o.name] = File{Path: filepath.Join(dir, o.name), Digest: "sha256:" + o.sha256, Size: o.size}
	}
	out := &Runtime{Name: r.name, Version: r.version, Module: files["python.wasm"], Run: r.run}
	out.Env = slices.Clone(r.run.Env)
	for _, m := range r.mounts {
		out.Mounts = append(out.Mounts, Mount{Guest: m.guest, File: files[m.output]})
	}
	return out, nil
}

// check verifies a file unless it is the one that was verified before.
func (s *Store) check(o *output, path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return &damage{o.name, "is not there"}
	}
	s.mu.Lock()
	old := s.verified[path]
	s.mu.Unlock()
	if old != nil && os.SameFile(old, info) && old.Size() == info.Size() && old.ModTime().Equal(info.ModTime()) {
		return nil
	}
	if err := o.verify(filepath.Dir(path)); err != nil {
		return err
	}
	s.mu.Lock()
	s.verified[path] = info // of before the reading: a change since is another file
	s.mu.Unlock()
	return nil
}

func unavailable(r *recipe, err error) error {
	message := "the Python runtime " + r.name + " is not installed"
	var d *damage
	switch {
	case errors.As(err, &d):
		message = "the Python runtime " + r.name + " is damaged (" + d.Error() + ")"
	case errors.Is(err, errForeign):
		message = "the Python runtime " + r.name + " is from another version of openskill"
	}
	return &skill.Error{
		Op: "runtimes.Open", Code: skill.ToolInvocationError, Subject: r.name, Err: err,
		Message: message + "; the operator must run: openskill runtime install " + r.name,
	}
}
