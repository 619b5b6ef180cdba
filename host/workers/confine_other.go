//go:build !linux || !(amd64 || arm64)

package workers

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"time"
)

// Confine holds this process where the platform can.
func Confine(*Confinement) ([]Protection, error) {
	const why = "not available on this platform"
	return []Protection{{Name: "capabilities", Detail: why}, {Name: "names", Detail: why}, {Name: "landlock", Detail: why}, {Name: "seccomp", Detail: why}}, nil
}

// Narrow does nothing here.
func Narrow([]string) error { return nil }

func resident(int) uint64 { return 0 }

// machine cannot be told here.
func machine() (memory, threads uint64) { return 0, math.MaxUint64 }

func memoryShort() bool { return false }

// nameless makes a file that is gone when it is closed.
func nameless() (*os.File, error) {
	f, err := os.CreateTemp("", "openskill-module-")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil { // some systems keep open files
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func allocated(info fs.FileInfo) uint64 { return uint64(info.Size()) } // not negative

// processorTime cannot be told here.
func processorTime(int) time.Duration { return 0 }
