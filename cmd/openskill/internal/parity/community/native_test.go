package community

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"openskill/internal/musttest"
)

// programs are the commands that native runs find: those that the sandbox has too. git and
// the like are on neither side.
const programs = `[ awk base64 basename bash bc bzip2 cat chmod cksum cmp column comm cp curl cut date dd df diff dirname du echo egrep env
expand expr false fgrep find fmt fold gawk getopt grep gunzip gzip head hostname iconv id install jq join ln ls md5sum mkdir mkfifo mktemp mv
nl node nohup nproc numfmt od paste patch pathchk pr printenv printf pwd python3 python readlink realpath rev rm rmdir sed seq sh sha1sum
sha256sum sha512sum shuf sleep sort split sqlite3 stat stty sum sync tac tail tar tee test timeout touch tr true truncate tsort tty uname
unexpand uniq unzip uptime wc wget which whoami xargs xxd yes zcat zip`

// native runs a case on this machine in bubblewrap: without a network but its own loopback,
// with an empty home and the folder at the path that the sandbox has it at.
func (s *sandbox) natively(t *testing.T, k *kase, folder string) *outcome {
	t.Helper()
	dir := t.TempDir()
	name := filepath.Base(folder)
	own := filepath.Join(dir, name)
	musttest.Do(t, os.CopyFS(own, os.DirFS(folder)))
	k.put(t, own)
	before := k.read(t, own)
	bin := filepath.Join(dir, "bin")
	musttest.Do(t, os.Mkdir(bin, 0o700))
	for _, program := range strings.Fields(programs) {
		target := "/usr/bin/" + program
		if program == "python" {
			target = "/usr/bin/python3"
		}
		if _, err := os.Stat(target); err == nil {
			musttest.Do(t, os.Symlink(target, filepath.Join(bin, program)))
		}
	}
	self, err := os.Executable()
	musttest.Do(t, err)
	answers := filepath.Join(dir, "answers")
	k.writeAnswers(t, answers)
	args := []string{
		"--unshare-all", "--die-with-parent", "--new-session", "--clearenv",
		"--setenv", "PATH", "/opt/bin", "--setenv", "HOME", "/tmp", "--setenv", "TMPDIR", "/tmp", "--setenv", "LANG", "C.UTF-8", "--setenv", "PYTHONDONTWRITEBYTECODE", "1",
		"--ro-bind", "/usr", "/usr", "--symlink", "usr/bin", "/bin", "--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64",
		"--ro-bind", "/etc/alternatives", "/etc/alternatives", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp",
		"--ro-bind", bin, "/opt/bin", "--ro-bind", self, "/opt/serve", "--ro-bind", answers, "/opt/answers", "--bind", own, "/skills/" + name, "--chdir", "/skills/" + name,
	}
	var path []string                                           // of Python
	if own := os.Getenv("OPENSKILL_TEST_PACKAGES"); own != "" { // in the versions of the runtime
		args, path = append(args, "--ro-bind", own, "/opt/packages"), []string{"/opt/packages"}
	}
	if len(k.Packages) > 0 {
		in := s.packagesOf(t, k)
		in.unpacking.Do(func() { in.unpack(t, s.dir) })
		args = append(args, "--ro-bind-try", in.python, "/openskill/packages", "--ro-bind-try", in.node, "/node_modules")
		path = append([]string{"/openskill/packages"}, path...)
	}
	if len(path) > 0 {
		args = append(args, "--setenv", "PYTHONPATH", strings.Join(path, ":"))
	}
	for _, name := range slices.Sorted(maps.Keys(k.Env)) {
		args = append(args, "--setenv", name, k.Env[name])
	}
	command := append(k.interpreter(), "/skills/"+name+"/"+k.Script)
	if len(k.HTTP) > 0 {
		args = append(args, "--ro-bind", filepath.Join(answers, "hosts"), "/etc/hosts")
		for _, name := range []string{"SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE"} {
			args = append(args, "--setenv", name, "/opt/answers/ca.pem")
		}
		command = append([]string{"/opt/serve", servingArg}, command...)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bwrap", append(append(args, command...), k.Args...)...)
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(k.Stdin), &stdout, &stderr
	cmd.WaitDelay = time.Second
	err = cmd.Run()
	if _, ok := errors.AsType[*exec.ExitError](err); ctx.Err() != nil || err != nil && !ok && !errors.Is(err, exec.ErrWaitDelay) {
		t.Fatalf("natively: %v\n%s%s", err, stdout.Bytes(), stderr.Bytes())
	}
	o := &outcome{exit: cmd.ProcessState.ExitCode(), stdout: stdout.Bytes(), stderr: stderr.Bytes(), files: map[string][]byte{}}
	for name, data := range k.read(t, own) {
		if was, ok := before[name]; !ok || !bytes.Equal(was, data) {
			o.files[name] = data
		}
	}
	return o
}

func (k *kase) interpreter() []string {
	switch filepath.Ext(k.Script) {
	case ".py":
		return []string{"python3"}
	case ".sh", ".bash":
		return []string{"bash"}
	}
	return []string{"node"}
}

// put writes the files of the case into its folder.
func (k *kase) put(t *testing.T, folder string) {
	t.Helper()
	for name, text := range k.Files {
		musttest.Write(t, filepath.Join(folder, filepath.FromSlash(name)), text)
	}
}

func (k *kase) read(t *testing.T, folder string) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	err := fs.WalkDir(os.DirFS(folder), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(filepath.Join(folder, name))
		all[name] = data
		return err
	})
	musttest.Do(t, err)
	return all
}
