package store_test

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
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

func TestCodeSessions(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, fresh func(t *testing.T) func() *store.DB) {
		t.Run("kept", func(t *testing.T) { sessionsKept(t, fresh(t)()) })
		t.Run("two hosts", func(t *testing.T) { sessionsOfTwoHosts(t, fresh(t)) })
		t.Run("bounds", func(t *testing.T) { sessionsBounded(t, fresh(t)()) })
		t.Run("expiry", func(t *testing.T) { sessionsExpire(t, fresh(t)()) })
	})
}

func sessionsOn(t *testing.T, db *store.DB, now *atomic.Int64, bound func(*records.SessionsOptions)) *records.Sessions {
	t.Helper()
	f, _ := filesOn(t, db, func(o *records.FilesOptions) {
		if now != nil {
			o.Now = func() time.Time { return time.Unix(now.Load(), 0) }
		}
	})
	o := records.SessionsOptions{Files: f, Workspaces: records.NewWorkspaces(f)}
	if bound != nil {
		bound(&o)
	}
	return records.NewSessions(o)
}

// ran makes a call in a session, which leaves a memory.
func ran(t *testing.T, s *records.Sessions, p skill.Principal, id string, memory []byte, fuel uint64) (before []byte, err error) {
	t.Helper()
	h, leave, err := s.Enter(t.Context(), p, id, 0)
	if err != nil {
		return nil, err
	}
	defer leave()
	var left *records.SessionMemory
	if memory != nil {
		left = &records.SessionMemory{State: memory, Ahead: h.Ahead, Execution: string(memory)}
	}
	return h.State.State, s.Save(p, h, left, fuel)
}

// wantMemory makes a call that leaves no memory, and holds what it finds against want.
func wantMemory(t *testing.T, s *records.Sessions, p skill.Principal, id, want string) {
	t.Helper()
	if got, err := ran(t, s, p, id, nil, 0); err != nil || string(got) != want {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
}

// sessionsKept: calls of the principal find the memory of the last call that left one; forks are independent.
func sessionsKept(t *testing.T, db *store.DB) {
	t.Helper()
	s := sessionsOn(t, db, nil, nil)
	one := musttest.Get(s.Create(t.Context(), ann, "python", "", 64, []string{"numpy", "greetings"}))(t)
	if _, err := s.Create(t.Context(), ann, "shell", "", 0, nil); skill.CodeOf(err) != skill.InvalidArgument {
		t.Errorf("%v", err)
	}
	wantMemory(t, s, ann, one.ID, "")
	musttest.Get(ran(t, s, ann, one.ID, []byte("first"), 7))(t)
	fork := musttest.Get(s.Fork(t.Context(), ann, one.ID))(t)
	musttest.Get(ran(t, s, ann, fork.ID, []byte("of the fork"), 0))(t)
	wantMemory(t, s, ann, one.ID, "first")
	wantMemory(t, s, ann, fork.ID, "of the fork")
	for _, p := range []skill.Principal{bob, eve} {
		_, get := s.Get(t.Context(), p, one.ID)
		_, enter := ran(t, s, p, one.ID, nil, 0)
		_, forked := s.Fork(t.Context(), p, one.ID)
		_, frozen := s.Freeze(t.Context(), p, one.ID)
		for _, err := range []error{get, enter, forked, frozen, s.Delete(t.Context(), p, one.ID)} {
			if skill.CodeOf(err) != skill.NotFound {
				t.Errorf("%s finds it: %v", p.ID, err)
			}
		}
		if list, _, err := s.List(t.Context(), p, "", 10); err != nil || len(list) > 0 {
			t.Errorf("%s lists %v, %v", p.ID, list, err)
		}
	}
	_, leave, err := s.Enter(t.Context(), ann, one.ID, 0)
	musttest.Do(t, err)
	if _, err := ran(t, s, ann, one.ID, nil, 0); skill.CodeOf(err) != skill.Conflict {
		t.Errorf("two calls at once: %v", err)
	}
	leave()
	frozen := musttest.Get(s.Freeze(t.Context(), ann, one.ID))(t)
	again := musttest.Get(s.Freeze(t.Context(), ann, one.ID))(t)
	if !frozen.Frozen || !reflect.DeepEqual(again, frozen) || frozen.FuelUsed != 7 || frozen.Runs != 3 || frozen.MemoryMB != 64 || frozen.Size != 5 {
		t.Errorf("%+v %+v", frozen, again)
	}
	list, next, err := s.List(t.Context(), ann, "", 1)
	if err != nil || len(list) != 1 || next != list[0].ID {
		t.Errorf("%v %q %v", list, next, err)
	}
	more, next, err := s.List(t.Context(), ann, next, 1)
	if err != nil || len(more) != 1 || next != "" || list[0].Frozen == more[0].Frozen {
		t.Errorf("%v %q %v", more, next, err)
	}
	wantMemory(t, s, ann, one.ID, "first")
	musttest.Get(s.Freeze(t.Context(), ann, one.ID))(t)
	h, leave, err := s.Enter(t.Context(), ann, one.ID, 0)
	musttest.Do(t, err)
	if got := fmt.Sprint(h.Packages, h.Ahead, h.Ahead == nil); got != "[numpy greetings] [] false" {
		t.Errorf("packages of the frozen session: %s", got)
	}
	musttest.Do(t, s.Save(ann, h, &records.SessionMemory{State: h.State.State, Ahead: []string{"PIL", "numpy"}, Execution: "e-1"}, 0))
	leave()
	musttest.Get(s.Freeze(t.Context(), ann, one.ID))(t)
	h, leave, err = s.Enter(t.Context(), ann, one.ID, 0)
	musttest.Do(t, err)
	leave()
	if fmt.Sprint(h.Ahead, h.Last) != "[PIL numpy]e-1" {
		t.Errorf("imports and last run of the frozen session: %v %s", h.Ahead, h.Last)
	}
	for _, wrong := range [][]string{{"a,b"}, {strings.Repeat("a", 215)}, make([]string, 33)} {
		if _, err := s.Create(t.Context(), ann, "python", "", 0, wrong); skill.CodeOf(err) != skill.InvalidArgument {
			t.Errorf("%.20v: %v", wrong, err)
		}
	}
	for _, id := range []string{one.ID, fork.ID} {
		musttest.Do(t, s.Delete(t.Context(), ann, id))
		if _, err := s.Get(t.Context(), ann, id); skill.CodeOf(err) != skill.NotFound {
			t.Errorf("deleted: %v", err)
		}
	}
}

// sessionsOfTwoHosts: one of many hosts goes on with a frozen session. A memory that was changed is refused.
func sessionsOfTwoHosts(t *testing.T, open func() *store.DB) {
	t.Helper()
	var hosts []*records.Sessions
	for range 3 {
		hosts = append(hosts, sessionsOn(t, open(), nil, nil))
	}
	one := musttest.Get(hosts[0].Create(t.Context(), ann, "python", "", 0, nil))(t)
	memory := bytes.Repeat([]byte("memory"), 100_000)
	musttest.Get(ran(t, hosts[0], ann, one.ID, memory, 0))(t)
	if _, err := hosts[1].Get(t.Context(), ann, one.ID); skill.CodeOf(err) != skill.NotFound {
		t.Errorf("it is in the memory of another host: %v", err)
	}
	for round := range 5 {
		for _, h := range hosts {
			if _, err := h.Freeze(t.Context(), ann, one.ID); err != nil && skill.CodeOf(err) != skill.NotFound {
				t.Error(err)
			}
		}
		var found atomic.Int32
		var all sync.WaitGroup
		for _, h := range hosts {
			all.Go(func() {
				switch got, err := ran(t, h, ann, one.ID, nil, 0); {
				case err == nil && bytes.Equal(got, memory):
					found.Add(1)
				case skill.CodeOf(err) != skill.NotFound:
					t.Errorf("%d bytes, %v", len(got), err)
				}
			})
		}
		all.Wait()
		if found.Load() != 1 {
			t.Errorf("round %d: %d hosts have it", round, found.Load())
		}
	}
	for _, h := range hosts {
		h.FreezeAll(t.Context())
	}
	db := open()
	musttest.Get(db.Write.ExecContext(t.Context(), "UPDATE file_parts SET body = $1 WHERE part = 0", []byte("changed")))(t)
	if _, err := ran(t, sessionsOn(t, db, nil, nil), ann, one.ID, nil, 0); skill.CodeOf(err) != skill.Internal {
		t.Errorf("its memory was changed: %v", err)
	}
}

// sessionsBounded: number, bytes and fuel end at their bounds, and nothing is lost there.
func sessionsBounded(t *testing.T, db *store.DB) {
	t.Helper()
	s := sessionsOn(t, db, nil, func(o *records.SessionsOptions) { o.Most, o.MostTenant, o.MostHost, o.MostFuel = 2, 100, 150, 10 })
	ids := map[string][]string{}
	for _, p := range []skill.Principal{ann, bob, eve} {
		for range 2 {
			ids[p.ID] = append(ids[p.ID], musttest.Get(s.Create(t.Context(), p, "python", "", 0, nil))(t).ID)
		}
		if _, err := s.Create(t.Context(), p, "python", "", 0, nil); skill.CodeOf(err) != skill.PayloadTooLarge {
			t.Errorf("a third: %v", err)
		}
	}
	musttest.Get(s.Freeze(t.Context(), ann, ids[ann.ID][0]))(t)
	if _, err := s.Create(t.Context(), ann, "python", "", 0, nil); skill.CodeOf(err) != skill.PayloadTooLarge {
		t.Errorf("a third, beside a frozen one: %v", err)
	}
	fill := func(p skill.Principal, id string, n int) error {
		_, err := ran(t, s, p, id, bytes.Repeat([]byte("x"), n), 0)
		return err
	}
	full := func(err error) {
		t.Helper()
		if skill.CodeOf(err) != skill.PayloadTooLarge {
			t.Errorf("more than there is room for: %v", err)
		}
	}
	musttest.Do(t, errors.Join(fill(ann, ids[ann.ID][0], 60), fill(bob, ids[bob.ID][0], 40)))
	full(fill(bob, ids[bob.ID][0], 41))
	wantMemory(t, s, bob, ids[bob.ID][0], "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx")
	musttest.Do(t, fill(eve, ids[eve.ID][0], 50))
	full(fill(eve, ids[eve.ID][0], 51)) // of the host
	h, leave, err := s.Enter(t.Context(), eve, ids[eve.ID][0], 0)
	musttest.Do(t, err)
	if err := s.Fits(eve, h, 50); err != nil {
		t.Errorf("what is there does not fit: %v", err)
	}
	full(s.Fits(eve, h, 51))
	leave()
	musttest.Do(t, s.Delete(t.Context(), ann, ids[ann.ID][0]))
	musttest.Do(t, errors.Join(fill(eve, ids[eve.ID][0], 51), fill(bob, ids[bob.ID][1], 59), fill(bob, ids[bob.ID][1], 0)))
	for i, want := range []skill.Code{"", "", skill.FuelExhausted} {
		_, err := ran(t, s, eve, ids[eve.ID][1], nil, 6)
		if got := skill.CodeOf(err); err != nil && got != want || err == nil && want != "" {
			t.Errorf("call %d of 6 units: %v", i, err)
		}
	}
}

// sessionsExpire: a session ends an hour after its last use, and a day after it was made.
func sessionsExpire(t *testing.T, db *store.DB) {
	t.Helper()
	var now atomic.Int64
	now.Store(1_700_000_000)
	s := sessionsOn(t, db, &now, func(o *records.SessionsOptions) { o.MostHost = 3 })
	var ids []string
	for i := range 3 {
		ids = append(ids, musttest.Get(s.Create(t.Context(), ann, "python", "", 0, nil))(t).ID)
		musttest.Get(ran(t, s, ann, ids[i], fmt.Append(nil, i), 0))(t)
	}
	musttest.Get(s.Freeze(t.Context(), ann, ids[0]))(t)
	now.Add(3000)
	wantMemory(t, s, ann, ids[1], "1")
	now.Add(700)
	for _, id := range []string{ids[0], ids[2]} {
		if _, err := ran(t, s, ann, id, nil, 0); skill.CodeOf(err) != skill.NotFound {
			t.Errorf("after an hour: %v", err)
		}
	}
	wantMemory(t, s, ann, ids[1], "1")
	for range 23 {
		now.Add(3500)
		if _, err := ran(t, s, ann, ids[1], nil, 0); err != nil {
			t.Fatal(err)
		}
	}
	now.Add(3500)
	if _, err := ran(t, s, ann, ids[1], nil, 0); skill.CodeOf(err) != skill.NotFound {
		t.Errorf("after a day: %v", err)
	}
	now.Add(3700)
	s.Sweep() // or the memory of expired sessions would take room for ever
	other := musttest.Get(s.Create(t.Context(), eve, "python", "", 0, nil))(t)
	musttest.Get(ran(t, s, eve, other.ID, []byte("all"), 0))(t)
}
