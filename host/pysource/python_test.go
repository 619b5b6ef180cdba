package pysource_test

import (
	"os"
	"sync"
	"testing"

	"openskill/host/pysource"
	"openskill/plugins/python/pythontest"
)

var shared pythontest.Shared

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

// read is on one folder, so that it is started once.
var read = sync.OnceValue(func() *pysource.Analyzer {
	return pysource.New(pysource.Options{Runner: shared.Python(), Dir: shared.Dir()})
})

// analyzer reads programs by the real CPython; without one the test is skipped.
func analyzer(t testing.TB) *pysource.Analyzer {
	t.Helper()
	shared.Runner(t, "../..")
	return read()
}
