package catalogue

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"openskill/sdk/skill"
)

// StateFile is the name of the file that says what is so of the versions beside it. It is
// replaced by another one whenever that changes.
const StateFile = "state.json"

const (
	damagedFile = "state.json.damaged"
	format      = 1
	// maxState bounds what is read of a state file; a full one has some kilobytes.
	maxState = 4 << 20
	// maxHistory is how many steps back a skill can be rolled.
	maxHistory = 50
	// maxRemembered is how many versions one skill can have over all time, and maxGoneSkills
	// how many skills of a tenant are remembered of which nothing else is left. Beyond them
	// nothing new is taken: what is known is never forgotten, so that a name is not used again.
	maxRemembered = 2000
	maxGoneSkills = 5000
	// maxReleases is how many releases from quarantine are kept on record.
	maxReleases = 20
)

// state is what is so of one skill. Once in Store.skills it is never changed, only
// replaced.
type state struct {
	Format   int        `json:"format"`
	Tenant   string     `json:"tenant"`
	ID       skill.ID   `json:"id"`
	Current  string     `json:"current"`           // what calls without a version get; "" for none
	History  []string   `json:"history,omitempty"` // what was current before, the last one last
	Versions []*version `json:"versions"`          // in the order of their upload

	besides *Now // while a shared record is changed: what else there is
}

// version is what is so of one version.
type version struct {
	Version    string      `json:"version"`
	Digest     string      `json:"digest"`
	Size       int64       `json:"size"` // bytes that it takes of the disk
	UploadedBy string      `json:"uploaded_by"`
	UploadedAt time.Time   `json:"uploaded_at"`
	Enabled    bool        `json:"enabled"`
	WasEnabled bool        `json:"was_enabled,omitempty"` // at any time
	Approved   *Decision   `json:"approved,omitempty"`
	Quarantine *Decision   `json:"quarantine,omitempty"` // who put it there is the host
	Released   []*Decision `json:"released,omitempty"`
	Deleted    *time.Time  `json:"deleted,omitempty"`
	Gone       bool        `json:"gone,omitempty"` // the files too: what the version was is remembered

	absent bool // of a shared one: the files are not on this host yet
}

// Decision is a word on record.
type Decision struct {
	By   string    `json:"by"` // id of the principal; "host" for the host itself
	At   time.Time `json:"at"`
	Word string    `json:"word,omitempty"` // the reason
}

func (v *version) folder() string { return folderName(v.Version, v.Digest) }

func (v *version) state() skill.State {
	switch {
	case v.Deleted != nil:
		return skill.StateDeleted
	case v.Quarantine != nil:
		return skill.StateQuarantined
	case v.Enabled:
		return skill.StateEnabled
	}
	return skill.StateDisabled
}

// find gives the version of a name that was not deleted, or nil.
func (st *state) find(name string) *version {
	for _, v := range st.Versions {
		if v.Version == name && v.Deleted == nil {
			return v
		}
	}
	return nil
}

// live gives the versions that were not deleted.
func (st *state) live() (list []*version) {
	for _, v := range st.Versions {
		if v.Deleted == nil {
			list = append(list, v)
		}
	}
	return list
}

// onDisk gives the versions whose files are there, deleted or not.
func (st *state) onDisk() (list []*version) {
	for _, v := range st.Versions {
		if !v.Gone {
			list = append(list, v)
		}
	}
	return list
}

// clone is a copy that may be changed.
func (st *state) clone() *state {
	c := *st
	c.History = slices.Clone(st.History)
	c.Versions = make([]*version, len(st.Versions))
	for i, v := range st.Versions {
		w := *v
		w.Released = slices.Clone(v.Released)
		c.Versions[i] = &w
	}
	return &c
}

// folderName is the name of a version's folder. The digest makes it another one when
// a version comes again with other bytes, and on file systems that know no case.
func folderName(version, digest string) string {
	hex := strings.TrimPrefix(digest, "sha256:")
	return version + "@" + hex[:min(len(hex), 16)]
}

var (
	versionPattern = regexp.MustCompile(`^[0-9][0-9A-Za-z.+-]{0,63}$`)
	digestPattern  = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)
)

// readState reads and checks the state file of a skill's folder.
func readState(folder string) (*state, error) {
	f, err := os.Open(filepath.Join(folder, StateFile))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxState {
		return nil, errors.New("is not a regular file of a valid size")
	}
	st := &state{}
	d := json.NewDecoder(f)
	d.DisallowUnknownFields()
	if err := d.Decode(st); err != nil {
		return nil, fmt.Errorf("is not JSON of this openskill version: %w", err)
	}
	return st, st.check(filepath.Base(filepath.Dir(folder)), filepath.Base(folder))
}

// check says why a state cannot be what was written for the folder that it lies in.
func (st *state) check(tenantDir, idDir string) error {
	switch {
	case st.Format != format:
		return fmt.Errorf("has the format %d; this version of openskill reads %d", st.Format, format)
	case Folder(st.Tenant) != tenantDir || string(st.ID) != idDir:
		return errors.New("is about another skill")
	}
	if _, err := skill.ParseID(string(st.ID)); err != nil {
		return errors.New("has no skill id")
	}
	seen := map[string]bool{}
	for _, v := range st.Versions {
		switch {
		case v == nil || !versionPattern.MatchString(v.Version) || !digestPattern.MatchString(v.Digest) || v.Size < 0 || v.Gone && v.Deleted == nil:
			return errors.New("lists an invalid version")
		case seen[v.Version]:
			return errors.New("lists a version twice")
		}
		seen[v.Version] = true
	}
	if st.Current != "" && !seen[st.Current] {
		return errors.New("names a missing current version")
	}
	return nil
}

// write replaces the state file in folder, through to the disk.
func (st *state) write(folder string) error {
	b, err := json.MarshalIndent(st, "", " ")
	if err != nil {
		return err
	}
	if len(b) >= maxState { // what could not be read again
		return fmt.Errorf("the record of the skill would exceed %d bytes", maxState)
	}
	return replace(filepath.Join(folder, StateFile), append(b, '\n'))
}
