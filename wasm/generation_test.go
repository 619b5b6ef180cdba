package wasm

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"openskill/internal/musttest"
	"openskill/wasm/passtest"
)

// TestGeneration fails where checking or metering makes something else of a module and the
// generation stayed the same: caches would go on with what the passes made before.
func TestGeneration(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("what the passes make for amd64 stands in testdata/generation.txt")
	}
	e := musttest.Get(Open(nil))(t)
	defer e.Close()
	h := sha256.New()
	for seed := range uint64(40) {
		data := passtest.Bytes(seed, 400)
		for _, module := range [][]byte{passtest.Program(data), passtest.Calls(data), passtest.Addresses(data)} {
			for _, trusted := range []bool{false, true} {
				p, err := e.prepare("", func() ([]byte, error) { return module, nil }, &CompileOptions{Trusted: trusted})
				if err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				fmt.Fprintf(h, "%d %d %x %s\n", len(p.metered), p.Content, p.content, p.Unfit)
				h.Write(p.metered)
			}
		}
	}
	made := fmt.Sprintf("%s %x\n", generation, h.Sum(nil))
	want := string(musttest.Get(os.ReadFile(filepath.Join("testdata", "generation.txt")))(t))
	switch was, _, _ := strings.Cut(want, " "); {
	case made == want:
	case was == generation:
		t.Error("the passes make something else of modules: raise generation in prepare.go, and run this test again")
	default:
		t.Errorf("write into testdata/generation.txt, for the new generation: %s", made)
	}
}
