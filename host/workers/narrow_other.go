//go:build !linux || !(amd64 || arm64) || cgo

package workers

// Narrows says whether a process that was confined can be confined further. Where
// threads are the C library's, the rules are handed to them by way of /proc, which
// is closed by then; such a process is what it is from its start.
const Narrows = false
