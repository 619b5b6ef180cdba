package approval_test

import (
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"openskill/host/approval"
	"openskill/sdk/skill"
)

// TestADiskThatIsFull: a change that does not fit is refused whole, and leaves nothing.
func TestADiskThatIsFull(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "approvals")
	o := approval.Options{Dir: dir, Policy: approval.PerVersion}
	s := open(t, o)
	id := asks(t, s, ask(), "pending").ID
	before, err := os.ReadFile(recordOf(dir))
	if err != nil {
		t.Fatal(err)
	}

	// The kernel lets a file grow to here, in the middle of the next line.
	signal.Ignore(syscall.SIGXFSZ)
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		t.Fatal(err)
	}
	small := limit
	small.Cur = uint64(len(before)) + 100
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &small); err != nil {
		t.Fatal(err)
	}
	other := ask()
	other.Skill = "another-one"
	checked := s.Check(t.Context(), other)
	_, decided := s.Decide(t.Context(), skill.Local(), id, true)
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		t.Fatal(err)
	}
	if skill.CodeOf(checked) != skill.AuditUnavailable || skill.CodeOf(decided) != skill.AuditUnavailable {
		t.Errorf("Check = %v, Decide = %v", checked, decided)
	}
	if after, err := os.ReadFile(recordOf(dir)); err != nil || string(after) != string(before) {
		t.Errorf("the record is now %q, %v", after, err)
	}
	asks(t, s, ask(), "pending")
	asks(t, s, other, "pending")
	decide(t, s, id, true)
	for _, s := range []*approval.Store{s, open(t, o)} {
		runs(t, s, ask())
	}

	// What was approved for a version goes on then; an approval of one call would have to be
	// used up, and is not.
	o = approval.Options{Dir: filepath.Join(t.TempDir(), "approvals"), Policy: approval.PerCall}
	call := open(t, o)
	id = asks(t, call, ask(), "pending").ID
	decide(t, call, id, true)
	small.Cur = 0
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &small); err != nil {
		t.Fatal(err)
	}
	version, once := s.Check(t.Context(), ask()), call.Check(t.Context(), ask())
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		t.Fatal(err)
	}
	if version != nil || skill.CodeOf(once) != skill.AuditUnavailable {
		t.Errorf("approved for its version: %v; for one call: %v", version, once)
	}
	runs(t, call, ask())
}
