package sandbox

import (
	"bytes"
	"fmt"
	"io"

	"openskill/sdk/skill"
	"openskill/wasm"
	"openskill/wasm/guestfs"
	"openskill/wasm/tape"
)

// taped is a run that is recorded, or made again from a recording. It begins in an image
// that is known: the start-up of any other one saw another clock and other chance.
type taped struct {
	record *tape.Recorder // nil: it is made again
	replay *tape.Player
	most   uint64
	start  wasm.Start
	of     string // the module
	once   bool   // all of the recorded run was its own
}

// tapeOf is nil for a call that is neither. of is the module that it runs. The error is a
// *skill.Error.
func tapeOf(call *skill.Call, of string) (*taped, error) {
	switch {
	case call.Replay != nil:
		p, err := tape.Open(call.Replay)
		if err != nil {
			return nil, &skill.Error{
				Op: "sandbox.Replay", Code: skill.InvalidArgument, Subject: "recording", Err: err,
				Message: "the recording is damaged or from another openSkill version",
			}
		}
		s := p.Start()
		return &taped{replay: p, start: wasm.Start{Seed: s.Seed, Made: s.Made}, of: of, once: !s.Shared}, nil
	case call.Record > 0:
		return &taped{record: tape.NewRecorder(call.Record), most: call.Record, of: of}, nil
	}
	return nil, nil
}

// other is the reply to a replay of what another module was recorded of: a runtime that
// was replaced since, and with it all that its programs do. nil: it is the same.
func (t *taped) other() *skill.Reply {
	if t == nil || t.replay == nil || t.replay.Start().Of == t.of {
		return nil
	}
	differs := "the module or its language runtime differs from the recorded one"
	return &skill.Reply{Code: skill.Conflict, Message: "this is not the run that was recorded: " + differs, Differs: differs}
}

// whole is all that a call reads, at once: how much of a stream has come when a guest
// asks is chance, too.
func (s *Start) whole(call *skill.Call) io.Reader {
	if s.Head == nil {
		return bytes.NewReader(call.Stdin)
	}
	return bytes.NewReader(append(s.Head[:len(s.Head):len(s.Head)], call.Stdin...))
}

// note says in the reply what became of the recording. saw is what the run has seen;
// nil: nobody has watched.
func (t *taped) note(r *skill.Reply, out *wasm.Outcome, saw *skill.Recording) {
	if t.replay != nil {
		if err := t.replay.Err(); err != nil {
			r.Differs = err.Error()
		} else if err := t.replay.Over(); err != nil && (out.Ended == wasm.Returned || out.Ended == wasm.Exited) {
			r.Differs = err.Error()
		}
		if out.Ended == wasm.Diverged {
			r.Message += ": " + r.Differs
		}
		return
	}
	if r.Recording = saw; saw == nil {
		r.Recording = &skill.Recording{}
	}
	draws, fits := t.record.Tape(tape.Start{Of: t.of, Shared: out.Shared, Seed: t.start.Seed, Made: t.start.Made})
	switch {
	case !timeless(out.Ended):
		r.Recording.Missing = "the run was ended by its timeout, so it cannot be reproduced"
	case !fits:
		r.Recording.Missing = fmt.Sprintf("the recorded time, randomness and network data exceed %d bytes", t.most)
	default:
		r.Recording.Draws = draws
	}
}

// timeless reports whether a run that ended so ends so again.
func timeless(e wasm.Ended) bool { return e != wasm.OutOfTime && e != wasm.Cancelled }

// viewRoot is the root of an instance, which knows what the instance sees.
type viewRoot struct {
	*guestfs.Tree

	view *View
}

// viewOf finds what an instance sees; nil: it has not been told.
func viewOf(f wasm.Files) *View {
	if r, ok := f.Root.(viewRoot); ok {
		return r.view
	}
	return nil
}
