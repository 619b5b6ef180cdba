package workers

import (
	"slices"
	"sync"

	"openskill/internal/state"
	"openskill/sdk/skill"
)

// A worker keeps the states of sessions that it has made, or was given, last. A call names its state by the tag, if the
// host thinks that the worker has it, and the reply has only what differs from it.

// The most that a worker keeps of states.
const (
	mostStates     = 64
	mostStateBytes = 64 << 20
)

// states are those that a worker keeps, or of which the host thinks so. It is safe for concurrent use.
type states struct {
	mu    sync.Mutex
	list  []keptState // the last used last
	bytes int
}

type keptState struct {
	tag  state.Tag
	data []byte // nil at the host
	size int
}

// keep notes a state. The host has no data.
func (s *states) keep(tag state.Tag, data []byte, size int) {
	if size > mostStateBytes || tag == (state.Tag{}) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(tag)
	s.list, s.bytes = append(s.list, keptState{tag, data, size}), s.bytes+size
	for len(s.list) > mostStates || s.bytes > mostStateBytes {
		s.drop(s.list[0].tag)
	}
}

// drop forgets a state. s.mu is held.
func (s *states) drop(tag state.Tag) {
	if i := s.find(tag); i >= 0 {
		s.bytes -= s.list[i].size
		s.list = slices.Delete(s.list, i, i+1)
	}
}

// find returns the index of a state, or -1. s.mu is held.
func (s *states) find(tag state.Tag) int {
	return slices.IndexFunc(s.list, func(k keptState) bool { return k.tag == tag })
}

// has returns the data of a state, and whether it is kept.
func (s *states) has(tag state.Tag) (data []byte, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.find(tag)
	if i < 0 {
		return nil, false
	}
	return s.list[i].data, true
}

// forget forgets a state.
func (s *states) forget(tag state.Tag) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(tag)
}

// naming has a call of a session name its state, if the worker has it, and send it otherwise.
func (w *wireCall) naming(has *states) {
	if w.Call.Session == nil {
		return
	}
	given := w.Call.Session.State
	w.Tag = state.TagOf(given)
	if _, ok := has.has(w.Tag); !ok {
		w.State = len(given)
	}
}

// resolve gives a call the state that it names. It reports false if the worker has it no more.
func (s *states) resolve(w *wireCall) bool {
	switch c := w.Call.Session; {
	case c == nil || w.Tag == (state.Tag{}):
	case w.State > 0:
		s.keep(w.Tag, c.State, len(c.State))
	default:
		data, ok := s.has(w.Tag)
		c.State = data
		return ok
	}
	return true
}

// left notes the state that a call leaves, and returns what the reply has of it.
func (s *states) left(w *wireReply, call *skill.Call, reply *skill.Reply) []byte {
	if reply.State == nil {
		return nil
	}
	s.keep(state.TagOf(reply.State), reply.State, len(reply.State))
	if call.Session != nil && call.Session.State != nil {
		s.forget(state.TagOf(call.Session.State)) // the next call has the new one
		if diff, err := state.Diff(call.Session.State, reply.State); err == nil {
			w.Patch = true
			return diff
		}
	}
	return reply.State
}

// wholeState returns the state of a reply, or nil if it is none of the call.
func wholeState(w *wireReply, call *skill.Call, sent []byte) []byte {
	if sent == nil {
		return nil
	}
	if !w.Patch {
		if _, err := state.Read(sent); err != nil {
			return nil
		}
		return sent
	}
	if call.Session.State == nil {
		return nil
	}
	next, err := state.Patch(call.Session.State, sent)
	if err != nil || uint64(len(next)) > call.Session.Most {
		return nil
	}
	return next
}
