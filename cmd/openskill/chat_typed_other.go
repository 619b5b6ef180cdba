//go:build !linux

package main

import "os"

// forgetTyped does nothing here: what was typed ahead is taken for an answer.
func forgetTyped(*os.File) {}

// noEcho does nothing here: what is typed while a turn goes on is shown at once.
func noEcho(*os.File) (back func()) { return func() {} }
