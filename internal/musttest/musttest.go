// Package musttest ends tests at an error that they do not expect.
package musttest

import (
	"os"
	"path/filepath"
	"testing"
)

// Do ends the test if err is not nil.
func Do(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// Get takes what a call returned. What it returns gives the value of the call in a test,
// or ends the test at the error: musttest.Get(os.ReadFile(name))(t).
func Get[T any](value T, err error) func(testing.TB) T {
	return func(tb testing.TB) T {
		tb.Helper()
		Do(tb, err)
		return value
	}
}

// Write makes a file that only its owner reads, and the folders above it.
func Write(tb testing.TB, path, text string) {
	tb.Helper()
	Do(tb, os.MkdirAll(filepath.Dir(path), 0o700))
	Do(tb, os.WriteFile(path, []byte(text), 0o600))
}
