package sandbox

import (
	"math"

	"openskill/sdk/skill"
	"openskill/wasm/guestfs"
)

// Granted are the folders of the host that a call may see, open while it runs.
type Granted struct {
	folder *Folder // of the skill
	data   *Folder // nil unless granted
}

// Grant opens them; the caller closes them after the run. The error is a
// *skill.Error: a folder that was granted must be there.
func (f *Folders) Grant(call *skill.Call) (*Granted, error) {
	folder, err := f.Skill(call.Folder, call.Trust)
	if err != nil {
		return nil, err
	}
	g := &Granted{folder: folder}
	if call.Grants.Data != "" {
		if g.data, err = f.Acquire(call.Grants.Data, false); err != nil {
			g.Close()
			return nil, &skill.Error{
				Op: "sandbox.Grant", Code: skill.ToolInvocationError, Subject: "data", Err: err,
				Message: "the data folder of this host cannot be opened; its operator sets it with OPENSKILL_ALLOWED_ROOT",
			}
		}
	}
	return g, nil
}

// Close releases the folders. It may be called twice.
func (g *Granted) Close() {
	if g.folder != nil {
		g.folder.Release()
	}
	if g.data != nil {
		g.data.Release()
	}
	g.folder, g.data = nil, nil
}

// View is the files that a guest sees.
type View struct {
	Root *guestfs.Tree

	*Granted

	work *guestfs.Memory
}

// View opens the files that a call is granted, and mounts more beside them; the
// caller closes it after the run. The error is a *skill.Error.
func (f *Folders) View(call *skill.Call, more ...guestfs.Mount) (*View, error) {
	g, err := f.Grant(call)
	if err != nil {
		return nil, err
	}
	v := &View{Granted: g}
	mounts := make([]guestfs.Mount, 0, 3+len(more))
	if call.Script {
		if err := v.workplace(call); err != nil {
			v.Close()
			return nil, err
		}
		mounts = append(mounts, guestfs.Mount{Path: Dir(call), FS: v.work.Sub(own)}, guestfs.Mount{Path: tempDir, FS: v.work.Sub(temp)})
	} else {
		mounts = append(mounts, guestfs.Mount{Path: skillDir, FS: g.folder})
	}
	if g.data != nil {
		mounts = append(mounts, guestfs.Mount{Path: "/data", FS: g.data})
	}
	if call.Grants.Scratch && !call.Script {
		v.work = guestfs.NewMemory(guestfs.Limits{Bytes: int64(min(call.Limits.Scratch, math.MaxInt64))}) //nolint:gosec // bounded
		mounts = append(mounts, guestfs.Mount{Path: "/work", FS: v.work})
	}
	if v.Root, err = guestfs.NewTree(append(mounts, more...)...); err != nil {
		v.Close()
		return nil, &skill.Error{Op: "sandbox.View", Code: skill.Internal, Err: err}
	}
	return v, nil
}

// Skill opens the folder of a skill. An owner may put a folder together from hard
// links; in an uploaded one they are not shown.
func (f *Folders) Skill(path string, trust skill.Trust) (*Folder, error) {
	d, err := f.Acquire(path, trust >= skill.Trusted)
	if err != nil {
		return nil, &skill.Error{
			Op: "sandbox.Skill", Code: skill.InvalidManifest, Subject: "folder", Err: err,
			Message: "the skill's folder cannot be opened",
		}
	}
	return d, nil
}
