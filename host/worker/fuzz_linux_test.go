package worker

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"testing"

	"openskill/sdk/skill"
)

// frameOf is a frame as it is on a channel.
func frameOf(k kind, call uint64, head, body string) []byte {
	b := binary.LittleEndian.AppendUint32(nil, uint32(frameHeader-4+len(head)+len(body))) //nolint:gosec // a test
	b = append(b, byte(k))
	b = binary.LittleEndian.AppendUint64(b, call)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(head))) //nolint:gosec // a test
	return append(append(b, head...), body...)
}

// echo answers what guests ask with what they ask.
type echo struct{}

func (echo) For(*skill.Call) skill.Fetch {
	return func(_ context.Context, request []byte) []byte { return request }
}

// FuzzWorkerSays lets a worker say anything while it has two calls: what the host makes
// of it is an answer to each within the call's limits, or none.
func FuzzWorkerSays(f *testing.F) {
	ended := exec.Command(os.Args[0], "-test.run=^$") //nolint:gosec,noctx // this program; a process that is killed again and again
	if err := ended.Run(); err != nil {
		f.Fatal(err)
	}
	for _, say := range [][]byte{
		nil,
		frameOf(kindReply, 1, `{"stdout":2,"stderr":1,"files":[{"name":"a","size":1},{"name":"b","size":0}],"usage":{"Fuel":1}}`, "okef"),
		append(frameOf(kindRequest, 1, "7", "{}"), frameOf(kindReply, 1, `{"code":"TRAP","message":"m"}`, "")...),
		frameOf(kindReply, 1, `{"refused":{"code":"CONFLICT","details":{"a":[1,"x"]},"uncompiled":"sha256:00"}}`, ""),
		append(frameOf(kindAssigned, 2, `null`, ""), frameOf(kindReply, 2, `{}`, "")...),
		frameOf(kindHello, 0, `{"version":1}`, ""),
		{255, 255, 255, 255, byte(kindReply), 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
	} {
		f.Add(say)
	}
	f.Fuzz(func(t *testing.T, says []byte) {
		ours, theirs := net.Pipe()
		w := &process{cmd: ended, conn: ours, stderr: &tail{}, ended: make(chan struct{}), outgoing: echo{}, maxReply: 1 << 20, pending: map[uint64]*pending{}}
		close(w.ended)
		w.ch = newChannel(ours, w.most)
		call := &skill.Call{Limits: skill.Limits{Output: 1000, Scratch: 500, Fuel: 100}, Grants: skill.Grants{Scratch: true}}
		all := map[uint64]*pending{}
		for id := range uint64(2) {
			all[id+1] = &pending{call: call, most: mostOf(call, w.maxReply), reply: make(chan *frame, 1), ctx: t.Context()}
			w.pending[id+1] = all[id+1]
		}
		go func() { _, _ = io.Copy(io.Discard, theirs) }()
		go func() {
			_, _ = theirs.Write(says)
			_ = theirs.Close()
		}()
		w.read()
		_ = ours.Close()
		for id, p := range all {
			select {
			case f, ok := <-p.reply:
				if ok {
					answered(t, id, f, call)
				}
			default:
			}
		}
	})
}

func answered(t *testing.T, id uint64, f *frame, call *skill.Call) {
	t.Helper()
	r, err := decodeReply(f, call)
	var e *skill.Error
	switch {
	case err != nil && r != nil:
		t.Errorf("call %d: both %+v and %v", id, r, err)
	case errors.As(err, &e) && (!believed(e.Code) || len(e.Message) > skill.MaxMessage || e.Message != skill.CleanText(e.Message, skill.MaxMessage)):
		t.Errorf("call %d: %+v", id, e)
	case err != nil:
	case r.Code != "" && !believed(r.Code), uint64(len(r.Stdout)) > call.Limits.Output, uint64(len(r.Stderr)) > call.Limits.Output,
		r.Usage.Fuel > call.Limits.Fuel, len(r.Message) > skill.MaxMessage:
		t.Errorf("call %d: %+v", id, r)
	default:
		left, last := int(call.Limits.Scratch), "" //nolint:gosec // small
		for _, a := range r.Artifacts {
			if left -= len(a.Data); left < 0 || a.Name <= last || len(a.Name) > 255 {
				t.Errorf("call %d: %+v", id, r.Artifacts)
			}
			last = a.Name
		}
	}
}
