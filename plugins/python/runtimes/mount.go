package runtimes

import (
	"errors"
	"io"

	"openskill/wasm/guestfs"
)

// Mount opens what a guest must see of the runtime, to be put into a
// [guestfs.NewTree] beside what else it sees. The mounts may be shared by any number
// of guests; closing ends them. Both are of the files that were verified, as long as
// nobody writes into the state folder.
func (r *Runtime) Mount() (mounts []guestfs.Mount, closing func() error, err error) {
	var open []io.Closer
	closing = func() error {
		var all []error
		for _, c := range open {
			all = append(all, c.Close())
		}
		open = nil
		return errors.Join(all...)
	}
	for _, m := range r.Mounts {
		d, err := openFolder(m.Path)
		if err != nil {
			return nil, nil, errors.Join(err, closing())
		}
		open = append(open, d)
		mounts = append(mounts, guestfs.Mount{Path: m.Guest, FS: guestfs.FromFS(d)})
	}
	return mounts, closing, nil
}
