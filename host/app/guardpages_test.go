package app

import (
	"runtime"
	"testing"

	"openskill/host/app/hosttest"
	"openskill/wasm"
)

// TestGuardPages holds that worker processes of a program that make built have guard pages, also
// where the program is a test's.
func TestGuardPages(t *testing.T) {
	if hosttest.UnderRace {
		t.Skip("with C's threads the signal handler is not that of Go's runtime, and guests are compiled with checks")
	}
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" || len(wasm.CompilerEdits()) == 0 {
		t.Skip("they are for programs that make built for linux/amd64")
	}
	if err := guardPages(); err != nil {
		t.Error(err)
	}
}
