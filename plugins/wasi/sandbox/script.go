package sandbox

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"

	"openskill/sdk/skill"
	"openskill/wasm"
	"openskill/wasm/guestfs"
)

// Where guests see the skill's folder, and scripts their temporary files.
const (
	skillDir  = "/skill"
	tempDir   = "/tmp"
	skillsDir = "/skills"
)

// Dir is where the guest of a call sees the skill's folder. That of a script has its
// skill's name, as outside: scripts name files after it.
func Dir(call *skill.Call) string {
	name := string(call.SkillID)
	if !call.Script || !fs.ValidPath(name) || name == "." || strings.Contains(name, "/") {
		return skillDir
	}
	return skillsDir + "/" + name
}

// The folders of a script's own file system that are seen there.
const (
	own   = "skill"
	temp  = "tmp"
	agent = "agent" // the folders of Agent Skills
)

// maxScriptFiles is how many files and folders a skill's folder may have so that its
// scripts run: each script sees all of them as its own.
const maxScriptFiles = 10_000

// workplace makes the files of a script: the skill's folder, which it may write to as
// it would outside, and a folder for temporary files. Both are the run's own. Code begins in an empty folder that is
// the same on all hosts, since its memory knows it, and sessions go on at other hosts.
func (v *View) workplace(scratch guestfs.Limits, code bool) error {
	v.work = guestfs.NewMemory(scratch)
	folders := []string{temp, agent}
	if code {
		folders = append(folders, own)
	} else if err := v.work.Shadow(own, v.folder, maxScriptFiles); err != nil {
		return &skill.Error{
			Op: "sandbox.View", Code: skill.InvalidManifest, Subject: "folder", Err: err,
			Message: "the skill's folder has more than 10000 files or too deeply nested folders for its scripts",
		}
	}
	for _, name := range folders {
		if errno := v.work.Mkdir(name); errno != 0 {
			return &skill.Error{Op: "sandbox.View", Code: skill.Internal, Err: errno}
		}
	}
	return nil
}

// bring returns begin, which puts the files of a call into the working folder, that of a script or /work, and those of
// Agent Skills into their folders. It opens the host folders of the files; the caller must call release.
func (f *Folders) bring(call *skill.Call) (begin func(wasm.Files) error, release func(), err error) {
	var open []*Folder
	release = func() {
		for _, d := range open {
			d.Release()
		}
	}
	if len(call.Files) == 0 && len(call.Folders) == 0 {
		return nil, release, nil
	}
	folders := make([]guestfs.FS, len(call.Folders))
	for i := range call.Folders {
		d, err := f.Acquire(call.Folders[i].Path, false)
		if err != nil {
			release()
			return nil, nil, notSeen(&call.Folders[i], err)
		}
		open, folders[i] = append(open, d), d
	}
	from := make([]guestfs.FS, len(call.Files))
	for i := range call.Files {
		file := &call.Files[i]
		if file.Path == "" {
			from[i] = guestfs.Bytes(file.Data)
			continue
		}
		d, err := f.Acquire(filepath.Dir(file.Path), false)
		if err != nil {
			release()
			return nil, nil, &skill.Error{Op: "sandbox.bring", Code: skill.Internal, Err: err}
		}
		open, from[i] = append(open, d), d
	}
	folder := ""
	if call.Script {
		folder = own + "/"
	}
	return func(files wasm.Files) error {
		for i := range call.Files {
			file, name := &call.Files[i], "."
			if file.Path != "" {
				name = filepath.Base(file.Path)
			}
			if files.Scratch == nil {
				return notBrought(file, fs.ErrPermission)
			}
			if err := files.Scratch.Give(folder+file.Name, from[i], name); err != nil {
				return notBrought(file, err)
			}
		}
		for i := range call.Folders {
			of := &call.Folders[i]
			for _, name := range of.Files {
				if err := files.Scratch.Give(agent+"/"+of.Name+"/"+name, folders[i], name); err != nil {
					return notSeen(of, err)
				}
			}
		}
		return nil
	}, release, nil
}

// removedFiles returns the names of call.Files that the guest removed, renamed or replaced by something other than a
// file.
func removedFiles(m *guestfs.Memory, call *skill.Call) (names []string) {
	if !call.ReportRemoved || m == nil {
		return nil
	}
	folder := ""
	if call.Script {
		folder = own + "/"
	}
	for i := range call.Files {
		if st, errno := m.Stat(folder+call.Files[i].Name, false); errno != 0 || st.Kind != guestfs.KindRegular {
			names = append(names, call.Files[i].Name)
		}
	}
	return names
}

func notSeen(of *skill.Folder, err error) error {
	return &skill.Error{
		Op: "sandbox.bring", Code: skill.Conflict, Subject: "agent_skills", Err: err,
		Message: "the files of the Agent Skill " + skill.CleanText(of.Name, 80) + " changed; retry",
	}
}

func notBrought(file *skill.File, err error) error {
	return &skill.Error{
		Op: "sandbox.bring", Code: skill.InvalidArgument, Subject: "files", Err: err,
		Message: "cannot put the file " + skill.CleanText(file.Name, 80) + " into the working folder: a file or folder with this name exists, the folder is full, or the skill has none",
	}
}

// valueFile is the file to which code writes the value of its last expression.
const valueFile = temp + "/.value"

// valueOf returns the value of the code of a call, or nil.
func valueOf(m *guestfs.Memory, call *skill.Call) []byte {
	if !call.Code {
		return nil
	}
	value, err := m.ReadFile(valueFile)
	if err != nil || len(value) == 0 {
		return nil
	}
	return value
}

// statusFile is the file to which code of a session writes its exit code, unless that is 0.
const statusFile = temp + "/.status"

// statusOf returns the exit code of the code of a session.
func statusOf(f wasm.Files) uint32 {
	text, err := f.Scratch.ReadFile(statusFile)
	if err != nil {
		return 0
	}
	n, err := strconv.ParseInt(string(text), 10, 32)
	if err != nil {
		return 1
	}
	return uint32(n)
}

// stated gives the reply to a call of a session its state, or says why there is none.
func stated(r *skill.Reply, call *skill.Call, out *wasm.Outcome) {
	switch most := call.Session.Most; {
	case r.Code != "":
	case out.State == nil:
		r.Code, r.ExitCode = skill.ToolInvocationError, 0
		r.Message = "the code ended its interpreter, or closed standard input; the session is as it was before"
	case uint64(len(out.State)) > most:
		r.Code, r.ExitCode = skill.MemoryLimit, 0
		r.Message = fmt.Sprintf("the variables of the session take more than %d MiB; the session is as it was before: let the code keep less", most>>20)
	default:
		r.State = out.State
	}
}

// EntryOf returns the stamp of the entry of a call, as [Folder.Entry] does. The entry of a Code call is not in the
// folder, and has none.
func EntryOf(call *skill.Call, folder *Folder, hint string) (Stamp, error) {
	if call.Code {
		return Stamp{}, nil
	}
	return folder.Entry(call.Entry, hint)
}

// written are the files that a script left in its working folder.
func written(m *guestfs.Memory) []skill.Artifact {
	return read(m, own+"/", m.Written(own))
}
