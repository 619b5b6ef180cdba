//go:build !unix

package pgtest

import "os/exec"

type asUser struct{}

func otherUser() (asUser, error) {
	return asUser{}, noneError{"PostgreSQL is started by tests on Unix alone, so that this is not tested"}
}

func (asUser) become(*exec.Cmd) {}

func (asUser) own(string) error { return nil }
