package share

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"aead.dev/minisign"

	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

var greeter = Statement{ID: "greeter", Version: "0.1.0", Digest: "sha256:" + strings.Repeat("0f", 32)}

// The signed text is a contract: a byte more and no signature is worth anything.
func TestStatement(t *testing.T) {
	t.Parallel()
	want := "openskill skill 1\nid: greeter\nversion: 0.1.0\ndigest: sha256:" + strings.Repeat("0f", 32) + "\n"
	if got := string(greeter.Text()); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func generate(t *testing.T) PrivateKey {
	t.Helper()
	return musttest.Get(GenerateKey())(t)
}

func mustSign(t *testing.T, k PrivateKey, s Statement) *Signature {
	t.Helper()
	text := musttest.Get(Sign(k, s))(t)
	return musttest.Get(ParseSignature(text))(t)
}

// A signature is good for its statement and its key, and for nothing else.
func TestSignAndVerify(t *testing.T) {
	t.Parallel()
	k := generate(t)
	s := mustSign(t, k, greeter)
	if err := errors.Join(s.Verify(k.Public(), greeter), s.Fits(greeter)); err != nil {
		t.Error(err)
	}
	if !s.By(k.Public()) || s.KeyID() != k.Public().ID() || s.By(generate(t).Public()) {
		t.Error("it is of another key")
	}
	for what, other := range map[string]Statement{
		"id":      {"greeter2", greeter.Version, greeter.Digest},
		"version": {greeter.ID, "0.1.1", greeter.Digest},
		"digest":  {greeter.ID, greeter.Version, "sha256:" + strings.Repeat("0e", 32)},
		"nothing": {},
	} {
		if code := skill.CodeOf(s.Verify(k.Public(), other)); code != skill.SignatureInvalid {
			t.Errorf("another %s: %q", what, code)
		}
		if code := skill.CodeOf(s.Fits(other)); code != skill.SignatureInvalid {
			t.Errorf("fits another %s: %q", what, code)
		}
	}
	if code := skill.CodeOf(s.Verify(generate(t).Public(), greeter)); code != skill.SignatureInvalid {
		t.Errorf("another key: %q", code)
	}
	// Each byte of the file that means something, changed.
	text := s.Text()
	for i := strings.IndexByte(string(text), '\n') + 1; i < len(text)-1; i++ {
		changed := append([]byte(nil), text...)
		changed[i] ^= 1
		read, err := ParseSignature(changed)
		if err == nil {
			err = read.Verify(k.Public(), greeter)
		}
		if code := skill.CodeOf(err); code != skill.SignatureInvalid {
			t.Fatalf("byte %d, %q, changed: %q", i, text[i], code)
		}
	}
}

// The formats are those of minisign: what one of its tools writes is read here, what is
// written here it reads and verifies, from the files alone.
func TestFormatsOfMinisign(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	k := generate(t)
	write := func(name string, b []byte, err error) string {
		path := filepath.Join(dir, name)
		if err == nil {
			err = os.WriteFile(path, b, 0o600)
		}
		musttest.Do(t, err)
		return path
	}
	text, err := k.Public().File()
	pub := write("a.pub", text, err)
	text, err = Sign(k, greeter)
	sig := write("a.minisig", text, err)
	text, err = k.File("")
	private := write("a.key", text, err)

	theirs := musttest.Get(minisign.PublicKeyFromFile(pub))(t)
	b, err := os.ReadFile(sig)
	if err != nil || !minisign.Verify(theirs, greeter.Text(), b) {
		t.Errorf("minisign does not verify the file: %v", err)
	}
	read, err := minisign.SignatureFromFile(sig)
	if err != nil || read.Algorithm != minisign.HashEdDSA || read.TrustedComment != "openskill skill greeter 0.1.0 "+greeter.Digest {
		t.Errorf("%+v, %v", read, err)
	}
	for _, line := range strings.Split(strings.TrimSuffix(string(b), "\n"), "\n") {
		if strings.TrimSpace(line) != line || line == "" {
			t.Errorf("a line that no tool of minisign writes: %q", line)
		}
	}
	var same minisign.PrivateKey
	if b, err = os.ReadFile(private); err == nil {
		err = same.UnmarshalText(b[:len(b)-1]) // it takes none with a line end, and stock tools write one
	}
	if err != nil || same.ID() != theirs.ID() {
		t.Errorf("%v", err)
	}

	// The other way: a signature with the comment that stock tools write, hashed and not.
	hashed := minisign.NewReader(strings.NewReader(string(greeter.Text())))
	musttest.Get(hashed.Read(make([]byte, 500)))(t)
	for _, text := range [][]byte{
		minisign.Sign(same, greeter.Text()),
		hashed.SignWithComments(same, "timestamp:1700000000\tfile:statement.txt\thashed", "signature from minisign secret key"),
		[]byte(strings.ReplaceAll(string(minisign.Sign(same, greeter.Text())), "\n", "\r\n")),
	} {
		s, err := ParseSignature(text)
		if err == nil {
			err = s.Verify(k.Public(), greeter)
		}
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if code := skill.CodeOf(s.Fits(greeter)); code != skill.SignatureInvalid {
			t.Errorf("nobody can see what it is of: %q", code)
		}
	}
	// A comment of ours that says something else is no mistake.
	lying := minisign.SignWithComments(same, greeter.Text(), "openskill skill other 0.1.0 "+greeter.Digest, "x")
	s, err := ParseSignature(lying)
	if err != nil || skill.CodeOf(s.Verify(k.Public(), greeter)) != skill.SignatureInvalid {
		t.Errorf("a lying comment: %v", err)
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	good := string(mustSign(t, generate(t), greeter).Text())
	// The last letter of base64 has bits that mean nothing.
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	line, _, _ := strings.Cut(strings.Split(good, "\n")[1], "=")
	end := len(line) - 1
	spelt := line[:end] + letters[strings.IndexByte(letters, line[end])+1:][:1]
	for name, text := range map[string]string{
		"another spelling": strings.Replace(good, line, spelt, 1),
		"nothing":          "", "text": "hello", "one line": strings.ReplaceAll(good, "\n", " "), "too long": good + strings.Repeat("\n", MaxSignature),
		"cut off": good[:len(good)/2], "zeros": strings.Repeat("\x00", 300), "five lines": good + "more\n",
	} {
		if _, err := ParseSignature([]byte(text)); skill.CodeOf(err) != skill.SignatureInvalid {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestKeys(t *testing.T) {
	t.Parallel()
	k := generate(t)
	file := musttest.Get(k.Public().File())(t)
	for _, text := range []string{k.Public().String(), string(file), strings.ReplaceAll(string(file), "\n", "\r\n"), " " + k.Public().String() + "\n"} {
		if got, err := ParsePublic(text); err != nil || got.String() != k.Public().String() {
			t.Errorf("%q: %v", text, err)
		}
	}
	private := musttest.Get(k.File(""))(t)
	never := func() (string, error) { t.Error("a password is asked for"); return "", nil }
	if got, err := ReadPrivate(private, never); err != nil || got.Public().String() != k.Public().String() {
		t.Errorf("%v", err)
	}
	for _, text := range []string{"", "RW", "hello", string(private), k.Public().String()[1:], strings.Repeat("A", MaxSignature+1)} {
		if _, err := ParsePublic(text); err == nil {
			t.Errorf("%.40q is a public key", text)
		}
	}
	for _, text := range []string{"", "hello", string(file), string(private[:80]), strings.Repeat("A", MaxSignature+1)} {
		if _, err := ReadPrivate([]byte(text), never); err == nil {
			t.Errorf("%.40q is a private key", text)
		}
	}
}

// An encrypted key opens by its password alone. Each time takes 1 GiB of memory.
func TestEncryptedKey(t *testing.T) {
	if testing.Short() {
		t.Skip("three times 1 GiB of memory")
	}
	k := generate(t)
	file := musttest.Get(k.File("open sesame"))(t)
	for word, opens := range map[string]bool{"open sesame": true, "open sesam": false} {
		got, err := ReadPrivate(file, func() (string, error) { return word, nil })
		if opens != (err == nil) || opens && got.Public().String() != k.Public().String() || !opens && !errors.Is(err, ErrPassword) {
			t.Errorf("%q: %v", word, err)
		}
	}
	asked := errors.New("nobody is there")
	if _, err := ReadPrivate(file, func() (string, error) { return "", asked }); !errors.Is(err, asked) {
		t.Errorf("%v", err)
	}
}
