package share

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"openskill/internal/musttest"
)

// Signatures that minisign 0.11 itself made of the greeter's statement, hashed and in its
// older form.
func TestSignaturesOfStockMinisign(t *testing.T) {
	t.Parallel()
	read := func(name string) []byte {
		return musttest.Get(os.ReadFile(filepath.Join("testdata", "minisign-0.11", name)))(t)
	}
	key := musttest.Get(ParsePublic(string(read("key.pub"))))(t)
	other := greeter
	other.Version = "0.2.0"
	for _, name := range []string{"hashed.minisig", "legacy.minisig"} {
		s, err := ParseSignature(read(name))
		if err == nil {
			err = s.Verify(key, greeter)
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if s.Verify(key, other) == nil {
			t.Errorf("%s is good for another version", name)
		}
	}
}

// The program, where it is installed: it verifies what is signed here, and signs with a
// key that was made here what is verified here.
func TestStockMinisign(t *testing.T) {
	t.Parallel()
	program, err := exec.LookPath("minisign")
	if err != nil {
		t.Skip("minisign is not here; testdata has what it made")
	}
	dir := t.TempDir()
	k := generate(t)
	signed := musttest.Get(Sign(k, greeter))(t)
	public := musttest.Get(k.Public().File())(t)
	private := musttest.Get(k.File(""))(t)
	for name, b := range map[string][]byte{"text": greeter.Text(), "ours.minisig": signed, "key.pub": public, "key": private} {
		musttest.Do(t, os.WriteFile(filepath.Join(dir, name), b, 0o600))
	}
	run := func(args ...string) error {
		cmd := exec.CommandContext(t.Context(), program, args...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		t.Logf("minisign %q: %s", args, out)
		return err
	}
	if err := run("-V", "-p", "key.pub", "-m", "text", "-x", "ours.minisig"); err != nil {
		t.Errorf("it does not verify what was signed here: %v", err)
	}
	if err := run("-S", "-s", "key", "-m", "text", "-x", "theirs.minisig"); err != nil {
		t.Fatalf("it does not sign with a key that was made here: %v", err)
	}
	b := musttest.Get(os.ReadFile(filepath.Join(dir, "theirs.minisig")))(t)
	s, err := ParseSignature(b)
	if err == nil {
		err = s.Verify(k.Public(), greeter)
	}
	if err != nil {
		t.Errorf("what it signed is not verified here: %v", err)
	}
}
