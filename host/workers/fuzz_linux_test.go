package workers

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"testing"

	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// frameOf is a frame as it is on a channel.
func frameOf(k kind, call uint64, head, body string) []byte {
	b := binary.LittleEndian.AppendUint32(nil, uint32(frameHeader-4+len(head)+len(body)))
	b = append(b, byte(k))
	b = binary.LittleEndian.AppendUint64(b, call)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(head)))
	return append(append(b, head...), body...)
}

// echo answers what guests ask with what they ask.
type echo struct{}

func (echo) For(*skill.Call) skill.Fetch {
	return func(_ context.Context, request []byte) []byte { return request }
}

// FuzzWorkerSays lets a worker say anything while it has a call: what the host makes of
// it is an answer within the call's limits, or none.
func FuzzWorkerSays(f *testing.F) {
	ended := exec.Command(os.Args[0], "-test.run=^$")
	musttest.Do(f, ended.Run())
	reply := func(r *wireReply, body string) []byte { return frameOf(kindReply, 1, string(r.append(nil)), body) }
	_, all := filled(f)
	for _, say := range [][]byte{
		nil,
		reply(&wireReply{Stdout: 2, Stderr: 1, Files: []wireFile{{"a", 1}, {"b", 0}}, Usage: skill.Usage{Fuel: 1}}, "okef"),
		append(frameOf(kindRequest, 1, "7", "{}"), reply(&wireReply{Code: skill.Trap, Message: "m"}, "")...),
		reply(&wireReply{Refused: &Refusal{Code: skill.Conflict, Details: []byte(`{"a":[1,"x"]}`), Damaged: true}}, ""),
		reply(all, "text"),
		reply(&wireReply{Stdout: 2, Recorded: &wireRecording{Draws: 3, Seen: 11}, Differs: "at draw 1"}, "okdr\x01a\x06folder\x00\x00"),
		reply(&wireReply{Recorded: &wireRecording{Missing: "too much", More: true}}, ""),
		frameOf(kindAssigned, 1, `null`, ""),
		frameOf(kindHello, 0, `{"version":1}`, ""),
		{255, 255, 255, 255, byte(kindReply), 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
	} {
		f.Add(say)
	}
	f.Fuzz(func(t *testing.T, says []byte) {
		ours, theirs := net.Pipe()
		link, others, err := newLink()
		musttest.Do(t, err)
		for _, f := range others {
			_ = f.Close()
		}
		l := &lane{conn: ours}
		l.ch = newChannel(ours, l.most)
		w := &process{
			cmd: ended, link: link, ch: newChannel(link.conn, besideCalls), stderr: &tail{}, ended: make(chan struct{}),
			outgoing: echo{}, maxReply: 1 << 20, lanes: map[*lane]struct{}{l: {}}, free: []*lane{l},
		}
		w.life, w.died = context.WithCancel(t.Context())
		go func() { _, _ = io.Copy(io.Discard, theirs) }()
		go func() {
			_, _ = theirs.Write(says)
			_ = theirs.Close()
		}()
		go func() { w.end(&crashedError{why: "as when a process is reaped"}) }()
		call := &skill.Call{Limits: skill.Limits{Output: 1000, Scratch: 500, Fuel: 100}, Grants: skill.Grants{Scratch: true}, Record: 300, Replay: []byte("tape")}
		r, err := w.do(t.Context(), "wasm:test", call)
		answered(t, r, err, call)
	})
}

func answered(t *testing.T, r *skill.Reply, err error, call *skill.Call) {
	t.Helper()
	var e *skill.Error
	switch {
	case err != nil && r != nil:
		t.Errorf("both %+v and %v", r, err)
	case errors.As(err, &e) && (!trustedCode(e.Code) || len(e.Message) > skill.MaxMessage || e.Message != skill.CleanText(e.Message, skill.MaxMessage)):
		t.Errorf("%+v", e)
	case err != nil:
	case r.Code != "" && !trustedCode(r.Code), uint64(len(r.Stdout)) > call.Limits.Output, uint64(len(r.Stderr)) > call.Limits.Output,
		r.Usage.Fuel > call.Limits.Fuel, len(r.Message) > skill.MaxMessage:
		t.Errorf("%+v", r)
	case r.Recording != nil && (uint64(len(r.Recording.Draws)) > call.Record || len(r.Recording.Seen) > maxSeen || (r.Recording.Draws == nil) == (r.Recording.Missing == "")):
		t.Errorf("%+v", r.Recording)
	default:
		left, last := int(call.Limits.Scratch), ""
		for _, a := range r.Artifacts {
			if left -= len(a.Data); left < 0 || a.Name <= last || len(a.Name) > 255 {
				t.Errorf("%+v", r.Artifacts)
			}
			last = a.Name
		}
	}
}
