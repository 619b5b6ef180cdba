package state_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"openskill/internal/musttest"
	"openskill/internal/state"
)

// made is a state of some of 64 pages, whose contents are few.
func made(rng *rand.Rand) *state.State {
	s := &state.State{Size: 64 * state.PageSize}
	for i := range s.Tag {
		s.Tag[i] = byte(rng.Uint32())
	}
	for i := range uint32(rng.IntN(3)) {
		s.Opened = append(s.Opened, i+7)
	}
	for n := range uint32(64) {
		if rng.IntN(2) == 0 {
			s.Pages = append(s.Pages, n)
			s.Data = append(s.Data, bytes.Repeat([]byte{byte(rng.IntN(3))}, state.PageSize)...)
		}
	}
	return s
}

// What was written is read; a difference and the old state make the new one.
func TestPatch(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		a, b := made(rng), made(rng)
		old, want := a.Append(nil), b.Append(nil)
		if a.Length() != len(old) || state.TagOf(old) != a.Tag {
			t.Fatalf("%d bytes, tag %x; want %d and %x", len(old), state.TagOf(old), a.Length(), a.Tag)
		}
		read := musttest.Get(state.Read(old))(t)
		if !bytes.Equal(read.Append(nil), old) {
			t.Fatal("it was not read as it was written")
		}
		diff := musttest.Get(state.Diff(old, want))(t)
		if got := musttest.Get(state.Patch(old, diff))(t); !bytes.Equal(got, want) {
			t.Fatal("the difference makes another state")
		}
	}
	one := made(rng).Append(nil)
	if diff := musttest.Get(state.Diff(one, one))(t); len(diff) > 200 {
		t.Errorf("no difference takes %d bytes", len(diff))
	}
}

// Read refuses truncated states, unsorted pages, and pages beyond the memory.
func TestDamaged(t *testing.T) {
	t.Parallel()
	s := made(rand.New(rand.NewPCG(3, 4)))
	whole := s.Append(nil)
	for i := range whole {
		if _, err := state.Read(whole[:i]); !errors.Is(err, state.ErrDamaged) {
			t.Fatalf("%d bytes of %d: %v", i, len(whole), err)
		}
	}
	if _, err := state.Read(append(whole, 0)); !errors.Is(err, state.ErrDamaged) {
		t.Errorf("a byte more: %v", err)
	}
	for what, change := range map[string]func(s *state.State){
		"a page twice":        func(s *state.State) { s.Pages[1] = s.Pages[0] },
		"pages in disorder":   func(s *state.State) { s.Pages[0], s.Pages[1] = s.Pages[1], s.Pages[0] },
		"a page behind":       func(s *state.State) { s.Size = 3 * state.PageSize },
		"a page far behind":   func(s *state.State) { s.Pages[len(s.Pages)-1] = 1<<32 - 1 },
		"more pages than are": func(s *state.State) { s.Pages = append(s.Pages, 63) },
	} {
		c := *s
		c.Pages = slices.Clone(s.Pages)
		change(&c)
		if _, err := state.Read(c.Append(nil)); !errors.Is(err, state.ErrDamaged) {
			t.Errorf("%s: %v", what, err)
		}
		if _, err := state.Patch(c.Append(nil), nil); err == nil {
			t.Errorf("%s is patched", what)
		}
	}
}

func FuzzState(f *testing.F) {
	rng := rand.New(rand.NewPCG(5, 6))
	a, b := made(rng).Append(nil), made(rng).Append(nil)
	f.Add(a, b)
	f.Add(a, musttest.Get(state.Diff(a, b))(f))
	f.Fuzz(func(t *testing.T, old, diff []byte) {
		if s, err := state.Read(old); err == nil && !bytes.Equal(s.Append(nil), old) {
			t.Error("it was not read as it was written")
		}
		if next, err := state.Patch(old, diff); err == nil {
			if _, err := state.Read(next); err != nil {
				t.Error(err)
			}
		}
	})
}
