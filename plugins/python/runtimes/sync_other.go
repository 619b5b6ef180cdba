//go:build !unix

package runtimes

// syncDir does nothing where a folder cannot be synced.
func syncDir(string) error { return nil }
