package catalogue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"openskill/host/manifest"
	"openskill/sdk/skill"
)

// Releases before schema 14 kept the uploads of a host with SQLite in files:
//
//	<Old>/<tenant>/<id>/state.json                        what is so of one skill
//	<Old>/<tenant>/<id>/<version>@<16 hex of digest>/     one version
const (
	oldState = "state.json"
	// maxOld bounds what is read of a state file, in bytes; a full one has some kilobytes.
	maxOld = 4 << 20
)

// oldRecord is a state.json.
type oldRecord struct {
	Tenant   string        `json:"tenant"`
	ID       skill.ID      `json:"id"`
	Current  string        `json:"current"`
	History  []string      `json:"history"`
	Versions []*oldVersion `json:"versions"`
}

type oldVersion struct {
	Version    string       `json:"version"`
	Digest     string       `json:"digest"`
	Size       int64        `json:"size"`
	UploadedBy string       `json:"uploaded_by"`
	UploadedAt time.Time    `json:"uploaded_at"`
	Enabled    bool         `json:"enabled"`
	WasEnabled bool         `json:"was_enabled"`
	Approved   *oldDecision `json:"approved"`
	Quarantine *oldDecision `json:"quarantine"`
	Deleted    time.Time    `json:"deleted"`
	Gone       bool         `json:"gone"`
}

type oldDecision struct {
	By     string    `json:"by"`
	At     time.Time `json:"at"`
	Reason string    `json:"word"`
}

func (d *oldDecision) decision() *Mark {
	if d == nil {
		return nil
	}
	return &Mark{By: d.By, At: d.At, Reason: d.Reason}
}

// importOld takes over the uploads of an older release: archives first, then all records in
// one transaction, then the folders. At the end the old folder gets another name, so that
// this is done once; until then it is done again from the beginning, and what is in the
// database already stays as it is there.
func (s *Store) importOld() error {
	if s.o.Old == "" {
		return nil
	}
	found, err := fs.Glob(os.DirFS(s.o.Old), "*/*/"+oldState)
	if err != nil || len(found) == 0 {
		return err
	}
	var records []*record
	folders := map[key]string{}
	for _, name := range found {
		r, err := readOld(filepath.Join(s.o.Old, filepath.FromSlash(name)))
		if err != nil {
			s.o.Log.Error("cannot import an upload of an older release: its record is damaged; upload it again",
				slog.String("file", name), slog.String("error", plain(err)))
			continue
		}
		folders[r.key] = filepath.Dir(filepath.Join(s.o.Old, filepath.FromSlash(name)))
		if len(r.versions) > 0 {
			records = append(records, r)
		}
	}
	if err := s.importRecords(records, folders); err != nil {
		return err
	}
	for _, r := range records {
		for _, v := range r.kept() { // what cannot be moved is fetched from the database
			if err := os.MkdirAll(s.Folder(r.key.tenant), 0o700); err == nil {
				_ = move(filepath.Join(folders[r.key], oldFolder(v)), s.folder(r.key, v))
			}
		}
	}
	if err := os.Rename(s.o.Old, s.o.Old+".imported"); err != nil {
		return err
	}
	s.o.Log.Info("imported the uploads of an older release", slog.Int("skills", len(records)))
	return nil
}

// importRecords writes the records that the database has not, and the files of their versions.
func (s *Store) importRecords(records []*record, folders map[key]string) error {
	ctx, stop := context.WithCancel(s.ctx)
	defer stop()
	have, err := selectRecords(ctx, s.o.DB.Read, "u.revision > $1", -1)
	if err != nil {
		return err
	}
	known := map[key]bool{}
	for _, r := range have {
		known[r.key] = true
	}
	for _, r := range records {
		for _, v := range r.kept() {
			if known[r.key] {
				continue
			}
			if err := s.importFiles(ctx, filepath.Join(folders[r.key], oldFolder(v)), v); err != nil {
				return err
			}
		}
	}
	return s.commit(ctx, "catalogue.import", key{}, nil, func(t *tx) error {
		for _, r := range records {
			if before, err := t.record(r.key); err != nil || before != nil {
				if err != nil {
					return err
				}
				continue
			}
			if err := t.save(r, nil); err != nil {
				return err
			}
		}
		return nil
	})
}

// importFiles writes the files of a version into the database. One whose files are not those
// that were admitted is quarantined.
func (s *Store) importFiles(ctx context.Context, folder string, v *version) error {
	is, err := manifest.Digest(folder)
	if err == nil && is != v.digest {
		err = fmt.Errorf("their digest is %s", is)
	}
	if err != nil {
		if v.quarantine == nil {
			v.quarantine = &Mark{By: byHost, At: s.o.Now(), Reason: "its files did not match the admitted ones when they were imported: " + plain(err)}
		}
		v.enabled = false
		return nil
	}
	f, err := os.CreateTemp(s.staging(), "import-")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	if err := s.o.Admission.Pack(f, folder); err != nil {
		return err
	}
	return s.commit(ctx, "catalogue.import", key{}, []blob{{v.digest, f}}, func(*tx) error { return nil })
}

// oldFolder is the name of the folder of a version of an older release.
func oldFolder(v *version) string {
	name := folderName(v.digest)
	return v.version + "@" + name[:min(len(name), 16)]
}

var (
	versionPattern = regexp.MustCompile(`^[0-9][0-9A-Za-z.+-]{0,63}$`)
	digestPattern  = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)
)

// readOld reads and checks a state.json.
func readOld(path string) (*record, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxOld {
		return nil, errors.New("it is not a regular file of a valid size")
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	old := &oldRecord{}
	if err := json.Unmarshal(b, old); err != nil {
		return nil, err
	}
	folder := filepath.Dir(path)
	if _, err := skill.ParseID(string(old.ID)); err != nil || string(old.ID) != filepath.Base(folder) || Folder(old.Tenant) != filepath.Base(filepath.Dir(folder)) {
		return nil, errors.New("it is about another skill")
	}
	r := &record{key: key{old.Tenant, old.ID}, current: old.Current, history: old.History}
	seen := map[string]bool{}
	for i, v := range old.Versions {
		if v == nil || seen[v.Version] || !versionPattern.MatchString(v.Version) || !digestPattern.MatchString(v.Digest) || v.Size < 0 || v.Gone && v.Deleted.IsZero() {
			return nil, errors.New("it lists an invalid version")
		}
		seen[v.Version] = true
		r.versions = append(r.versions, &version{
			version: v.Version, digest: v.Digest, bytes: v.Size, position: int64(i + 1), uploadedBy: v.UploadedBy, uploadedAt: v.UploadedAt,
			enabled: v.Enabled, wasEnabled: v.WasEnabled, approved: v.Approved.decision(), quarantine: v.Quarantine.decision(), deleted: v.Deleted, gone: v.Gone,
		})
	}
	for _, name := range append([]string{old.Current}, old.History...) {
		if name != "" && !versionPattern.MatchString(name) {
			return nil, errors.New("it names an invalid version")
		}
	}
	return r, nil
}
