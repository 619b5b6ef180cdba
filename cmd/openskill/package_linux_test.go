package main

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"openskill/internal/musttest"
)

// TestPackages makes what people install, unpacks the package for Debian into an empty
// root and starts the host as its unit does, with what the unit takes away as far as that
// goes without systemd: no capabilities, no new privileges, a user of its own where this
// one is root. That two folders give the same bytes is held by make dist-check, which CI runs.
func TestPackages(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the binary")
	}
	t.Parallel()
	repo := musttest.Get(filepath.Abs("../.."))(t)
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not here, which lists the files")
	}
	listed, err := exec.Command("git", "-C", repo, "ls-files", "-z", "--cached", "--others", "--exclude-standard").Output()
	if err != nil {
		t.Skip("this is no clone: git does not know the files")
	}
	dir := filepath.Join(t.TempDir(), "a")
	distribute(t, repo, dir, strings.Split(strings.TrimSuffix(string(listed), "\x00"), "\x00"))
	names, err := filepath.Glob(filepath.Join(dir, "dist", "*"))
	if err != nil || len(names) != 4 {
		t.Fatalf("dist has %v, %v", names, err)
	}
	debs, err := filepath.Glob(filepath.Join(dir, "dist", "*.deb"))
	if err != nil || len(debs) != 1 {
		t.Fatalf("dist has %v, %v", names, err)
	}
	deb := debs[0]
	if _, err := exec.LookPath("dpkg-deb"); err != nil {
		t.Skip("dpkg-deb is not here: the package is not unpacked")
	}
	root := filepath.Join(t.TempDir(), "root")
	if out, err := exec.Command("dpkg-deb", "-x", deb, root).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	fields, err := exec.Command("dpkg-deb", "-I", deb).CombinedOutput()
	if err != nil || !strings.Contains(string(fields), "conffiles") || !strings.Contains(string(fields), "Architecture: "+runtime.GOARCH) {
		t.Errorf("%v: %s", err, fields)
	}
	if sample, err := os.ReadFile(filepath.Join(root, "etc/openskill/openskill.yaml")); err != nil || !bytes.Contains(sample, []byte("#listen:")) {
		t.Errorf("no settings: %v", err)
	}
	startAsUnit(t, repo, root)
}

// distribute copies files and makes dist of them.
func distribute(t *testing.T, repo, dir string, files []string) {
	t.Helper()
	for _, name := range files {
		from, to := filepath.Join(repo, name), filepath.Join(dir, name)
		info, err := os.Lstat(from)
		if err != nil || !info.Mode().IsRegular() {
			continue // taken away since, or a link, which the build does not need
		}
		b := musttest.Get(os.ReadFile(from))(t)
		musttest.Do(t, os.MkdirAll(filepath.Dir(to), 0o755))
		musttest.Do(t, os.WriteFile(to, b, info.Mode().Perm()))
	}
	cmd := exec.Command("sh", "scripts/dist.sh")
	cmd.Dir = dir
	// The copy has no history: neither has the binary.
	cmd.Env = append(os.Environ(), "ARCH="+runtime.GOARCH, "SOURCE_DATE_EPOCH=1700000000", "VCS=false", "GOCACHE="+goCache())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("make dist: %v\n%s", err, out)
	}
}

// startAsUnit runs what the unit's ExecStart says, with its paths below root.
func startAsUnit(t *testing.T, repo, root string) {
	t.Helper()
	unit := musttest.Get(os.ReadFile(filepath.Join(root, "lib/systemd/system/openskill.service")))(t)
	below := func(text string) string {
		for _, dir := range []string{"/usr/bin/", "/etc/openskill", "/var/lib/openskill"} {
			text = strings.ReplaceAll(text, dir, root+dir)
		}
		return text
	}
	var start, env []string
	for line := range strings.Lines(string(unit)) {
		if text, ok := strings.CutPrefix(strings.TrimSpace(line), "ExecStart="); ok {
			start = strings.Fields(below(text))
		}
		if text, ok := strings.CutPrefix(strings.TrimSpace(line), "Environment="); ok {
			env = append(env, strings.Fields(below(text))...)
		}
	}
	wasm, err := os.ReadFile(filepath.Join(repo, "skills/echo/echo.wasm"))
	if err != nil {
		t.Skip("make skills was not run: there is no skill to call")
	}
	manifest := musttest.Get(os.ReadFile(filepath.Join(repo, "skills/echo/skill.yaml")))(t)
	folder := filepath.Join(root, "etc/openskill/skills/echo")
	for name, b := range map[string][]byte{"skill.yaml": manifest, "echo.wasm": wasm} {
		musttest.Do(t, os.MkdirAll(folder, 0o755))
		musttest.Do(t, os.WriteFile(filepath.Join(folder, name), b, 0o644))
	}
	start = append(start, "--listen", "127.0.0.1:0")
	state := filepath.Join(root, "var/lib/openskill")
	if setpriv, err := exec.LookPath("setpriv"); err == nil && os.Getuid() == 0 {
		const nobody = 65534
		musttest.Do(t, os.Chown(state, nobody, nobody))
		musttest.Do(t, os.Chown(filepath.Join(root, "etc/openskill/openskill.yaml"), 0, nobody))
		for dir := root; dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) { // the test's own folders are closed to others
			musttest.Do(t, os.Chmod(dir, 0o755))
		}
		start = append([]string{
			setpriv, "--reuid=65534", "--regid=65534", "--clear-groups", "--no-new-privs", "--bounding-set=-all", "--inh-caps=-all",
		}, start...)
	}
	cmd := exec.Command(start[0], start[1:]...)
	cmd.Dir, cmd.Env = state, append(env, "PATH=/usr/bin:/bin")
	log := newWatched()
	cmd.Stderr = log
	stdout := musttest.Get(cmd.StdoutPipe())(t)
	musttest.Do(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		watchdog := time.AfterFunc(30*time.Second, func() { _ = cmd.Process.Kill() })
		defer watchdog.Stop()
		if err := cmd.Wait(); err != nil {
			t.Errorf("it did not end well: %v", err)
		}
		if t.Failed() {
			t.Logf("its log:\n%s", log)
		}
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	_, url, ok := strings.Cut(strings.TrimSpace(line), "listening on ")
	if err != nil || !ok {
		t.Fatalf("it said %q, %v\n%s", line, err, log)
	}
	res, err := http.Post(url+"/skills/echo:invoke", "application/json", strings.NewReader(`{"input": {"text": "packed"}}`))
	musttest.Do(t, err)
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil || !bytes.Contains(body, []byte(`"success":true`)) || !bytes.Contains(body, []byte(`"runner":"wasm:wasi"`)) {
		t.Errorf("%v: %s", err, body)
	}
}
