package guestfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
	"testing"
)

// What the host says becomes a number, never a text.
func TestErrnoOf(t *testing.T) {
	wrap := func(err error) error { return &fs.PathError{Op: "open", Path: "/host/secret", Err: err} }
	for _, tc := range []struct {
		err  error
		want Errno
	}{
		{nil, ESUCCESS},
		{io.EOF, ESUCCESS},
		{wrap(syscall.ENOENT), ENOENT},
		{wrap(syscall.EACCES), EACCES},
		{wrap(syscall.EPERM), EPERM},
		{wrap(syscall.ENOTDIR), ENOTDIR},
		{wrap(syscall.EISDIR), EISDIR},
		{wrap(syscall.ELOOP), ELOOP},
		{wrap(syscall.ENAMETOOLONG), ENAMETOOLONG},
		{wrap(syscall.EINVAL), EINVAL},
		{wrap(syscall.EMFILE), ENFILE},
		{wrap(syscall.ENFILE), ENFILE},
		{wrap(syscall.ENXIO), EACCES},
		{wrap(syscall.ENODEV), EACCES},
		{wrap(syscall.EBADF), EBADF},
		{wrap(syscall.EOVERFLOW), EOVERFLOW},
		{wrap(syscall.EIO), EIO},
		{wrap(syscall.ENOSPC), EIO},
		{fmt.Errorf("read: %w", syscall.EIO), EIO},
		{fs.ErrNotExist, ENOENT},
		{fs.ErrPermission, EACCES},
		{fs.ErrExist, EEXIST},
		{wrap(fs.ErrInvalid), EINVAL},
		{wrap(os.ErrClosed), EBADF},
		{wrap(errors.New("path escapes from parent")), EPERM},
		{errors.New("checksum error"), EIO},
	} {
		if got := errnoOf(tc.err); got != tc.want {
			t.Errorf("%v is %v, want %v", tc.err, got, tc.want)
		}
	}
}
