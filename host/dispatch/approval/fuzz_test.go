package approval_test

import (
	"bytes"
	"log/slog"
	"testing"

	"openskill/host/dispatch/approval"
	"openskill/sdk/skill"
)

// FuzzImport: whatever is in the file of an older release, it is read, nothing runs that no line of it
// approves, and what is decided afterwards holds.
func FuzzImport(f *testing.F) {
	f.Add([]byte(oldLine + "\n" + oldLine[:100]))
	f.Add([]byte(oldLine))
	f.Add(bytes.ReplaceAll([]byte(oldLine+"\n"), []byte("pending"), []byte("approved")))
	f.Add(bytes.ReplaceAll([]byte(oldLine+"\n"), []byte("pending"), []byte("denied")))
	f.Add(bytes.ReplaceAll([]byte(oldLine+"\n"), []byte("019aa5f0"), []byte("\x1b[31m\u202e")))
	f.Add([]byte(`{"event":"kept","approval":null}` + "\n\x00\n[]\n{}\n"))
	f.Add([]byte(`{"approval":{"id":"x","state":"approved","policy":"version","skill":"unit-converter","digest":"sha256:aaaa","call_hash":"x"}}` + "\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		dir := oldRecord(t, string(b))
		o := approval.Options{Dir: dir, Policy: approval.PerVersion, Log: slog.New(slog.DiscardHandler)}
		s := open(t, o)
		if _, refused := check(t, s, ask()); !refused && !bytes.Contains(b, []byte("pproved")) {
			t.Fatalf("it runs, by %q", b)
		}
		other := ask()
		other.Skill = "another-one"
		r, refused := check(t, s, other)
		if !refused {
			return // by a line of the fuzzer's own
		}
		if r.State == "pending" {
			if a, err := s.Decide(t.Context(), skill.Local(), r.ID, true); err != nil || a.State != approval.Approved {
				t.Fatalf("Decide = %v, %v", a, err)
			}
			runs(t, s, other)
			runs(t, open(t, o), other)
		}
		if _, _, err := s.List(t.Context(), skill.Local(), "", 100); err != nil {
			t.Fatal(err)
		}
	})
}
