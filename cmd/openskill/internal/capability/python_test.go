package capability_test

import (
	"os"
	"sync"
	"testing"

	"openskill/cmd/openskill/internal/capability"
	"openskill/host/pysource"
	"openskill/plugins/python"
	"openskill/plugins/python/pythontest"
)

var shared pythontest.Shared

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

// cpython runs the real CPython; without one the test is skipped.
func cpython(t testing.TB) *python.Runner {
	t.Helper()
	return shared.Runner(t, "../../../..")
}

// read is on one folder, so that it is started once.
var read = sync.OnceValue(func() *pysource.Analyzer {
	return pysource.New(pysource.Options{Runner: shared.Python(), Dir: shared.Dir()})
})

func analyzer(t testing.TB) *pysource.Analyzer {
	t.Helper()
	cpython(t)
	return read()
}

func maker(t testing.TB) *capability.Maker {
	t.Helper()
	return capability.New(capability.Options{Analyzer: analyzer(t), Tenant: "test"})
}
