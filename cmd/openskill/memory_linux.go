package main

import "golang.org/x/sys/unix"

// limitMemory bounds what this process can have of memory of its own, in bytes.
// Reserved address space, of which an engine has plenty, does not count.
func limitMemory(bytes uint64) error {
	return unix.Setrlimit(unix.RLIMIT_DATA, &unix.Rlimit{Cur: bytes, Max: bytes})
}
