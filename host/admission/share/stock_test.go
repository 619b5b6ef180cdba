package share

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Signatures that minisign 0.11 itself made of the greeter's statement, hashed and in its
// older form.
func TestSignaturesOfStockMinisign(t *testing.T) {
	t.Parallel()
	read := func(name string) []byte {
		b, err := os.ReadFile(filepath.Join("testdata", "minisign-0.11", name))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	key, err := ParsePublic(string(read("key.pub")))
	if err != nil {
		t.Fatal(err)
	}
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
	signed, err := Sign(k, greeter)
	if err != nil {
		t.Fatal(err)
	}
	public, err := k.Public().File()
	if err != nil {
		t.Fatal(err)
	}
	private, err := k.File("")
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{"text": greeter.Text(), "ours.minisig": signed, "key.pub": public, "key": private} {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
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
	b, err := os.ReadFile(filepath.Join(dir, "theirs.minisig"))
	if err != nil {
		t.Fatal(err)
	}
	s, err := ParseSignature(b)
	if err == nil {
		err = s.Verify(k.Public(), greeter)
	}
	if err != nil {
		t.Errorf("what it signed is not verified here: %v", err)
	}
}
