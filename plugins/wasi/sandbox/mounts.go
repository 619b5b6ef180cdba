package sandbox

import (
	"openskill/sdk/skill"
	"openskill/wasm/guestfs"
)

// Mount shows the guest files of its runtime as well, which stay the caller's. It
// is called before the run. The error is a *skill.Error.
func (v *View) Mount(more ...guestfs.Mount) error {
	mounts := append(make([]guestfs.Mount, 0, 3+len(more)), guestfs.Mount{Path: "/skill", FS: v.folder})
	if v.data != nil {
		mounts = append(mounts, guestfs.Mount{Path: "/data", FS: v.data})
	}
	if v.work != nil {
		mounts = append(mounts, guestfs.Mount{Path: "/work", FS: v.work})
	}
	root, err := guestfs.NewTree(append(mounts, more...)...)
	if err != nil {
		return &skill.Error{Op: "sandbox.Mount", Code: skill.Internal, Err: err}
	}
	v.Root = root
	return nil
}
