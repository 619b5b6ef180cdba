package sandbox

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"openskill/sdk/skill"
	"openskill/wasm"
	"openskill/wasm/check"
)

// Modules are the modules of skills that bring their own: each is read, checked and
// compiled by the first call that needs it, and shared by all calls until its file
// changes. The fields are set before the first call. It is safe for concurrent use.
type Modules struct {
	Engine *wasm.Engine
	Op     string // begins the operations of errors
	Hint   string // what to do about a module that is not there
	// Split takes an entry apart into the file and what of it is called; nil: it is the file.
	Split func(entry string) (file, function string)
	// Make gives the module that is run; nil: it is what is in the file. What the error
	// refuses is a *check.Error.
	Make func(module []byte, function string) ([]byte, error)
	// Largest is the size in bytes up to which a file is read, though the engine has caps
	// of its own; 0: 64 MiB.
	Largest int64
	// Now is the clock against which a file's age is held; nil: the real one.
	Now func() time.Time

	mu    sync.Mutex
	known map[moduleKey]known
}

// moduleKey names the entry of a skill as it was admitted.
type moduleKey struct{ folder, entry, digest string }

// known is what was found in an entry's file.
type known struct {
	stamp   Stamp
	settled bool   // the stamp alone shows that the file is the same
	file    string // wasm.Digest of its bytes
	module  string // and of those that are run
	verdict error  // the *check.Error against the module, or nil
}

// maxKnown bounds the memory of what is known; beyond it all is forgotten and
// read again.
const maxKnown = 10_000

// Of gives the module of a call, as the file is now, with its name and stamp.
func (s *Modules) Of(ctx context.Context, p *Pending) (*wasm.Module, string, Stamp, error) {
	file, function := p.Entry, ""
	if s.Split != nil {
		file, function = s.Split(p.Entry)
	}
	stamp, err := p.Folder.Entry(file, s.Hint)
	if err != nil {
		return nil, "", stamp, err
	}
	key := moduleKey{p.Call.Folder, p.Entry, p.Digest}
	s.mu.Lock()
	k, seen := s.known[key]
	s.mu.Unlock()
	if seen && k.settled && k.stamp == stamp {
		if k.verdict != nil {
			return nil, "", stamp, k.verdict
		}
		if m, ok := s.Engine.Lookup(k.module, nil); ok {
			return m, k.module, stamp, nil
		}
	}
	largest := s.Largest
	if largest == 0 {
		largest = 64 << 20
	}
	data, stamp, err := p.Folder.Read(file, s.Hint, largest)
	if err != nil {
		return nil, "", stamp, err
	}
	if int64(len(data)) > largest {
		return nil, "", stamp, &check.Error{Code: check.ModuleTooComplex, Msg: fmt.Sprintf("the module has more than %d MiB, the largest that is accepted", largest>>20)}
	}
	now := known{stamp: stamp, settled: stamp.Settled(s.now()), file: wasm.Digest(data)}
	if seen && k.file != now.file && p.Trust < skill.Trusted {
		return nil, "", stamp, &skill.Error{
			Op: s.Op + ".Run", Code: skill.Conflict, Subject: string(p.SkillID),
			Message: "the module is not the one that was admitted; upload it as a new version",
		}
	}
	if seen && k.file == now.file { // it was only written again
		if m, ok := s.Engine.Lookup(k.module, nil); ok || k.verdict != nil {
			now.module, now.verdict = k.module, k.verdict
			s.note(key, now)
			return m, now.module, stamp, now.verdict
		}
	}
	m, err := s.compiled(ctx, p, data, function, &now)
	if err != nil {
		return nil, "", stamp, err
	}
	s.note(key, now)
	return m, now.module, stamp, now.verdict
}

// compiled gives the module of a file, and notes its name, or what speaks against it.
func (s *Modules) compiled(ctx context.Context, p *Pending, data []byte, function string, now *known) (m *wasm.Module, err error) {
	now.module = now.file
	if s.Make != nil {
		data, err = s.Make(data, function)
		now.module = wasm.Digest(data)
	}
	if err == nil {
		var ok bool
		if m, ok = s.Engine.Lookup(now.module, nil); ok {
			return m, nil
		}
		err = p.Within(ctx, func(ctx context.Context) error {
			m, err = s.Engine.Compile(ctx, data, nil)
			return err
		})
	}
	var verdict *check.Error
	if errors.As(err, &verdict) {
		now.verdict = err
		return nil, nil
	}
	return m, err
}

func (s *Modules) note(key moduleKey, k known) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil || len(s.known) >= maxKnown {
		s.known = map[moduleKey]known{}
	}
	s.known[key] = k
}

func (s *Modules) now() time.Time {
	if s.Now != nil {
		return s.Now()
	}
	return time.Now()
}
