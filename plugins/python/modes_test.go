package python

import (
	"testing"

	"openskill/plugins/runnertest"
)

// TestPermissionBits: files have the bits that they would have on Linux, with a umask of
// 022, and archives and copies keep them. The values are those of CPython there.
func TestPermissionBits(t *testing.T) {
	oneGuest(t)
	const text = `
import glob, os, pathlib, shutil, stat, tarfile, tempfile, zipfile
def said(call):
    try: return call()
    except Exception as error: return type(error).__name__
def mode(path, **how): return oct(os.stat(path, **how).st_mode)
os.chdir(tempfile.mkdtemp())
open("a", "w").close(); os.makedirs("d/e")
print(mode("a"), mode("d/e"), stat.filemode(os.stat("a").st_mode), mode("/dev/null"), said(lambda: mode("none")))
os.chmod("a", 0o755); print(mode("a"), os.access("a", os.X_OK), os.access("d", 7), said(lambda: os.chmod("none", 0o644)))
shutil.copy("a", "b"); shutil.copyfile("a", "c"); shutil.copy2("a", "d/e/f"); shutil.copytree("d", "g")
print(mode("b"), mode("c"), [(p, mode(p)) for p in sorted(glob.glob("g/**", recursive=True))])
os.chmod("a", 0o444); print(mode("a"), [os.access("a", m) for m in (0, 1, 2, 4, 6)], os.access("none", 0))
os.rename("a", "z"); open("b", "a").close(); print(mode("z"), mode("b"))
pathlib.Path("z").chmod(0o700); print(oct(pathlib.Path("z").stat().st_mode))
print(oct(os.umask(0o77)), oct(os.umask(0o77))); open("u", "w").close(); os.mkdir("ud"); pathlib.Path("ut").touch()
print(mode("u"), mode("ud"), mode("ut"), oct(os.umask(0o22))); open("u2", "w").close(); open("u", "w").close(); print(mode("u2"), mode("u"))
fd, name = tempfile.mkstemp(); os.fchmod(fd, 0o640); print(oct(os.fstat(fd).st_mode)); os.close(fd); print(mode(tempfile.mkdtemp()))
fd = os.open("o", os.O_CREAT | os.O_WRONLY); print(oct(os.fstat(fd).st_mode)); os.close(fd)
os.symlink("z", "l"); print(oct(os.lstat("l").st_mode), mode("l"), mode("l", follow_symlinks=False))
print([(e.name, oct(e.stat().st_mode), e.is_file(), os.fspath(e), isinstance(e, os.DirEntry)) for e in sorted(os.scandir("."), key=lambda e: e.name)][:2])
with zipfile.ZipFile("r.zip", "w") as z: z.write("z"); z.write("d"); z.writestr("w", "")
with tarfile.open("r.tar", "w") as t: t.add("z"); t.add("d")
shutil.make_archive("whole", "zip", ".", "d")
print([(i.filename, oct(i.external_attr >> 16)) for n in ("r.zip", "whole.zip") for i in zipfile.ZipFile(n).infolist()])
print([(i.name, oct(i.mode)) for i in tarfile.open("r.tar")])
os.mkdir("x"); tarfile.open("r.tar").extractall("x", filter="data"); print(mode("x/z"), mode("x/d"))
print(mode(__file__), shutil.rmtree("d"), os.path.exists("d"))
`
	//nolint:dupword // values
	const want = `0o100644 0o40755 -rw-r--r-- 0o20666 FileNotFoundError
0o100755 True True FileNotFoundError
0o100755 0o100644 [('g/', '0o40755'), ('g/e', '0o40755'), ('g/e/f', '0o100755')]
0o100444 [True, False, False, True, False] False
0o100444 0o100755
0o100700
0o22 0o77
0o100600 0o40700 0o100600 0o77
0o100644 0o100600
0o100640
0o40700
0o100755
0o120777 0o100700 0o120777
[('b', '0o100755', True, './b', True), ('c', '0o100644', True, './c', True)]
[('z', '0o100700'), ('d/', '0o40755'), ('w', '0o600'), ('d/', '0o40755'), ('d/e/', '0o40755'), ('d/e/f', '0o100755')]
[('z', '0o700'), ('d', '0o755'), ('d/e', '0o755'), ('d/e/f', '0o755')]
0o100700 0o40755
0o100644 None False
`
	runners(t, []string{"slim", "python-3.12"}, func(t *testing.T, r *Runner) {
		for _, program := range []bool{true, false} {
			c := script(t, text)
			c.Script, c.Grants.Scratch = program, !program
			reply, err := runnertest.Do(t.Context(), r, c)
			if err != nil || string(reply.Stdout) != want {
				t.Errorf("%v\n%s\n%s", err, reply.Stdout, reply.Stderr)
			}
		}
		c := script(t, "import os; print(os.access('/skill', os.W_OK), os.access('/skill/main.py', os.R_OK), os.access('/work', os.W_OK))")
		c.Grants.Scratch = true
		if reply, err := runnertest.Do(t.Context(), r, c); err != nil || string(reply.Stdout) != "False True True\n" {
			t.Errorf("%v\n%s\n%s", err, reply.Stdout, reply.Stderr)
		}
	})
}
