package store_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"openskill/host/records"
	"openskill/host/store"
	"openskill/host/store/storetest"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

func TestWorkspaces(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, fresh func(t *testing.T) func() *store.DB) {
		t.Run("kept", func(t *testing.T) { workspacesKept(t, fresh(t)()) })
		t.Run("in turn", func(t *testing.T) { workspacesInTurn(t, fresh(t)()) })
		t.Run("two hosts", func(t *testing.T) { workspacesOfTwoHosts(t, fresh(t)) })
		t.Run("bounds", func(t *testing.T) { workspacesBounded(t, fresh(t)()) })
		t.Run("expiry", func(t *testing.T) { workspacesExpire(t, fresh(t)()) })
	})
}

// changed makes a call's change to a workspace.
func changed(t *testing.T, w *records.Workspaces, p skill.Principal, id string, c *records.WorkspaceChange) error {
	t.Helper()
	s, leave, err := w.Enter(t.Context(), p, id, time.Minute)
	if err != nil {
		return err
	}
	defer leave()
	return w.Save(t.Context(), p, s, c)
}

func wrote(files ...string) *records.WorkspaceChange {
	c := &records.WorkspaceChange{}
	for _, f := range files {
		c.Written = append(c.Written, skill.Artifact{Name: f, Data: []byte("of " + f)})
	}
	return c
}

func namesOf(s *skill.Workspace) (names []string) {
	for _, f := range s.Files {
		names = append(names, f.Name)
	}
	return names
}

// workspacesKept: changes are stored per principal, forks are independent, and files in a workspace cannot be
// deleted.
func workspacesKept(t *testing.T, db *store.DB) {
	t.Helper()
	f, _ := filesOn(t, db, nil)
	w := records.NewWorkspaces(f)
	if _, err := w.Get(t.Context(), ann, "w"); skill.CodeOf(err) != skill.NotFound {
		t.Errorf("%v", err)
	}
	musttest.Do(t, changed(t, w, ann, "w", wrote("a", "d/b")))
	musttest.Do(t, changed(t, w, ann, "w", &records.WorkspaceChange{Removed: []string{"a", "never"}, Written: wrote("c").Written}))
	s := musttest.Get(w.Get(t.Context(), ann, "w"))(t)
	if got := namesOf(s); !slices.Equal(got, []string{"c", "d/b"}) || s.Revision != 2 || s.Size != int64(len("of cof d/b")) {
		t.Errorf("%+v", s)
	}
	musttest.Do(t, changed(t, w, ann, "w", &records.WorkspaceChange{}))
	if again := musttest.Get(w.Get(t.Context(), ann, "w"))(t); again.Revision != 2 {
		t.Errorf("nothing was changed: %+v", again)
	}
	for _, other := range []skill.Principal{bob, eve} {
		if _, err := w.Get(t.Context(), other, "w"); skill.CodeOf(err) != skill.NotFound {
			t.Errorf("%s: %v", other.ID, err)
		}
		if list, _, err := w.List(t.Context(), other, "", 10); err != nil || len(list) > 0 {
			t.Errorf("%s: %v %v", other.ID, list, err)
		}
		if err := w.Delete(t.Context(), other, "w"); skill.CodeOf(err) != skill.NotFound {
			t.Errorf("%s: %v", other.ID, err)
		}
	}
	if err := f.Delete(t.Context(), ann, s.Files[0].ID); skill.CodeOf(err) != skill.Conflict {
		t.Errorf("a file of a workspace was deleted: %v", err)
	}
	if err := f.Delete(t.Context(), bob, s.Files[0].ID); skill.CodeOf(err) != skill.Forbidden {
		t.Errorf("a file of another caller was deleted: %v", err)
	}
	lost := &records.WorkspaceChange{Kept: []skill.WorkspaceFile{{Name: "lost", ID: strings.Repeat("0", 64)}}, Removed: []string{"c"}}
	if err := changed(t, w, ann, "w", lost); skill.CodeOf(err) != skill.Conflict || !slices.Equal(namesOf(musttest.Get(w.Get(t.Context(), ann, "w"))(t)), []string{"c", "d/b"}) {
		t.Errorf("a file that was deleted meanwhile: %v", err)
	}
	fork := musttest.Get(w.Fork(t.Context(), ann, "w", "x"))(t)
	musttest.Do(t, changed(t, w, ann, "x", &records.WorkspaceChange{Removed: []string{"c"}}))
	if fork.Revision != 1 || !slices.Equal(namesOf(fork), []string{"c", "d/b"}) || !slices.Equal(namesOf(musttest.Get(w.Get(t.Context(), ann, "w"))(t)), []string{"c", "d/b"}) {
		t.Errorf("%+v", fork)
	}
	if _, err := w.Fork(t.Context(), ann, "w", "x"); skill.CodeOf(err) != skill.Conflict {
		t.Errorf("%v", err)
	}
	if page, next, err := w.List(t.Context(), ann, "", 1); err != nil || len(page) != 1 || page[0].ID != "w" || next != "w" {
		t.Errorf("%v %q %v", page, next, err)
	}
	if page, next, err := w.List(t.Context(), ann, "w", 1); err != nil || len(page) != 1 || page[0].ID != "x" || next != "" {
		t.Errorf("%v %q %v", page, next, err)
	}
	id := s.Files[0].ID
	musttest.Do(t, w.Delete(t.Context(), ann, "w"))
	musttest.Do(t, f.Delete(t.Context(), ann, id))
}

// workspacesInTurn: concurrent calls are serialized, and a call that waits too long gets CONFLICT.
func workspacesInTurn(t *testing.T, db *store.DB) {
	t.Helper()
	f, _ := filesOn(t, db, nil)
	w := records.NewWorkspaces(f)
	const calls = 16
	var inside atomic.Int32
	var group sync.WaitGroup
	for i := range calls {
		group.Go(func() {
			s, leave, err := w.Enter(t.Context(), ann, "w", time.Minute)
			if err != nil {
				t.Error(err)
				return
			}
			defer leave()
			if inside.Add(1) > 1 {
				t.Error("two have it at once")
			}
			if err := w.Save(t.Context(), ann, s, wrote(fmt.Sprint("f", i))); err != nil {
				t.Error(err)
			}
			inside.Add(-1)
		})
	}
	group.Wait()
	s, leave, err := w.Enter(t.Context(), ann, "w", time.Minute)
	musttest.Do(t, err)
	if len(s.Files) != calls || s.Revision != calls {
		t.Errorf("%+v", s)
	}
	ctx, stop := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer stop()
	if _, _, err := w.Enter(ctx, ann, "w", time.Minute); skill.CodeOf(err) != skill.Conflict {
		t.Errorf("%v", err)
	}
	soon, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	_, others, err := w.Enter(soon, bob, "w", time.Minute) // of another principal, which nobody has
	musttest.Do(t, err)
	others()
	leave()
}

// workspacesOfTwoHosts: of two hosts that change a workspace at once, the later one gets CONFLICT.
func workspacesOfTwoHosts(t *testing.T, open func() *store.DB) {
	t.Helper()
	f1, _ := filesOn(t, open(), nil)
	f2, _ := filesOn(t, open(), nil)
	w1, w2 := records.NewWorkspaces(f1), records.NewWorkspaces(f2)
	for _, first := range []bool{true, false} {
		s, leave, err := w1.Enter(t.Context(), ann, "w", time.Minute)
		musttest.Do(t, err)
		musttest.Do(t, changed(t, w2, ann, "w", wrote(fmt.Sprint("two", first))))
		if err := w1.Save(t.Context(), ann, s, wrote("one")); skill.CodeOf(err) != skill.Conflict {
			t.Errorf("%v", err)
		}
		leave()
	}
	musttest.Do(t, changed(t, w1, ann, "w", wrote("one")))
	s := musttest.Get(w2.Get(t.Context(), ann, "w"))(t)
	if !slices.Equal(namesOf(s), []string{"one", "twofalse", "twotrue"}) {
		t.Errorf("%+v", s)
	}
	for _, file := range s.Files {
		if _, _, err := f2.Path(t.Context(), ann, file.ID); err != nil {
			t.Errorf("%s: %v", file.Name, err)
		}
	}
}

// workspacesBounded: a change beyond a limit is refused as a whole.
func workspacesBounded(t *testing.T, db *store.DB) {
	t.Helper()
	f, _ := filesOn(t, db, nil)
	w := records.NewWorkspaces(f)
	musttest.Do(t, changed(t, w, ann, "w", wrote("a")))
	many := make([]string, 1000)
	for i := range many {
		many[i] = fmt.Sprint("f", i)
	}
	large := &records.WorkspaceChange{Kept: []skill.WorkspaceFile{{Name: "b", ID: strings.Repeat("0", 64), Size: 256 << 20}}}
	for name, c := range map[string]*records.WorkspaceChange{"files": wrote(many...), "bytes": large} {
		if err := changed(t, w, ann, "w", c); skill.CodeOf(err) != skill.PayloadTooLarge {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{"a/b", "a/b/c"} { // a is a file
		if err := changed(t, w, ann, "w", wrote(name)); skill.CodeOf(err) != skill.Conflict {
			t.Errorf("%s: %v", name, err)
		}
	}
	if s := musttest.Get(w.Get(t.Context(), ann, "w"))(t); !slices.Equal(namesOf(s), []string{"a"}) {
		t.Errorf("%+v", s)
	}
	for i := range 999 {
		if _, err := w.Fork(t.Context(), ann, "w", fmt.Sprint("n", i)); err != nil {
			t.Fatal(i, err)
		}
	}
	if _, err := w.Fork(t.Context(), ann, "w", "more"); skill.CodeOf(err) != skill.Conflict || !strings.Contains(err.Error(), "too many") {
		t.Errorf("%v", err)
	}
	for _, id := range []string{"", "-a", "a/b", "..", "a b", strings.Repeat("a", 65), "ä"} {
		if _, _, err := w.Enter(t.Context(), ann, id, time.Minute); skill.CodeOf(err) != skill.InvalidArgument {
			t.Errorf("%q: %v", id, err)
		}
	}
}

// workspacesExpire: unused workspaces and their files expire; use extends both.
func workspacesExpire(t *testing.T, db *store.DB) {
	t.Helper()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	f, _ := filesOn(t, db, func(o *records.FilesOptions) { o.Keep, o.Now = time.Hour, func() time.Time { return now } })
	w := records.NewWorkspaces(f)
	musttest.Do(t, changed(t, w, ann, "w", wrote("a")))
	now = now.Add(50 * time.Minute)
	musttest.Do(t, changed(t, w, ann, "w", &records.WorkspaceChange{}))
	now = now.Add(50 * time.Minute)
	_, leave, err := w.Enter(t.Context(), ann, "w", time.Minute) // by a call that fails
	musttest.Do(t, err)
	leave()
	now = now.Add(50 * time.Minute)
	musttest.Do(t, f.Sweep(t.Context()))
	s := musttest.Get(w.Get(t.Context(), ann, "w"))(t)
	if _, _, err := f.Path(t.Context(), ann, s.Files[0].ID); err != nil {
		t.Error(err)
	}
	now = now.Add(2 * time.Hour)
	if _, err := w.Get(t.Context(), ann, "w"); skill.CodeOf(err) != skill.NotFound {
		t.Errorf("%v", err)
	}
	musttest.Do(t, changed(t, w, ann, "w", wrote("b"))) // in its place
	now = now.Add(2 * time.Hour)
	musttest.Do(t, f.Sweep(t.Context()))
	if n := count(t, db, "workspaces") + count(t, db, "files") + count(t, db, "file_parts"); n != 0 {
		t.Errorf("%d rows are left", n)
	}
}
