package pyast_test

import (
	"os"
	"sync"
	"testing"

	"openskill/host/pyast"
	"openskill/plugins/python/pythontest"
)

var shared pythontest.Shared

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

// read is on one folder, so that it is started once.
var read = sync.OnceValue(func() *pyast.Analyzer {
	return pyast.New(pyast.Options{Runner: shared.Python(), Dir: shared.Dir()})
})

// analyzer reads programs by the real CPython; without one the test is skipped.
func analyzer(t testing.TB) *pyast.Analyzer {
	t.Helper()
	shared.Runner(t, "../..")
	return read()
}
