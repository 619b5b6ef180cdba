//go:build !linux || !amd64

package guard

import "errors"

// Install reports that there are no guard pages here.
func Install() error { return errors.New("guard: guard pages are for linux/amd64") }

// Faults is 0.
func Faults() uint64 { return 0 }

// Code is for a handler, which there is none of here.
func Code([]byte, []uint32) (forget func(), err error) { return nil, Install() }

// Reserve gives nothing here.
func Reserve() []byte { return nil }

// Open does nothing here.
func Open([]byte) bool { return false }

// Close does nothing here.
func Close([]byte) bool { return false }

// Release does nothing here.
func Release([]byte, uint64) {}
