package catalogue

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"time"

	"openskill/sdk/skill"
)

const (
	// fetchers is how many versions are fetched and admitted at once.
	fetchers = 4
	// The time between tries to fetch a version.
	firstRetry = time.Second
	lastRetry  = 30 * time.Second
)

// arrive moves the admitted files of a version to where it is served from. It is not
// written through to the disk: what a power cut spoils is found by its digest, and
// fetched again.
func (s *Store) arrive(k key, v *version, from string) error {
	s.files.Lock()
	defer s.files.Unlock()
	s.mu.RLock()
	now := s.skills[k]
	wanted := now != nil && slices.ContainsFunc(now.kept(), func(w *version) bool { return w.digest == v.digest })
	folder := s.folder(k, v)
	there, closed := s.here[folder], s.closed
	s.mu.RUnlock()
	if closed || !wanted || there {
		return nil
	}
	if err := os.MkdirAll(s.Folder(k.tenant), 0o700); err != nil {
		return err
	}
	if err := removeAll(folder); err != nil { // what a crash left
		return err
	}
	if err := move(from, folder); err != nil {
		return err
	}
	s.loaded.forget(folder)
	s.mark(k, folder, true, "")
	return nil
}

// mark notes whether the files of a version are here, and why they are not accepted.
func (s *Store) mark(k key, folder string, here bool, refused string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if here {
		s.here[folder] = true
	} else {
		delete(s.here, folder)
	}
	if refused != "" {
		s.refused[folder] = refused
	} else {
		delete(s.refused, folder)
	}
	r := s.skills[k]
	if r == nil {
		return
	}
	r = r.clone()
	for _, v := range r.kept() {
		if s.folder(k, v) == folder {
			v.absent = s.lacks(folder, v)
		}
	}
	s.skills[k] = r
	s.index(k.tenant)
}

// lost fetches the files of a version again, which are not those that were admitted any
// more: the database has them.
func (s *Store) lost(k key, v *version, why string) {
	folder := s.folder(k, v)
	s.o.Log.Warn("the local files of an upload changed; deleting and fetching them again",
		slog.String("tenant", skill.CleanText(k.tenant, 128)), slog.String("skill_id", string(k.id)), slog.String("version", v.version), slog.String("reason", why))
	s.files.Lock()
	s.drop(folder)
	s.files.Unlock()
	s.mark(k, folder, false, "")
	s.fetchMissing()
}

// fetchMissing begins to fetch what is not here, first what is enabled.
func (s *Store) fetchMissing() {
	type missing struct {
		k key
		v *version
	}
	s.mu.Lock()
	var list []missing
	for k, r := range s.skills {
		for _, v := range r.live() {
			if folder := s.folder(k, v); v.absent && !s.fetching[folder] && !s.closed {
				s.fetching[folder] = true
				list = append(list, missing{k, v})
			}
		}
	}
	s.fetches.Add(len(list)) // under mu: Close sets closed first and waits then
	s.mu.Unlock()
	slices.SortFunc(list, func(a, b missing) int {
		if a.v.enabled != b.v.enabled {
			if a.v.enabled {
				return -1
			}
			return 1
		}
		return cmp.Or(a.v.uploadedAt.Compare(b.v.uploadedAt), cmp.Compare(a.k.id, b.k.id))
	})
	for _, m := range list {
		go func() {
			defer s.fetches.Done()
			s.fetch(m.k, m.v)
		}()
	}
}

// fetch brings the files of one version here, and tries until it has them, they are
// refused, or nobody wants them any more.
func (s *Store) fetch(k key, v *version) {
	folder := s.folder(k, v)
	defer func() {
		s.mu.Lock()
		delete(s.fetching, folder)
		s.mu.Unlock()
	}()
	for pause := firstRetry; ; pause = min(2*pause, lastRetry) {
		leave, err := s.fetcher.Enter(s.ctx, k.tenant)
		if err != nil {
			return // the host ends; or too many wait, and the next look asks again
		}
		err = s.fetchOnce(k, v)
		leave()
		if v = s.wanted(k, folder); v == nil || s.ctx.Err() != nil {
			return
		}
		if err != nil { // else its packages have changed meanwhile
			s.o.Log.Warn("cannot fetch the files of an upload; retrying",
				slog.String("skill_id", string(k.id)), slog.String("version", v.version), slog.String("error", err.Error()))
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-s.ctx.Done():
			timer.Stop()
			return
		}
	}
}

// wanted gives a version as it is now if it is still missing here, else nil.
func (s *Store) wanted(k key, folder string) *version {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if r := s.skills[k]; r != nil {
		for _, v := range r.live() {
			if v.absent && s.folder(k, v) == folder {
				return v
			}
		}
	}
	return nil
}

// fetchOnce brings the files of a version here, and those of its packages. What this host
// refuses counts as here: it is shown with the reason, and not called.
func (s *Store) fetchOnce(k key, v *version) error {
	s.mu.RLock()
	there := s.here[s.folder(k, v)]
	s.mu.RUnlock()
	if !there {
		if err := s.fetchFiles(k, v); err != nil || s.refusal(s.folder(k, v)) != "" {
			return err
		}
	}
	return s.fetchPackages(k, v)
}

// fetchFiles brings the files of a version here.
//
// it goes on when the call is over that has found something missing
func (s *Store) fetchFiles(k key, v *version) error {
	u, err := s.begin(k.tenant)
	if err != nil {
		return err
	}
	defer u.Close()
	f, err := u.File()
	if err != nil {
		return err
	}
	defer f.Close()
	ctx, stop := context.WithTimeout(s.ctx, 2*patience)
	defer stop()
	switch err := s.o.DB.ReadBlob(ctx, v.digest, f); {
	case errors.Is(err, fs.ErrNotExist):
		s.refuse(k, v, "its files are missing from the database")
		return nil
	case err != nil:
		return err
	}
	a, err := s.o.Admission.Readmit(ctx, f, k.tenant, u.Staging())
	switch told, ok := errors.AsType[*skill.Error](err); {
	case ok && told.Code.Status() == 422: // this host's own engine and rules refuse it
		s.refuse(k, v, told.Message)
		return nil
	case err != nil:
		return err
	case a.Digest != v.digest || a.Skill.Descriptor.ID != k.id || a.Skill.Descriptor.Version != v.version:
		s.refuse(k, v, "the files in the database do not match the admitted ones: their digest is "+a.Digest)
		return nil
	}
	return s.arrive(k, v, a.Folder)
}

func (s *Store) refuse(k key, v *version, why string) {
	s.o.Log.Error("this host refuses an upload that another host admitted",
		slog.String("tenant", skill.CleanText(k.tenant, 128)), slog.String("skill_id", string(k.id)), slog.String("version", v.version), slog.String("reason", why))
	s.mark(k, s.folder(k, v), false, "refused by this host: "+skill.CleanText(why, 300))
}

// refusal is why this host does not accept the files of a folder; "" where it does.
func (s *Store) refusal(folder string) string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.refused[folder]
}

// drop removes the local copy of a version; files is held.
func (s *Store) drop(folder string) {
	s.mu.Lock()
	delete(s.here, folder)
	delete(s.refused, folder)
	s.mu.Unlock()
	s.loaded.forget(folder)
	if s.o.Packages != nil {
		s.o.Packages.Forget(folder)
	}
	s.discard(folder)
}

// discard removes a folder or file now, or tries again with every Sweep.
func (s *Store) discard(path string) {
	err := removeAll(path)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		delete(s.garbage, path)
		return
	}
	if !s.garbage[path] {
		s.garbage[path] = true
		s.o.Log.Warn("cannot remove leftover files of an upload; retrying", slog.String("path", path), slog.String("error", err.Error()))
	}
}
