package sandbox

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"openskill/sdk/skill"
	"openskill/wasm"
	"openskill/wasm/guestfs"
)

// processFile is the file that guests ask for processes through; package wasm/wasi has the
// requests.
const processFile = "/dev/process"

// Programs are what the processes of runs can be: the language runtimes of all runners on an
// engine, by the names that they are called by. It is safe for concurrent use.
type Programs struct {
	mu    sync.Mutex
	names map[string]*Calls
	kinds map[skill.Kind]*Calls
	found map[string]guestfs.FS // of binaries
}

// Command says how a program of a call starts, up to where it asks what it was started with.
// The error is a *skill.Error.
type Command func(call *skill.Call, p *skill.Program) (*Start, error)

func (p *Programs) add(c *Calls) {
	if p == nil || c.of.Command == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.names == nil {
		p.names, p.kinds = map[string]*Calls{}, map[skill.Kind]*Calls{}
	}
	p.kinds[c.of.Kind] = c
	for _, name := range slices.Concat(c.of.Names, c.of.ForCode) {
		p.names[name] = c
	}
}

// named gives who runs a program; nil: there is none of this name.
func (p *Programs) named(name string) *Calls {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.names[name]
}

// plans are the programs of a script: those whose runtimes are installed.
func (p *Programs) plans(ctx context.Context, s *skill.Spec) []skill.Program {
	if p == nil {
		return nil
	}
	var all []skill.Program
	for _, c := range p.all() {
		if plan, err := c.of.Plan(ctx, s); err == nil {
			all = append(all, skill.Program{Kind: c.of.Kind, Runtime: plan.Runtime, Module: plan.Module})
		}
	}
	return all
}

func (p *Programs) all() []*Calls {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(maps.Values(p.kinds))
}

// Names are those of the programs that any script can start, sorted, whether or not their runtimes are
// installed.
func (p *Programs) Names() (names []string) {
	for _, c := range p.all() {
		names = append(names, c.of.Names...)
	}
	slices.Sort(names)
	return names
}

// Of are the names that the script of a call can start, sorted, without those of a kind.
func (p *Programs) Of(call *skill.Call, without skill.Kind) (names []string) {
	if p == nil || !call.Script {
		return nil
	}
	for _, c := range p.all() {
		there := slices.ContainsFunc(call.Plan.Programs, func(of skill.Program) bool { return of.Kind == c.of.Kind })
		if there && c.of.Kind != without {
			names = append(names, c.of.Names...)
			if call.Code {
				names = append(names, c.of.ForCode...)
			}
		}
	}
	slices.Sort(names)
	return names
}

// binDirs are where guests see the programs that they can start.
var binDirs = [...]string{"/usr/bin", "/bin"}

// binaries is the folder with the programs that the script of a call can start, so that a script
// that looks for one before it starts it finds it; nil: none, as for the shell, which knows them.
func (s *Images) binaries(call *skill.Call) guestfs.FS {
	if s.Kind == skill.WasmShell {
		return nil
	}
	return s.Programs.binaries(s.Programs.Of(call, ""))
}

// binaries is a folder of these names, the same one each time.
func (p *Programs) binaries(names []string) guestfs.FS {
	if len(names) == 0 {
		return nil
	}
	key := strings.Join(names, " ")
	p.mu.Lock()
	defer p.mu.Unlock()
	if fsys := p.found[key]; fsys != nil {
		return fsys
	}
	mounts := make([]guestfs.Mount, 0, len(names))
	for _, name := range slices.Compact(names) {
		mounts = append(mounts, guestfs.Mount{Path: "/" + name, FS: guestfs.Bytes(nil)})
	}
	fsys, err := guestfs.NewTree(mounts...)
	if err != nil {
		return nil // a program has a name that no file can have
	}
	if p.found == nil {
		p.found = map[string]guestfs.FS{}
	}
	p.found[key] = fsys
	return fsys
}

// mounted are the mounts of a folder of programs.
func mounted(binaries guestfs.FS) (mounts []guestfs.Mount) {
	for _, dir := range binDirs {
		if binaries != nil {
			mounts = append(mounts, guestfs.Mount{Path: dir, FS: binaries})
		}
	}
	return mounts
}

// maxInterpreter is how many bytes the first line of a script is looked at, as Linux does.
const maxInterpreter = 256

// resolve gives the name of the program that a process runs. That of a script is its
// interpreter, which gets the script as an argument.
func resolve(root guestfs.FS, p *wasm.Process) (string, guestfs.Errno) {
	name := p.Args[0]
	if !strings.Contains(name, "/") {
		return name, 0
	}
	at := name
	if !path.IsAbs(at) {
		at = path.Join("/", p.Dir, at)
	}
	at = path.Clean(at)
	if dir, base := path.Split(at); dir == "/bin/" || dir == "/usr/bin/" || dir == "/usr/local/bin/" {
		return base, 0
	}
	file, errno := root.Open(strings.TrimPrefix(at, "/"), 0)
	if errno != 0 {
		return "", errno
	}
	defer file.Close()
	line := make([]byte, maxInterpreter)
	n, errno := file.ReadAt(line, 0)
	if errno == guestfs.EISDIR {
		errno = guestfs.EACCES
	}
	if errno != 0 {
		return "", errno
	}
	text, ok := bytes.CutPrefix(line[:n], []byte("#!"))
	if !ok {
		return "", guestfs.ENOEXEC
	}
	text, _, _ = bytes.Cut(text, []byte("\n"))
	words := strings.Fields(string(text))
	for len(words) > 0 && (path.Base(words[0]) == "env" || strings.HasPrefix(words[0], "-S")) {
		if rest := strings.TrimPrefix(words[0], "-S"); rest != words[0] && rest != "" {
			words[0] = rest
			continue
		}
		words = words[1:]
	}
	if len(words) == 0 {
		return "", guestfs.ENOEXEC
	}
	interpreter := path.Base(words[0])
	args := append([]string{interpreter}, words[1:]...)
	p.Args = append(append(args, name), p.Args[1:]...)
	return interpreter, 0
}

// programs has a script's run start the programs of its plan.
func (s *Images) programs(call *skill.Call, t *taped) wasm.Programs {
	if !call.Script || s.Programs == nil || len(call.Plan.Programs) == 0 {
		return nil
	}
	return func(first wasm.Files, p *wasm.Process) (*wasm.Found, guestfs.Errno) {
		view := viewOf(first)
		if view == nil {
			return nil, guestfs.EACCES
		}
		name, errno := resolve(first.Root, p)
		if errno != 0 {
			return nil, errno
		}
		c := s.Programs.named(name)
		if c == nil || !call.Code && slices.Contains(c.of.ForCode, name) {
			return nil, guestfs.ENOENT
		}
		for i := range call.Plan.Programs {
			if of := &call.Plan.Programs[i]; of.Kind == c.of.Kind {
				return c.command(call, of, view, t)
			}
		}
		return nil, guestfs.ENOENT
	}
}

// command gives the image of a program, and a process's files.
func (c *Calls) command(call *skill.Call, of *skill.Program, view *View, t *taped) (*wasm.Found, guestfs.Errno) {
	m, ok := c.of.Engine.Lookup(of.Module.Digest, options(&of.Module))
	if !ok {
		var err error
		if m, err = c.load(context.Background(), &of.Module); err != nil {
			return nil, guestfs.EAGAIN // it is being compiled
		}
	}
	start, err := c.of.Command(call, of)
	if err != nil {
		return nil, guestfs.EIO
	}
	start.Module, start.Name = m, cmp.Or(start.Name, of.Module.Digest)
	mounts := append(start.Mounts[:len(start.Mounts):len(start.Mounts)], devices()...)
	seen := slices.Concat(view.mounts, mounts, mounted(c.Images.binaries(call)))
	root, err := guestfs.NewTree(seen...)
	if err != nil {
		return nil, guestfs.EIO
	}
	key := imageKey{
		name: start.Name, args: strings.Join(start.Args, "\x00"), env: strings.Join(start.Env, "\x00"),
		memory: RoundUp(call.Limits.Memory), fuel: start.Fuel, recorded: call.Record > 0, command: true,
	}
	program := func(begin *wasm.Start) *wasm.Program {
		return &wasm.Program{
			Module: m, Args: start.Args, Env: start.Env, Fetch: tooEarly,
			Limits: wasm.Limits{Fuel: key.fuel, Memory: key.memory, Timeout: cmp.Or(start.Time, startTime), Output: 1 << 20},
			Open: func() (wasm.Files, error) {
				root, err := guestfs.NewTree(mounts...)
				return wasm.Files{Root: root}, err
			},
		}
	}
	child, errno := t.child()
	if errno != 0 {
		return nil, errno
	}
	k, err := c.Images.acquire(key, false, child, program)
	if err != nil {
		return nil, guestfs.EIO
	}
	t.began(child)
	return &wasm.Found{Image: k.image, Files: wasm.Files{Root: root, Close: func() { c.Images.release(k) }}}, 0
}

// child is the tape of how a process of a taped run starts; nil: the run is not taped.
func (t *taped) child() (*taped, guestfs.Errno) {
	switch {
	case t == nil:
		return nil, 0
	case t.replay == nil:
		return &taped{record: t.record}, 0
	}
	var b [40]byte
	if t.replay.Chance(b[:]) != nil {
		return nil, guestfs.EIO // the run ends as soon as it asks for more
	}
	c := &taped{replay: t.replay}
	copy(c.start.Seed[:], b[:])
	c.start.Made = time.Unix(int64(binary.LittleEndian.Uint64(b[32:])), 0)
	return c, 0
}

// began notes in a recording how a process of it started.
func (t *taped) began(child *taped) {
	if t == nil || t.replay != nil {
		return
	}
	b := binary.LittleEndian.AppendUint64(child.start.Seed[:len(child.start.Seed):len(child.start.Seed)], uint64(child.start.Made.Unix()))
	t.record.Chance(b)
}

// devices are the files that guests ask the host through.
func devices() []guestfs.Mount {
	return []guestfs.Mount{
		{Path: networkFile, FS: guestfs.Exchange{}},
		{Path: processFile, FS: guestfs.Exchange{Asks: guestfs.Processes}},
	}
}
