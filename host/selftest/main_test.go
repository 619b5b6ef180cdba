package selftest_test

import (
	"flag"
	"os"
	"testing"
)

// TestMain has more tests at once than there are processors: these wait, and compute
// next to nothing.
func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", "32"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}
