package sandbox

import (
	"bytes"
	"context"
	"math"
	"time"

	"openskill/sdk/skill"
	"openskill/wasm"
	"openskill/wasm/guestfs"
)

// View is the files of one run.
type View struct {
	Root *guestfs.Tree

	folder *Folder // of the skill
	data   *Folder // nil unless granted
	work   *guestfs.Memory
}

// View opens the files that a call is granted; the caller closes it after the run.
// The error is a *skill.Error: a folder that was granted must be there.
func (f *Folders) View(call *skill.Call) (*View, error) {
	folder, err := f.Skill(call.Folder, call.Trust)
	if err != nil {
		return nil, err
	}
	v := &View{folder: folder}
	mounts := append(make([]guestfs.Mount, 0, 3), guestfs.Mount{Path: "/skill", FS: folder})
	if call.Grants.Data != "" {
		if v.data, err = f.Acquire(call.Grants.Data, false); err != nil {
			v.Close()
			return nil, &skill.Error{
				Op: "sandbox.View", Code: skill.ToolInvocationError, Subject: "data", Err: err,
				Message: "the data folder of this host cannot be opened; its operator sets it with OPENSKILL_ALLOWED_ROOT",
			}
		}
		mounts = append(mounts, guestfs.Mount{Path: "/data", FS: v.data})
	}
	if call.Grants.Scratch {
		v.work = guestfs.NewMemory(guestfs.Limits{Bytes: int64(min(call.Limits.Scratch, math.MaxInt64))}) //nolint:gosec // bounded
		mounts = append(mounts, guestfs.Mount{Path: "/work", FS: v.work})
	}
	if v.Root, err = guestfs.NewTree(mounts...); err != nil {
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

// Folder is the skill's folder.
func (v *View) Folder() *Folder { return v.folder }

// Close releases the folders, after the run. It may be called twice.
func (v *View) Close() {
	if v.folder != nil {
		v.folder.Release()
	}
	if v.data != nil {
		v.data.Release()
	}
	v.folder, v.data = nil, nil
}

// Run runs a module for call, with these arguments and environment, in what is
// left of the call's time since it began. The error is the engine's own.
func (v *View) Run(ctx context.Context, m *wasm.Module, call *skill.Call, began time.Time, args, env []string) (*skill.Reply, error) {
	l := &call.Limits
	left := l.Timeout - time.Since(began)
	if left <= 0 {
		return Waited(ctx, l), nil
	}
	out, err := m.Run(ctx, &wasm.Run{
		Args: args, Env: env, Stdin: bytes.NewReader(call.Stdin), Files: v.Root,
		Limits: wasm.Limits{
			Fuel: l.Fuel, Memory: l.Memory, Timeout: left,
			Output: int64(min(l.Output, math.MaxInt64)), //nolint:gosec // bounded
		},
	})
	if err != nil {
		return nil, err
	}
	return v.reply(ctx, call, out, time.Since(began)), nil
}

// artifacts are the files that the guest left in the top folder of /work.
func (v *View) artifacts() []skill.Artifact {
	if v.work == nil {
		return nil
	}
	files := v.work.Files()
	all := make([]skill.Artifact, 0, len(files))
	for _, f := range files {
		// The run is over and nothing else knows the file system, so what was
		// listed can be read.
		if data, err := v.work.ReadFile(f.Name); err == nil {
			all = append(all, skill.Artifact{Name: f.Name, Data: data, Size: int64(len(data))})
		}
	}
	return all
}
