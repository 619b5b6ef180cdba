package approval_test

import (
	"bytes"
	"log/slog"
	"os"
	"testing"

	"openskill/host/approval"
	"openskill/sdk/skill"
)

// FuzzRecord: whatever is in the file, it is read, nothing runs that no line of it
// approves, and what is decided afterwards holds.
func FuzzRecord(f *testing.F) {
	const line = `{"event":"asked","at":"2026-01-02T00:00:00Z","approval":{"id":"019aa5f0-2b1c-7d3e-9f41-5a6b7c8d9e02","state":"pending","policy":"version",` +
		`"skill":"unit-converter","script":"s","digest":"sha256:aaaa","trust":"trusted","arguments":[],"call_hash":"x","tenant":"acme","caller":"c","asked_at":"2026-01-02T00:00:00Z","expires_at":"2999-01-01T00:00:00Z"}}`
	f.Add([]byte(line + "\n" + line[:100]))
	f.Add([]byte(line))
	f.Add(bytes.ReplaceAll([]byte(line+"\n"), []byte("pending"), []byte("approved")))
	f.Add(bytes.ReplaceAll([]byte(line+"\n"), []byte("pending"), []byte("denied")))
	f.Add(bytes.ReplaceAll([]byte(line+"\n"), []byte("019aa5f0"), []byte("\x1b[31m\u202e")))
	f.Add([]byte(`{"event":"kept","approval":null}` + "\n\x00\n[]\n{}\n"))
	f.Add([]byte(`{"approval":{"id":"x","state":"approved","policy":"version","skill":"unit-converter","digest":"sha256:aaaa","call_hash":"x"}}` + "\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		dir := t.TempDir()
		if err := os.WriteFile(recordOf(dir), b, 0o600); err != nil {
			t.Fatal(err)
		}
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
		if _, _, err := s.List(skill.Local(), "", 100); err != nil {
			t.Fatal(err)
		}
	})
}
