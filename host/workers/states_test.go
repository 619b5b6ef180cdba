package workers

import (
	"bytes"
	"testing"

	"openskill/internal/musttest"
	"openskill/internal/state"
	"openskill/sdk/skill"
)

// memory is a state of n pages with a tag.
func memory(tag byte, n int) []byte {
	s := &state.State{Tag: state.Tag{tag}, Size: 1 << 20}
	for i := range n {
		s.Pages = append(s.Pages, uint32(i))
		s.Data = append(s.Data, bytes.Repeat([]byte{tag}, state.PageSize)...)
	}
	return s.Append(nil)
}

// TestStates: a call names the state that the worker has, and the reply has what differs. The host takes no state that is
// damaged, too large, or of no call.
func TestStates(t *testing.T) {
	t.Parallel()
	host, worker := &states{}, &states{}
	one, two := memory(1, 3), memory(2, 4)
	call := &wireCall{Call: skill.Call{Session: &skill.SessionState{Most: 1 << 20, State: one}}}
	if call.naming(host); call.State != len(one) || !worker.resolve(call) {
		t.Fatal("an unknown state is not sent")
	}
	w := &wireReply{}
	left := worker.left(w, &call.Call, &skill.Reply{State: two})
	if got := wholeState(w, &call.Call, left); !w.Patch || !bytes.Equal(got, two) {
		t.Error("the state of the reply is another one")
	}
	host.keep(state.TagOf(two), nil, len(two))
	next := &wireCall{Call: skill.Call{Session: &skill.SessionState{Most: 1 << 20, State: two}}}
	if next.naming(host); next.State != 0 {
		t.Error("a known state is sent")
	}
	next.Call.Session.State = nil // as it comes over
	if !worker.resolve(next) || !bytes.Equal(next.Call.Session.State, two) {
		t.Error("the worker does not find its state")
	}
	if next.Tag = (state.Tag{9}); worker.resolve(next) {
		t.Error("the worker finds a state that it has not")
	}

	given := &skill.Call{Session: &skill.SessionState{Most: uint64(len(one)), State: one}}
	diff := musttest.Get(state.Diff(one, two))(t)
	for name, c := range map[string]struct {
		call  *skill.Call
		patch bool
		sent  []byte
	}{
		"larger than the limit":   {given, true, diff},
		"a damaged state":         {given, false, one[:len(one)-1]},
		"a damaged difference":    {given, true, diff[:len(diff)-1]},
		"a difference to nothing": {&skill.Call{Session: &skill.SessionState{Most: 1 << 20}}, true, diff},
		"none":                    {given, false, nil},
	} {
		if got := wholeState(&wireReply{Patch: c.patch}, c.call, c.sent); got != nil {
			t.Errorf("%s: %d bytes", name, len(got))
		}
	}
	for i := range 3 * mostStates {
		worker.keep(state.Tag{1, byte(i), byte(i >> 8)}, nil, 1<<20)
	}
	if len(worker.list) > mostStates || worker.bytes > mostStateBytes {
		t.Errorf("%d states of %d bytes are kept", len(worker.list), worker.bytes)
	}
}
