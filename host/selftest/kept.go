package selftest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// Kept is the report of the last whole self-test, as it stays in the state folder for those
// who look at the host.
type Kept struct {
	At      time.Time `json:"at"`
	Version string    `json:"version"` // of the program that ran it
	Report
}

const (
	keptFile = "selftest.json"
	maxKept  = 4 << 20 // bytes; one has some 200 KB
)

// Keep makes k the last report in a state folder, whole or not at all.
func Keep(stateDir string, k *Kept) error {
	b, err := json.Marshal(k)
	if err != nil {
		return err
	}
	if len(b) > maxKept {
		return fmt.Errorf("the report has %d bytes, and at most %d are kept", len(b), maxKept)
	}
	if err := os.MkdirAll(stateDir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(stateDir, ".selftest-*") // of mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), filepath.Join(stateDir, keptFile))
	}
	if err != nil {
		_ = os.Remove(f.Name()) // it is of no use
	}
	return err
}

// Last gives the last report of a state folder; nil: there is none.
func Last(stateDir string) (*Kept, error) {
	f, err := os.Open(filepath.Join(stateDir, keptFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxKept+1))
	if err != nil {
		return nil, err
	}
	if len(b) > maxKept {
		return nil, fmt.Errorf("%s has more than %d bytes", keptFile, maxKept)
	}
	k := &Kept{}
	if err := json.Unmarshal(b, k); err != nil {
		return nil, fmt.Errorf("%s: %w", keptFile, err)
	}
	return k, nil
}
