package sandbox

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"math"
	"math/bits"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"openskill/sdk/skill"
	"openskill/wasm"
	"openskill/wasm/guestfs"
)

// Images runs skills from images: each is started once, up to where it asks for its
// input, and its calls begin there. It is safe for concurrent use.
//
// What may be shared by calls is what their start-ups cannot tell apart: the
// module, its arguments and environment, the folders as they are, and limits that
// are rounded up, so that callers who lower them do not make an image each. A
// start-up sees nothing of a call. A call with arguments of its own has an instance
// of its own.
type Images struct {
	Engine   *wasm.Engine
	Runtime  string // of CallsOf
	Folders  *Folders
	Outgoing skill.Outgoing // nil: no network
	Programs *Programs      // that scripts can start; nil: none
	Kind     skill.Kind     // of the runner

	mu     sync.Mutex
	all    map[imageKey]*kept
	clock  uint64
	starts map[string]*atomic.Uint64 // by tenant: fuel of start-ups that no call has told yet
	closed bool
}

// maxImages is how many skills are kept started; beyond it, those go that were not
// called for the longest.
const maxImages = 256

// Start is how a skill is started.
type Start struct {
	Module *wasm.Module
	Name   string // of the module, which is the same for the same bytes
	Args   []string
	Env    []string
	Mounts []guestfs.Mount // beside the folders; the same for the same Name
	Entry  Stamp           // of the file that the skill begins with
	// Fuel is what a start-up may use at least, where starting the language takes
	// more than a skill's whole limit.
	Fuel uint64
	// Time is how long a start-up may take; 0 means ten seconds. The call that waits for
	// it has its own time, and what nobody waits for any more is ended soon.
	Time time.Duration
	// Head comes before a call's standard input: what the runner's own part of the guest
	// reads there, and makes the first read with. nil: nothing.
	Head []byte
	// Plugin says that the module is a plug-in of Extism: its result is what it sets as its
	// output, and what it prints is kept as its logs.
	Plugin bool
	// Each says that the start-up sees something of the call, so that it is the call's alone.
	Each bool
	// Self is what the guest is told that it was started with; see [wasm.Call].
	Self *wasm.Process
}

type imageKey struct {
	skill, data       *Folder
	packages          packages
	state             uint64
	name, args, env   string
	entry             Stamp
	memory, fuel      uint64
	scratch           uint64
	hasScratch, trust bool
	recorded          bool
	session           wasm.Start // that start-ups of a session have; zero: no session
	script            string     // where a script's folder is; "" of what is no script
	command           bool       // a program that processes of any run are
	binaries          guestfs.FS // that it sees; nil: none
}

// kept is an image, and the folders that its key names.
type kept struct {
	image *wasm.Image
	start wasm.Start // of images of sessions, and of those whose runs are recorded
	users int
	used  uint64
	stale bool
}

// startTime bounds a start-up; the call that waits for it has its own time.
const startTime = 10 * time.Second

// Run runs a skill for call, in what is left of the call's time since it began.
// The error is a *skill.Error, or the engine's own.
func (s *Images) Run(ctx context.Context, call *skill.Call, g *Granted, start *Start, began time.Time) (*skill.Reply, error) {
	l := &call.Limits
	left := l.Timeout - time.Since(began)
	if left <= 0 {
		return waited(ctx, l.Timeout), nil
	}
	t, err := tapeOf(call, start.of(call))
	if err != nil {
		return nil, err
	}
	if r := t.other(); r != nil {
		return r, nil
	}
	key := s.keyOf(call, g, start)
	k, err := s.acquire(key, start.Each, t, s.programOf(key, call, start))
	if err != nil {
		return nil, err
	}
	defer s.release(k)
	begin, release, err := s.Folders.bring(call)
	if err != nil {
		return nil, err
	}
	defer release()
	var made struct {
		artifacts []skill.Artifact
		value     []byte
		removed   []string
		saw       *skill.Recording // nil: nobody has watched
	}
	run := wasm.Call{
		Stdin: start.stdin(call),
		Limits: wasm.Limits{
			Fuel: l.Fuel, Memory: l.Memory, Timeout: left,
			Output: int64(min(l.Output, math.MaxInt64)), // bounded
		},
		Begin: begin,
		Done: func(f wasm.Files) {
			if call.Script {
				made.artifacts, made.value = written(f.Scratch), valueOf(f.Scratch, call)
			} else {
				made.artifacts = artifactsOf(f.Scratch)
			}
			made.removed = removedFiles(f.Scratch, call)
			if v := viewOf(f); v != nil && v.watched != nil { // now: the instance serves another call soon
				made.saw = v.watched.take()
			}
		},
		Fetch:     s.fetch(call),
		StartFuel: s.startsOf(call.Tenant),
		Self:      start.Self,
		Programs:  s.programs(call, t),
	}
	if t != nil {
		run.Stdin, run.Record, run.Replay = start.whole(call), t.record, t.replay
	}
	if call.Session != nil {
		run.KeepState, run.State, run.Status = true, call.Session.State, statusOf
	}
	var printed bytes.Buffer
	if start.Plugin {
		run.Stdout, run.Stderr = &printed, &printed
	}
	out, err := k.image.Run(ctx, &run)
	if err != nil {
		return nil, err
	}
	r := reply(ctx, call, out, time.Since(began), s.Runtime)
	r.Usage.StartFuel += run.StartFuel.Swap(0)
	if start.Plugin {
		plugged(r, call, out, printed.Bytes())
	}
	r.Artifacts, r.Value, r.Removed = made.artifacts, made.value, made.removed
	if call.Session != nil {
		stated(r, call, out)
	}
	if uint64(len(r.Value)) > l.Output {
		r.Value = nil
		if r.Code == "" {
			out.Ended = wasm.OutputOverflow
			r.Code, r.Message, r.ExitCode = skill.OutputLimit, ends[out.Ended].text(l, out), 0
		}
	}
	if t != nil {
		t.note(r, out, made.saw)
	}
	return r, nil
}

// of names what a run begins with, for its recording: the module, and the packages.
func (s *Start) of(call *skill.Call) string {
	if call.Grants.Packages == "" {
		return s.Name
	}
	set := filepath.Base(call.Grants.Packages)
	return s.Name + " " + set[:min(len(set), 24)] // a recording has room for as much
}

// startsOf gives what counts the start-ups of a tenant's calls. A start-up may go on when
// its call, and its image, are gone; a later call tells what it used.
func (s *Images) startsOf(tenant string) *atomic.Uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.starts[tenant]
	if n == nil {
		if s.starts == nil {
			s.starts = map[string]*atomic.Uint64{}
		}
		n = &atomic.Uint64{}
		s.starts[tenant] = n
	}
	return n
}

func (s *Start) stdin(call *skill.Call) io.Reader {
	if s.Head == nil {
		return bytes.NewReader(call.Stdin)
	}
	return io.MultiReader(bytes.NewReader(s.Head), bytes.NewReader(call.Stdin))
}

// Warm starts an instance of the image that call would run on, if there is none yet.
// A skill that never asks for input has none; that is no error. What else goes wrong
// with a start-up is.
func (s *Images) Warm(ctx context.Context, call *skill.Call, g *Granted, start *Start) error {
	if start.Each {
		return nil
	}
	var t *taped
	if call.Record > 0 {
		t = &taped{}
	}
	key := s.keyOf(call, g, start)
	k, err := s.acquire(key, start.Each, t, s.programOf(key, call, start))
	if err != nil {
		return err
	}
	defer s.release(k)
	if err := k.image.Warm(ctx, 1); !errors.Is(err, wasm.ErrNoInput) {
		return err
	}
	return nil
}

// keyOf names the image of a call.
func (s *Images) keyOf(call *skill.Call, g *Granted, start *Start) imageKey {
	l := &call.Limits
	key := imageKey{
		skill: g.folder, data: g.data, packages: g.packages, state: g.folder.state(call.Trust), name: start.Name,
		args: strings.Join(start.Args, "\x00"), env: strings.Join(start.Env, "\x00"), entry: start.Entry,
		memory: RoundUp(l.Memory), fuel: max(RoundUp(l.Fuel), start.Fuel), trust: call.Trust >= skill.Trusted,
		recorded: call.Record > 0,
	}
	if call.Grants.Scratch || call.Script {
		key.hasScratch, key.scratch = true, l.Scratch
	}
	if call.Script {
		key.script, key.binaries = Dir(call), s.binaries(call)
	}
	if of := call.Session; of != nil {
		key.session = wasm.Start{Seed: of.Seed, Made: time.Unix(of.Made, 0)}
	}
	return key
}

// Program gives what a call would be started from, for an image of the caller's own.
func (s *Images) Program(call *skill.Call, g *Granted, start *Start) *wasm.Program {
	return s.program(s.keyOf(call, g, start), call, start, nil)
}

// RoundUp gives the next power of two: limits that callers lower are rounded up so
// that few values stand for all.
func RoundUp(n uint64) uint64 {
	if n > 1<<62 {
		return n
	}
	return 1 << bits.Len64(max(n, 1)-1)
}

var errImagesClosed = errors.New("sandbox: the images are closed")

// programOf is program, for who knows later how it begins.
func (s *Images) programOf(key imageKey, call *skill.Call, start *Start) func(*wasm.Start) *wasm.Program {
	return func(begin *wasm.Start) *wasm.Program { return s.program(key, call, start, begin) }
}

// acquire gives the image of a key, or one for one run alone. t is nil, or learns of the start
// that the image has.
func (s *Images) acquire(key imageKey, alone bool, t *taped, program func(begin *wasm.Start) *wasm.Program) (*kept, error) {
	switch {
	case t != nil && t.replay != nil && (t.once || t.start != key.session):
		return &kept{image: s.image(program, t.start, wasm.ImageOptions{Once: t.once, Instances: 1, Spare: -1}), stale: true, users: 1}, nil
	case alone:
		var begin wasm.Start
		if t != nil {
			begin = wasm.NewStart()
			t.start = begin
		}
		return &kept{image: s.image(program, begin, wasm.ImageOptions{Once: true}), stale: true, users: 1}, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errImagesClosed
	}
	s.clock++
	k := s.all[key]
	if k == nil {
		if s.all == nil {
			s.all = map[imageKey]*kept{}
		}
		s.trim()
		k = &kept{start: key.session}
		if t != nil && k.start == (wasm.Start{}) {
			k.start = wasm.NewStart()
		}
		k.image = s.image(program, k.start, instances(&key))
		s.all[key] = k
	}
	if t != nil {
		t.start = k.start
	}
	k.users++
	k.used = s.clock
	return k, nil
}

// maxProcesses is how many processes of a program there can be in all runs: one that waits for
// its children holds its instance, so that there must be room for them.
const maxProcesses = 4096

func instances(key *imageKey) (o wasm.ImageOptions) {
	if key.command {
		o.Instances = maxProcesses
	}
	return o
}

// image returns a new image whose start-ups have a start; zero: each its own.
func (s *Images) image(program func(begin *wasm.Start) *wasm.Program, start wasm.Start, o wasm.ImageOptions) *wasm.Image {
	if start == (wasm.Start{}) {
		return s.Engine.Image(program(nil), &o)
	}
	o.Start = &start
	return s.Engine.Image(program(&start), &o)
}

// program is what the image of a key starts. begin is how it begins, where runs are
// recorded or made again; else nil.
func (s *Images) program(key imageKey, call *skill.Call, start *Start, begin *wasm.Start) *wasm.Program {
	of := skill.Call{Folder: call.Folder, Trust: call.Trust, Grants: call.Grants, Limits: skill.Limits{Scratch: key.scratch}, Script: call.Script, Code: call.Code, SkillID: call.SkillID, Record: call.Record}
	mounts := append(start.Mounts[:len(start.Mounts):len(start.Mounts)], devices()...)
	mounts = append(mounts, mounted(key.binaries)...)
	return &wasm.Program{
		Module: start.Module, Args: start.Args, Env: start.Env, Fetch: tooEarly,
		Limits: wasm.Limits{Fuel: key.fuel, Memory: key.memory, Timeout: cmp.Or(start.Time, startTime), Output: 1 << 20},
		Open: func() (wasm.Files, error) {
			v, err := s.Folders.view(&of, begin, mounts)
			if err != nil {
				return wasm.Files{}, err
			}
			files := wasm.Files{Root: viewRoot{v.Root, v}, Scratch: v.work, Close: v.Close}
			if v.watched != nil {
				files.Begun = v.watched.begun
			}
			return files, nil
		},
	}
}

// trim makes room for one more. S.mu is held.
func (s *Images) trim() {
	for len(s.all) >= maxImages {
		var key imageKey
		var oldest *kept
		for o, k := range s.all {
			if k.users == 0 && (oldest == nil || k.used < oldest.used) {
				key, oldest = o, k
			}
		}
		if oldest == nil {
			return // all are running; they are few more than the host lets in at once
		}
		delete(s.all, key)
		go func() { _ = oldest.image.Close() }()
	}
}

func (s *Images) release(k *kept) {
	s.mu.Lock()
	k.users--
	last := k.stale && k.users == 0
	s.mu.Unlock()
	if last {
		_ = k.image.Close()
	}
}

// Close ends all images, after the last call. It may be called twice.
func (s *Images) Close() {
	s.mu.Lock()
	s.closed = true
	all := s.all
	s.all = nil
	s.mu.Unlock()
	for _, k := range all {
		_ = k.image.Close()
	}
}

func artifactsOf(m *guestfs.Memory) []skill.Artifact {
	if m == nil {
		return nil
	}
	return read(m, "", m.Files())
}

// read gives the content of files below a folder.
func read(m *guestfs.Memory, folder string, files []guestfs.FileInfo) []skill.Artifact {
	all := make([]skill.Artifact, 0, len(files))
	for _, f := range files {
		// The guest has ended, so what was listed can be read.
		if data, err := m.ReadFile(folder + f.Name); err == nil {
			all = append(all, skill.Artifact{Name: f.Name, Data: data, Size: int64(len(data))})
		}
	}
	return all
}
