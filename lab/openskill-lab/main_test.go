package main

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"openskill/host/app"
	"openskill/host/app/hosttest"
)

// TestMain runs this test binary as openskill-lab where a test asks for that.
func TestMain(m *testing.M) {
	if code, is := app.Child(os.Args[1:]); is { // a worker has no environment
		os.Exit(code)
	}
	if os.Getenv("OPENSKILL_LAB_MAIN") != "" {
		main()
	}
	os.Exit(m.Run())
}

var repository = filepath.Join("..", "..")

// lab returns a command of this program, which finds openskill in PATH.
func lab(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), "OPENSKILL_LAB_MAIN=1",
		"PATH="+filepath.Dir(hosttest.Program(t, repository))+string(os.PathListSeparator)+os.Getenv("PATH"))
	return cmd
}

// needsEcho skips the test where the skill echo is not built.
func needsEcho(t *testing.T) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(repository, "skills", "echo", "echo.wasm")); err != nil {
		t.Skip("make skills did not build echo, for which it needs cargo")
	}
}

// serve starts a host with the skills in a folder and returns its URL.
func serve(t *testing.T, skills string) (url string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), hosttest.Program(t, repository), "serve", "--listen", "127.0.0.1:0", "--skills", skills, "--state", t.TempDir())
	cmd.Dir = t.TempDir()
	var log bytes.Buffer
	cmd.Stderr = &log
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	_, url, ok := strings.Cut(strings.TrimSpace(line), "listening on ")
	if err != nil || !ok {
		t.Fatalf("the host does not start: %q, %v\n%s", line, err, log.String())
	}
	return url
}
