package wasm_test

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// roleEnv names what a child process of the test binary does instead of tests.
const roleEnv = "WASM_TEST_ROLE"

// oneGoroutine skips a test that the race detector makes slow and learns nothing from:
// it compiles much, and then runs one guest at a time.
func oneGoroutine(t *testing.T) {
	t.Helper()
	if raceDetector {
		t.Skip("one guest at a time, and minutes of compiling under the race detector")
	}
}

func TestMain(m *testing.M) {
	role := os.Getenv(roleEnv)
	if role == "" {
		goleak.VerifyTestMain(m)
		return
	}
	dir := os.Getenv("WASM_TEST_DIR")
	var err error
	switch role {
	case "fill":
		err = fillForever(dir)
	case "read":
		err = readCache(dir)
	case "shape", "compile":
		err = compileShape(dir, role == "compile")
	case "check":
		err = checkFile(dir)
	default:
		err = fmt.Errorf("no role %q", role)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
