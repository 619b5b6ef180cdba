package storetest

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"
	"testing"
	"time"

	"openskill/host/catalogue"
	"openskill/sdk/skill"
)

// Uploads is what every catalogue.Shared must do. open gives one on a database that is
// empty at first, another one each time.
func Uploads(t *testing.T, open func() catalogue.Shared) {
	t.Helper()
	a, b := open(), open()
	state := func(text string, vs ...catalogue.Stored) func(catalogue.Now) (*catalogue.Next, error) {
		return func(catalogue.Now) (*catalogue.Next, error) {
			return &catalogue.Next{State: []byte(text), Live: len(vs) > 0, Versions: vs}, nil
		}
	}
	change := func(t *testing.T, s catalogue.Shared, tenant string, id skill.ID, files *catalogue.Files, do func(catalogue.Now) (*catalogue.Next, error)) uint64 {
		t.Helper()
		revision, err := s.Change(t.Context(), tenant, id, files, do)
		if err != nil {
			t.Fatal(err)
		}
		return revision
	}
	look := func(t *testing.T, s catalogue.Shared, tenant string, id skill.ID) (now catalogue.Now) {
		t.Helper()
		stop := errors.New("only a look")
		if _, err := s.Change(t.Context(), tenant, id, nil, func(n catalogue.Now) (*catalogue.Next, error) { now = n; return nil, stop }); !errors.Is(err, stop) {
			t.Fatal(err)
		}
		return now
	}
	digest := func(n int) string { return fmt.Sprintf("sha256:%064x", n) }

	t.Run("Records", func(t *testing.T) {
		if list, upTo, err := a.Records(t.Context(), 0); err != nil || len(list) != 0 {
			t.Fatalf("at first: %v, %d, %v", list, upTo, err)
		}
		first := change(t, a, "acme", "one", nil, state(`{"n": 1}`, catalogue.Stored{Version: "1.0.0", Digest: digest(1), Bytes: 100}))
		second := change(t, b, "acme", "two", nil, state(`{"n": 2}`, catalogue.Stored{Version: "1.0.0", Digest: digest(1), Bytes: 11}, catalogue.Stored{Version: "1.1.0", Digest: digest(2), Bytes: 7}))
		third := change(t, a, "acme", "one", nil, state(`{"n": 3}`, catalogue.Stored{Version: "1.0.0", Digest: digest(1), Bytes: 200}))
		if first >= second || second >= third {
			t.Errorf("revisions %d, %d, %d", first, second, third)
		}
		list, upTo, err := b.Records(t.Context(), first)
		if err != nil || len(list) != 2 || string(list[0].State) != `{"n": 2}` || list[0].ID != "two" || string(list[1].State) != `{"n": 3}` || list[1].Revision != third || upTo != third {
			t.Errorf("%+v, %d, %v", list, upTo, err)
		}
		if list, upTo, err := b.Records(t.Context(), third); err != nil || len(list) != 0 || upTo != third {
			t.Errorf("nothing new: %v, %d, %v", list, upTo, err)
		}
		now := look(t, b, "acme", "one")
		if string(now.State) != `{"n": 3}` || now.Bytes != 218 || now.Skills != 2 || now.Approved != "" {
			t.Errorf("a change begins with %+v", now)
		}
		if now := look(t, a, "other", "one"); now.State != nil || now.Bytes != 0 || now.Skills != 0 {
			t.Errorf("of another tenant: %+v", now)
		}
		change(t, a, "acme", "two", nil, func(catalogue.Now) (*catalogue.Next, error) { return &catalogue.Next{}, nil })
		if now := look(t, b, "acme", "two"); now.State != nil || now.Bytes != 200 || now.Skills != 1 {
			t.Errorf("after it was removed: %+v", now)
		}
	})

	t.Run("Approved", func(t *testing.T) {
		approve := func(catalogue.Now) (*catalogue.Next, error) {
			return &catalogue.Next{State: []byte("{}"), Live: true, Approved: true}, nil
		}
		change(t, a, "acme", "shared", nil, approve)
		if now := look(t, b, "other", "shared"); now.Approved != "acme" {
			t.Errorf("approved of %q", now.Approved)
		}
		if _, err := b.Change(t.Context(), "other", "shared", nil, approve); err == nil {
			t.Error("an id was approved of two tenants")
		}
	})

	t.Run("Archives", func(t *testing.T) {
		big := make([]byte, 3<<20+17)
		_, _ = rand.Read(big)
		files := &catalogue.Files{Digest: digest(10), From: bytes.NewReader(big)}
		_, _ = files.From.Seek(100, io.SeekStart) // it is read from its beginning all the same
		change(t, a, "acme", "blob", files, state("{}", catalogue.Stored{Version: "1.0.0", Digest: digest(10), Bytes: 1}))
		again := &catalogue.Files{Digest: digest(10), From: failing{}} // what is there is not read
		change(t, b, "other", "blob", again, state("{}", catalogue.Stored{Version: "1.0.0", Digest: digest(10), Bytes: 1}))
		var got bytes.Buffer
		if err := b.Archive(t.Context(), digest(10), &got); err != nil || !bytes.Equal(got.Bytes(), big) {
			t.Errorf("%d bytes came back of %d, %v", got.Len(), len(big), err)
		}
		if err := b.Archive(t.Context(), digest(11), io.Discard); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("one that is not there: %v", err)
		}

		// All or nothing.
		refused := errors.New("refused")
		_, err := a.Change(t.Context(), "acme", "half", &catalogue.Files{Digest: digest(12), From: bytes.NewReader(big)}, func(catalogue.Now) (*catalogue.Next, error) { return nil, refused })
		if !errors.Is(err, refused) {
			t.Errorf("refused: %v", err)
		}
		if _, err := a.Change(t.Context(), "acme", "half", &catalogue.Files{Digest: digest(12), From: failing{}}, state("{}")); err == nil {
			t.Error("files that cannot be read were written")
		}
		if err := b.Archive(t.Context(), digest(12), io.Discard); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("of a change that was not made: %v", err)
		}
		if now := look(t, b, "acme", "half"); now.State != nil {
			t.Errorf("of a change that was not made: %+v", now)
		}

		tidy := func() {
			t.Helper()
			if err := b.Tidy(t.Context(), time.Now().Add(time.Hour)); err != nil {
				t.Fatal(err)
			}
		}
		tidy()
		change(t, a, "acme", "blob", nil, func(catalogue.Now) (*catalogue.Next, error) { return &catalogue.Next{}, nil })
		tidy()
		if err := b.Archive(t.Context(), digest(10), io.Discard); err != nil {
			t.Errorf("one that a record names: %v", err)
		}
		change(t, a, "other", "blob", nil, state("{}"))
		if err := b.Tidy(t.Context(), time.Now().Add(-time.Hour)); err != nil {
			t.Fatal(err)
		}
		if err := b.Archive(t.Context(), digest(10), io.Discard); err != nil {
			t.Errorf("one that was written a moment ago: %v", err)
		}
		tidy()
		if err := b.Archive(t.Context(), digest(10), io.Discard); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("one that nobody names: %v", err)
		}
	})

	t.Run("ManyArchives", func(t *testing.T) {
		for n := range 25 { // more than go at once
			content := fmt.Appendf(nil, "files of %d", n)
			change(t, a, "acme", "many", &catalogue.Files{Digest: digest(200 + n), From: bytes.NewReader(content)}, state("{}", catalogue.Stored{Version: "1.0.0", Digest: digest(200 + n), Bytes: 1}))
		}
		if err := b.Tidy(t.Context(), time.Now().Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		for n := range 25 {
			if err := a.Archive(t.Context(), digest(200+n), io.Discard); (err == nil) != (n == 24) {
				t.Errorf("the %dth of 25, of which one is named: %v", n, err)
			}
		}
	})

	t.Run("AtOnce", func(t *testing.T) {
		// Many want to be the first with a version: each sees what the one before it did.
		won := errors.New("taken")
		var wait sync.WaitGroup
		var mu sync.Mutex
		winners := 0
		for i := range 12 {
			s := []catalogue.Shared{a, b}[i%2]
			wait.Go(func() {
				content := fmt.Appendf(nil, "files of %d", i%3) // some have the same files
				_, err := s.Change(context.Background(), "race", "up", &catalogue.Files{Digest: digest(100 + i%3), From: bytes.NewReader(content)}, func(now catalogue.Now) (*catalogue.Next, error) {
					if now.State != nil {
						return nil, won
					}
					return &catalogue.Next{State: content, Live: true, Versions: []catalogue.Stored{{Version: "1.0.0", Digest: digest(100 + i%3), Bytes: 1}}}, nil
				})
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil:
					winners++
				case !errors.Is(err, won):
					t.Error(err)
				}
			})
		}
		wait.Wait()
		if winners != 1 {
			t.Errorf("%d have won", winners)
		}
		kept := 0
		for i := range 3 {
			if a.Archive(t.Context(), digest(100+i), io.Discard) == nil {
				kept++
			}
		}
		if kept != 1 {
			t.Errorf("the files of %d are kept", kept)
		}
	})
}

// failing cannot be read.
type failing struct{}

func (failing) Read([]byte) (int, error)       { return 0, errors.New("it cannot be read") }
func (failing) Seek(int64, int) (int64, error) { return 0, nil }
