package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// forgetTyped has the terminal forget what was typed and not read yet.
func forgetTyped(f *os.File) {
	_ = unix.IoctlSetInt(int(f.Fd()), unix.TCFLSH, unix.TCIFLUSH)
}

// noEcho keeps the terminal from showing what is typed, until back is called. A terminal
// that refuses shows it.
func noEcho(f *os.File) (back func()) {
	fd := int(f.Fd())
	was, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		return func() {}
	}
	quiet := *was
	quiet.Lflag &^= unix.ECHO
	_ = unix.IoctlSetTermios(fd, unix.TCSETS, &quiet)
	return func() { _ = unix.IoctlSetTermios(fd, unix.TCSETS, was) }
}
