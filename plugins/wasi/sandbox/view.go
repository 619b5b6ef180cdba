package sandbox

import (
	"math"
	"path"
	"time"

	"openskill/sdk/skill"
	"openskill/wasm"
	"openskill/wasm/guestfs"
)

// Granted are the folders of the host that a call may see, open while it runs.
type Granted struct {
	folder   *Folder // of the skill
	data     *Folder // nil unless granted
	packages packages
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
				Message: "cannot open the data folder of this host; the operator must check OPENSKILL_ALLOWED_ROOT",
			}
		}
	}
	if g.packages, err = f.packages(call.Grants.Packages); err != nil {
		g.Close()
		return nil, err
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
	g.packages.release()
	g.folder, g.data, g.packages = nil, nil, packages{}
}

// View is the files that a guest sees.
type View struct {
	Root *guestfs.Tree

	*Granted

	mounts  []guestfs.Mount // of the call's own: what all processes of its run see
	work    *guestfs.Memory
	watched *watched // the data folder; nil: nobody asks what was looked at
}

// View opens the files that a call is granted, and mounts more beside them; the
// caller closes it after the run. The error is a *skill.Error.
func (f *Folders) View(call *skill.Call, more ...guestfs.Mount) (*View, error) {
	return f.view(call, nil, more)
}

// view is View for a run that begins in a way that is known, by which its files are
// dated; nil: they are dated by the clock.
func (f *Folders) view(call *skill.Call, begin *wasm.Start, more []guestfs.Mount) (*View, error) {
	g, err := f.Grant(call)
	if err != nil {
		return nil, err
	}
	v := &View{Granted: g}
	mounts := make([]guestfs.Mount, 0, 4+len(more))
	scratch := guestfs.Limits{Bytes: int64(min(call.Limits.Scratch, math.MaxInt64))} // bounded
	if begin != nil {
		scratch.Now = func() time.Time { return begin.Made }
	}
	if call.Script {
		if err := v.workplace(scratch, call.Code); err != nil {
			v.Close()
			return nil, err
		}
		mounts = append(mounts, guestfs.Mount{Path: Dir(call), FS: v.work.Sub(own)}, guestfs.Mount{Path: tempDir, FS: v.work.Sub(temp)})
		if call.Code {
			mounts = append(mounts, guestfs.Mount{Path: skill.AgentSkillsDir, FS: v.work.Sub(agent)})
		}
	} else {
		mounts = append(mounts, guestfs.Mount{Path: skillDir, FS: g.folder})
	}
	if g.data != nil {
		data := guestfs.FS(g.data)
		if call.Record > 0 {
			v.watched = &watched{FS: g.data}
			data = v.watched
		}
		mounts = append(mounts, guestfs.Mount{Path: path.Join("/data", call.Grants.DataAt), FS: data})
	}
	if call.Grants.Scratch && !call.Script {
		v.work = guestfs.NewMemory(scratch)
		mounts = append(mounts, guestfs.Mount{Path: "/work", FS: v.work})
	}
	mounts = append(mounts, g.packages.mounts()...)
	v.mounts = mounts
	if v.Root, err = guestfs.NewTree(append(mounts[:len(mounts):len(mounts)], more...)...); err != nil {
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
			Message: "cannot open the skill's folder",
		}
	}
	return d, nil
}
