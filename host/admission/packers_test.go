package admission

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"openskill/host/admission/admissiontest"
	"openskill/internal/musttest"
)

// TestRealPackers: what people pack with is accepted, and gives one digest.
func TestRealPackers(t *testing.T) {
	t.Parallel()
	a := admission(t, options())
	work := t.TempDir()
	folder := filepath.Join(work, "up")
	for name, body := range map[string][]byte{
		"skill.yaml":             admissiontest.Manifest("up", "1.0.0"),
		"main.js":                []byte(admissiontest.Script),
		"data/Crème brûlée.csv":  bytes.Repeat([]byte("1;2;3\n"), 1000),
		"data/empty":             nil,
		"a/rather/deep/file.txt": []byte("x"),
	} {
		file := filepath.Join(folder, filepath.FromSlash(name))
		musttest.Do(t, os.MkdirAll(filepath.Dir(file), 0o700))
		musttest.Do(t, os.WriteFile(file, body, 0o700))
	}
	want := musttest.Get(admit(t, a, packed(t, folder)))(t)
	python := `import sys, shutil; shutil.make_archive(sys.argv[1], sys.argv[2], "up")`
	// With a file or a pipe, and with room for sizes of 64 bits or without.
	written := `import sys, os, zipfile
class Pipe:
    def __init__(self, f): self.f = f
    def write(self, b): return self.f.write(b)
    def flush(self): pass
to, pipe, large = sys.argv[1], "pipe" in sys.argv, "zip64" in sys.argv
with open(to, "wb") as f, zipfile.ZipFile(Pipe(f) if pipe else f, "w", zipfile.ZIP_DEFLATED) as z:
    for top, _, names in os.walk("up"):
        for n in names:
            name = os.path.join(top, n)
            with open(name, "rb") as body, z.open(name, "w", force_zip64=large) as out: out.write(body.read())`
	mac := `mkdir -p mac/__MACOSX && cp -r up mac/ && touch mac/.DS_Store mac/up/.DS_Store mac/up/._main.js mac/__MACOSX/._up && cd mac && zip -qr ../mac.zip .`
	git := `cd up && git init -q . && git add . && git -c user.name=a -c user.email=a@example.invalid -c commit.gpgsign=false commit -qm a &&
git archive -o ../git.tar.gz HEAD && git archive --prefix=up-1/ -o ../git.zip HEAD && rm -rf .git`
	for _, c := range []struct {
		makes   string
		command []string
	}{
		{"zip.zip", []string{"zip", "-qr", "zip.zip", "up"}},
		{"zip9.zip", []string{"sh", "-c", "cd up && zip -9qr ../zip9.zip ."}},
		{"pipe.zip", []string{"sh", "-c", "zip -qr - up | cat > pipe.zip"}},
		{"tar.tgz", []string{"tar", "czf", "tar.tgz", "up"}},
		{"dot.tgz", []string{"tar", "czf", "dot.tgz", "-C", "up", "."}},
		{"pax.tgz", []string{"tar", "--format=pax", "-czf", "pax.tgz", "up"}},
		{"v7.tgz", []string{"tar", "--format=ustar", "-czf", "v7.tgz", "up"}},
		{"sparse.tgz", []string{"tar", "-Sczf", "sparse.tgz", "up"}},
		{"py.zip", []string{"python3", "-c", python, "py", "zip"}},
		{"py.tar.gz", []string{"python3", "-c", python, "py", "gztar"}},
		{"streamed.zip", []string{"python3", "-c", written, "streamed.zip", "pipe"}},
		{"zip64.zip", []string{"python3", "-c", written, "zip64.zip", "zip64"}},
		{"streamed64.zip", []string{"python3", "-c", written, "streamed64.zip", "pipe", "zip64"}},
		{"mac.zip", []string{"sh", "-c", mac}},
		{"members.tgz", []string{"sh", "-c", "tar cf members.tar up && head -c 3000 members.tar | gzip > members.tgz && tail -c +3001 members.tar | gzip >> members.tgz"}},
		{"bsd.tgz", []string{"bsdtar", "-czf", "bsd.tgz", "up"}},
		{"bsd.zip", []string{"bsdtar", "-a", "-cf", "bsd.zip", "up"}},
		{"7z.zip", []string{"7z", "a", "-bd", "7z.zip", "up"}},
		{"git.tar.gz", []string{"sh", "-c", git}},
		{"git.zip", []string{"true"}}, // the one before made both
	} {
		t.Run(c.makes, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), c.command[0], c.command[1:]...)
			cmd.Dir = work
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Skipf("cannot be made here: %v %s", err, out)
			}
			b, err := os.ReadFile(filepath.Join(work, c.makes))
			if err != nil {
				t.Skip(err)
			}
			got := musttest.Get(admit(t, a, b))(t)
			if got.Digest != want.Digest {
				t.Errorf("digest %s of %v, want %s of %v", got.Digest, got.Report.Files, want.Digest, want.Report.Files)
			}
		})
	}
}

// TestPack: what cannot be uploaded is not packed.
func TestPack(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "link")); err != nil {
		t.Skip(err)
	}
	if err := Pack(&bytes.Buffer{}, dir); err == nil {
		t.Error("a symbolic link was packed")
	}
	many := t.TempDir()
	for i := range defaultFiles + 1 {
		musttest.Do(t, os.WriteFile(filepath.Join(many, string(rune('a'+i%26))+string(rune('a'+i/26%26))+string(rune('a'+i/676))), nil, 0o600))
	}
	if err := Pack(&bytes.Buffer{}, many); err == nil {
		t.Error("1,001 files were packed")
	}
	large := t.TempDir()
	f := musttest.Get(os.Create(filepath.Join(large, "large")))(t)
	defer f.Close()
	musttest.Do(t, f.Truncate(defaultUnpacked+1))
	if err := Pack(&bytes.Buffer{}, large); err == nil {
		t.Error("64 MiB and a byte were packed")
	}
}
