//go:build !linux

package soak

import "errors"

// look is Linux's.
func look(int, *Sample) error {
	return errors.New("what processes hold is read from /proc, which Linux has")
}
