//go:build unix

package app

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

func TestRefusesStateFolderOfOthers(t *testing.T) {
	t.Parallel()
	open := func(dir string) error {
		s := settings(t, map[string]string{"state": dir})
		h, err := Open(s, nil)
		if err == nil {
			err = h.Close()
		}
		return err
	}
	refused := func(dir, why string) {
		t.Helper()
		var e *skill.Error
		err := open(dir)
		if !errors.As(err, &e) || e.Code != skill.InvalidArgument || !strings.Contains(e.Message, why) {
			t.Errorf("%v, want a refusal that says %q", err, why)
		}
	}
	dir := filepath.Join(t.TempDir(), "state")
	musttest.Do(t, os.Mkdir(dir, 0o700))
	for _, mode := range []os.FileMode{0o720, 0o702, 0o777, 0o1777} {
		musttest.Do(t, os.Chmod(dir, mode))
		refused(dir, "chmod go-w")
	}
	musttest.Do(t, os.Chmod(dir, 0o755))
	if err := open(dir); err != nil {
		t.Error(err)
	}
	for _, part := range []string{"modules", "skills", "recording.key", "openskill.db"} {
		path := filepath.Join(dir, part)
		if _, err := os.Stat(path); err != nil {
			musttest.Do(t, os.Mkdir(path, 0o700))
		}
		musttest.Do(t, os.Chmod(path, 0o722))
		refused(dir, part)
		musttest.Do(t, os.Chmod(path, 0o700))
	}
	if os.Geteuid() != 0 {
		t.Log("only root can give a folder away: the owner is not tried")
		return
	}
	musttest.Do(t, os.Chown(dir, 65534, 65534))
	refused(dir, "belongs to user 65534")
	link := filepath.Join(t.TempDir(), "link")
	musttest.Do(t, os.Symlink(dir, link))
	refused(link, "belongs to user 65534")
}

func TestWarningsNameWeakSettings(t *testing.T) {
	t.Parallel()
	for workers, want := range map[string]string{"shared": "one worker process", "tenant": "", "skill": ""} {
		list := Warnings(settings(t, map[string]string{"workers": workers}))
		switch {
		case want == "" && len(list) > 0:
			t.Errorf("%s: %+v", workers, list)
		case want != "" && (len(list) != 1 || list[0].Name != "OPENSKILL_WORKERS" || !strings.Contains(list[0].Detail, want)):
			t.Errorf("%s: %+v, want %q", workers, list, want)
		}
	}
}

// A host's own secret may be used without issuer and audience, which is told.
func TestWarningsNameUncheckedClaims(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		flags map[string]string
		want  []string
	}{
		"neither":     {nil, []string{"OPENSKILL_JWT_ISSUER", "OPENSKILL_JWT_AUDIENCE"}},
		"no audience": {map[string]string{"jwt-issuer": "i"}, []string{"OPENSKILL_JWT_AUDIENCE"}},
		"both":        {map[string]string{"jwt-issuer": "i", "jwt-audience": "a"}, nil},
	} {
		s := settings(t, c.flags)
		if list := Warnings(s); slices.ContainsFunc(list, func(f Finding) bool { return strings.HasPrefix(f.Name, "OPENSKILL_JWT") }) {
			t.Errorf("%s: no JWTs are accepted: %+v", name, list)
		}
		s.JWTSecret = jwtSecret
		var names []string
		for _, w := range Warnings(s) {
			if strings.HasPrefix(w.Name, "OPENSKILL_JWT") {
				names = append(names, w.Name)
			}
		}
		if !slices.Equal(names, c.want) {
			t.Errorf("%s: %v, want %v", name, names, c.want)
		}
	}
}
