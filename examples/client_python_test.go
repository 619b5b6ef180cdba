package examples_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestPythonClient holds the client in Python to a server that breaks where a test wants,
// and every method of it to what a host answers.
func TestPythonClient(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not here")
	}
	if err := exec.Command(python, "-c", "import sys; sys.exit(sys.version_info < (3, 9))").Run(); err != nil {
		t.Skip("python3 is older than 3.9")
	}
	url := serve(t, forClients())
	ctx, stop := context.WithTimeout(t.Context(), 3*time.Minute)
	defer stop()
	run := exec.CommandContext(ctx, python, "-B", "-W", "error::ResourceWarning", "-m", "unittest", "discover", "-v", "-s", "tests", "-t", ".")
	run.Dir = filepath.Join("..", "sdk", "client-python")
	run.Env = append(os.Environ(), "OPENSKILL_TEST_HOST="+url, "OPENSKILL_API_KEY=")
	run.WaitDelay = 5 * time.Second
	out, err := run.CombinedOutput()
	if said := string(out); err != nil || strings.Contains(said, "skipped") || !strings.Contains(said, "test_the_agent") || !strings.Contains(said, "\nOK\n") {
		t.Errorf("%v\n%s", err, out)
	}
}
