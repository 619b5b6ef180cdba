package store_test

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"openskill/host/records"
	"openskill/host/store"
	"openskill/host/store/storetest"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

func TestFiles(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, fresh func(t *testing.T) func() *store.DB) {
		t.Run("kept", func(t *testing.T) { filesKept(t, fresh(t)()) })
		t.Run("two hosts", func(t *testing.T) { filesOfTwoHosts(t, fresh(t)) })
		t.Run("bounds", func(t *testing.T) { filesBounded(t, fresh(t)()) })
		t.Run("expiry", func(t *testing.T) { filesExpire(t, fresh(t)()) })
		t.Run("at once", func(t *testing.T) { filesAtOnce(t, fresh(t)()) })
	})
}

func filesOn(t *testing.T, db *store.DB, change func(*records.FilesOptions)) (*records.Files, string) {
	t.Helper()
	dir := t.TempDir()
	o := records.FilesOptions{DB: db, Dir: func(tenant string) string { return filepath.Join(dir, "t-"+tenant) }}
	if change != nil {
		change(&o)
	}
	return records.NewFiles(o), dir
}

var (
	ann = skill.Principal{ID: "ann", Tenant: "acme"}
	bob = skill.Principal{ID: "bob", Tenant: "acme"}
	eve = skill.Principal{ID: "eve", Tenant: "other"}
)

// filesKept: a file is found by its digest within its tenant only.
func filesKept(t *testing.T, db *store.DB) {
	t.Helper()
	f, dir := filesOn(t, db, nil)
	content := make([]byte, 300_000) // in three parts
	_, _ = rand.Read(content)
	sum := sha256.Sum256(content)
	id := hex.EncodeToString(sum[:])
	info := musttest.Get(f.Put(t.Context(), ann, "a b.csv", bytes.NewReader(content)))(t)
	if info.ID != id || info.Size != 300_000 || info.Name != "a b.csv" || !info.ExpiresAt.After(info.CreatedAt) {
		t.Errorf("%+v", info)
	}
	for range 2 {
		path, _, err := f.Path(t.Context(), bob, id)
		if b := musttest.Get(os.ReadFile(path))(t); err != nil || !bytes.Equal(b, content) {
			t.Fatalf("%v, %d bytes", err, len(b))
		}
		musttest.Do(t, os.RemoveAll(dir)) // the second time, it is fetched
	}
	for _, wrong := range []string{"", "x", "sha256:" + id, strings.ToUpper(id), "../" + id, strings.Repeat("0", 64)} {
		if _, err := f.Get(t.Context(), ann, wrong); skill.CodeOf(err) != skill.NotFound {
			t.Errorf("%q: %v", wrong, err)
		}
	}
	if _, _, err := f.Path(t.Context(), eve, id); skill.CodeOf(err) != skill.NotFound {
		t.Errorf("of another tenant: %v", err)
	}
	if err := f.Delete(t.Context(), eve, id); skill.CodeOf(err) != skill.NotFound {
		t.Errorf("of another tenant: %v", err)
	}
	for i := range 5 {
		musttest.Get(f.Put(t.Context(), ann, "", strings.NewReader(fmt.Sprint(i))))(t)
	}
	empty := musttest.Get(f.Put(t.Context(), bob, "", strings.NewReader("")))(t)
	if path, _, err := f.Path(t.Context(), bob, empty.ID); err != nil || empty.Size != 0 || len(musttest.Get(os.ReadFile(path))(t)) != 0 {
		t.Errorf("an empty file: %+v %v", empty, err)
	}
	seen, cursor := map[string]bool{}, ""
	var newest []string
	for range 4 { // of two each, and an empty page never
		page, next, err := f.List(t.Context(), ann, cursor, 2, false)
		musttest.Do(t, err)
		for _, i := range page {
			seen[i.ID] = true
			newest = append(newest, i.ID)
		}
		if cursor = next; next == "" {
			break
		}
	}
	var oldest []string
	for at := ""; len(oldest) < 6; {
		page, next, err := f.List(t.Context(), ann, at, 4, true)
		musttest.Do(t, err)
		for _, i := range page {
			oldest = append(oldest, i.ID)
		}
		if at = next; next == "" {
			break
		}
	}
	if slices.Reverse(oldest); !slices.Equal(oldest, newest) {
		t.Errorf("oldest first, in reverse: %v; newest first: %v", oldest, newest)
	}
	if len(seen) != 6 || cursor != "" {
		t.Errorf("%d of ann's are listed, next %q", len(seen), cursor)
	}
	if _, _, err := f.List(t.Context(), ann, "x", 2, false); skill.CodeOf(err) != skill.InvalidArgument {
		t.Errorf("a cursor of nobody: %v", err)
	}
	musttest.Do(t, f.Delete(t.Context(), ann, id))
	if _, err := f.Get(t.Context(), ann, id); skill.CodeOf(err) != skill.NotFound {
		t.Errorf("deleted: %v", err)
	}
	if n := count(t, db, "file_parts"); n != 5 {
		t.Errorf("%d parts are left, of five small files", n)
	}
}

func count(t *testing.T, db *store.DB, table string) (n int) {
	t.Helper()
	musttest.Do(t, db.Read.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM "+table).Scan(&n))
	return n
}

// filesOfTwoHosts: a host fetches files that another host stored and refuses content that does not match the digest.
func filesOfTwoHosts(t *testing.T, open func() *store.DB) {
	t.Helper()
	a, _ := filesOn(t, open(), nil)
	b, _ := filesOn(t, open(), nil)
	info := musttest.Get(a.Put(t.Context(), ann, "x", strings.NewReader("hay")))(t)
	path, _, err := b.Path(t.Context(), ann, info.ID)
	if err != nil || string(musttest.Get(os.ReadFile(path))(t)) != "hay" {
		t.Fatal(err)
	}
	db := open()
	if _, err := db.Exec(t.Context(), "UPDATE file_parts SET body = $1", []byte("hey")); err != nil {
		t.Fatal(err)
	}
	c, dir := filesOn(t, db, nil)
	if _, _, err := c.Path(t.Context(), ann, info.ID); skill.CodeOf(err) != skill.Internal {
		t.Errorf("other bytes: %v", err)
	}
	if left := musttest.Get(filepath.Glob(filepath.Join(dir, "*", "*")))(t); len(left) > 0 {
		t.Errorf("left: %s", left)
	}
}

// filesBounded: uploads beyond a limit and interrupted uploads are refused and leave nothing.
func filesBounded(t *testing.T, db *store.DB) {
	t.Helper()
	f, dir := filesOn(t, db, func(o *records.FilesOptions) { o.MostOfOne, o.MostOfAll = 100, records.Room{Bytes: 150, Items: 3} })
	put := func(p skill.Principal, from io.Reader) error {
		_, err := f.Put(t.Context(), p, "", from)
		return err
	}
	if err := put(ann, strings.NewReader(strings.Repeat("a", 101))); skill.CodeOf(err) != skill.PayloadTooLarge || !strings.Contains(err.Error(), "100 bytes") {
		t.Errorf("too large: %v", err)
	}
	cut := errors.New("cut off")
	if err := put(ann, io.MultiReader(strings.NewReader("half"), iotest.ErrReader(cut))); !errors.Is(err, cut) {
		t.Errorf("cut off: %v", err)
	}
	musttest.Do(t, put(ann, strings.NewReader(strings.Repeat("b", 100))))
	if err := put(bob, strings.NewReader(strings.Repeat("c", 51))); skill.CodeOf(err) != skill.PayloadTooLarge || !strings.Contains(err.Error(), "150 bytes") {
		t.Errorf("of the tenant: %v", err)
	}
	musttest.Do(t, put(eve, strings.NewReader(strings.Repeat("c", 51))))
	musttest.Do(t, put(ann, strings.NewReader(strings.Repeat("b", 100)))) // it is there
	musttest.Do(t, put(ann, strings.NewReader("1")))
	musttest.Do(t, put(ann, strings.NewReader("2")))
	if err := put(ann, strings.NewReader("3")); skill.CodeOf(err) != skill.PayloadTooLarge {
		t.Errorf("too many: %v", err)
	}
	if left := musttest.Get(filepath.Glob(filepath.Join(dir, "*", ".in-*")))(t); len(left) > 0 {
		t.Errorf("left: %s", left)
	}
}

// filesExpire: unused files expire with their parts and copies; orphaned parts are removed.
func filesExpire(t *testing.T, db *store.DB) {
	t.Helper()
	now := time.Now().UTC()
	f, dir := filesOn(t, db, func(o *records.FilesOptions) { o.Keep, o.Now = time.Hour, func() time.Time { return now } })
	used := musttest.Get(f.Put(t.Context(), ann, "", strings.NewReader("used")))(t)
	musttest.Get(f.Put(t.Context(), ann, "", strings.NewReader("idle")))(t)
	if _, err := db.Exec(t.Context(), "INSERT INTO file_parts (content, part, created_at, body) VALUES ('killed', 0, $1, $2)", now.UnixMicro(), []byte("x")); err != nil {
		t.Fatal(err)
	}
	now = now.Add(40 * time.Minute)
	if _, _, err := f.Path(t.Context(), ann, used.ID); err != nil {
		t.Fatal(err)
	}
	now = now.Add(30 * time.Minute)
	musttest.Do(t, f.Sweep(t.Context()))
	if _, err := f.Get(t.Context(), ann, used.ID); err != nil {
		t.Errorf("one that was used: %v", err)
	}
	if files, parts := count(t, db, "files"), count(t, db, "file_parts"); files != 1 || parts != 1 {
		t.Errorf("%d files, %d parts", files, parts)
	}
	now = now.Add(3 * time.Hour)
	if _, err := f.Get(t.Context(), ann, used.ID); skill.CodeOf(err) != skill.NotFound {
		t.Errorf("expired, and not swept: %v", err)
	}
	again := musttest.Get(f.Put(t.Context(), ann, "", strings.NewReader("used")))(t)
	if path, _, err := f.Path(t.Context(), ann, again.ID); err != nil || string(musttest.Get(os.ReadFile(path))(t)) != "used" {
		t.Errorf("uploaded again: %v", err)
	}
	now = now.Add(10 * time.Hour)
	musttest.Do(t, f.Sweep(t.Context()))
	musttest.Do(t, f.Sweep(t.Context()))
	copies := musttest.Get(filepath.Glob(filepath.Join(dir, "*", "*")))(t)
	if files, parts := count(t, db, "files"), count(t, db, "file_parts"); files != 0 || parts != 0 || len(copies) > 0 {
		t.Errorf("%d files, %d parts, copies %s", files, parts, copies)
	}
}

// filesAtOnce: concurrent uploads of the same content store it once.
func filesAtOnce(t *testing.T, db *store.DB) {
	t.Helper()
	f, _ := filesOn(t, db, nil)
	content := strings.Repeat("x", 200_000)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			info, err := f.Put(t.Context(), ann, fmt.Sprint(i), strings.NewReader(content))
			if err != nil {
				t.Error(err)
				return
			}
			if path, _, err := f.Path(t.Context(), bob, info.ID); err != nil || len(musttest.Get(os.ReadFile(path))(t)) != len(content) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := count(t, db, "files"); n != 1 {
		t.Errorf("%d files", n)
	}
}
