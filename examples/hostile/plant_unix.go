//go:build unix

package hostile

import (
	"net"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// plantSpecials makes what it can; guests that find nothing open nothing.
func plantSpecials(dir, secret string) {
	_ = unix.Mkfifo(filepath.Join(dir, "fifo"), 0o600)
	_ = os.Link(secret, filepath.Join(dir, "hardlink"))
	_ = unix.Mknod(filepath.Join(dir, "devicenode"), unix.S_IFCHR|0o600, int(unix.Mkdev(1, 5)))
	if l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, "socket"), Net: "unix"}); err == nil {
		l.SetUnlinkOnClose(false)
		_ = l.Close()
	}
}
