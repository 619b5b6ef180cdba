package python

import (
	"errors"
	"sync"

	"openskill/plugins/python/runtimes"
	"openskill/sdk/skill"
	"openskill/wasm/guestfs"
)

// library holds the files of the runtimes that calls were run on. Nothing is chosen or
// verified here: the plan of a call says which runtime, and its host has verified it.
type library struct {
	at func(name string) (*runtimes.Runtime, error)

	mu     sync.Mutex
	closed bool
	all    map[string]*shelved
}

// shelved is a runtime whose files are open.
type shelved struct {
	run    *runtimes.Runtime
	mounts []guestfs.Mount // of the runtime's files and of openSkill's
	name   string          // of Start
	close  func() error
}

// get opens the files of a runtime, unless they are open. The error is a *skill.Error.
func (l *library) get(name string) (*shelved, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s := l.all[name]; s != nil {
		return s, nil
	}
	if l.closed {
		return nil, &skill.Error{Op: "python.Run", Code: skill.Internal, Message: "the runner is closed"}
	}
	run, err := l.at(name)
	if err != nil {
		return nil, err
	}
	s := &shelved{run: run}
	if s.mounts, s.close, err = run.Mount(); err != nil {
		return nil, &skill.Error{
			Op: "python.Run", Code: skill.ToolInvocationError, Subject: "python", Err: err,
			Message: "cannot open a file of the Python runtime; run openskill runtime verify",
		}
	}
	mounts, started := own(name, run.Module.Digest)
	s.mounts, s.name = append(s.mounts, mounts...), started
	if l.all == nil {
		l.all = map[string]*shelved{}
	}
	l.all[name] = s
	return s, nil
}

// close gives the files back; no run may be left.
func (l *library) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	var errs []error
	for _, s := range l.all {
		errs = append(errs, s.close())
	}
	l.all = nil
	return errors.Join(errs...)
}
