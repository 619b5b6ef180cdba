package workers

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"openskill/sdk/skill"
)

var sum = strings.Repeat("ab", 32)

// TestRecordingsComeOver holds that a recording is on the other side what it was here, and
// so is what a replay is given.
func TestRecordingsComeOver(t *testing.T) {
	call := &skill.Call{
		Stdin: []byte("in"), Replay: []byte("tape"), Record: 100,
		Limits: skill.Limits{Output: 100, Scratch: 100}, Grants: skill.Grants{Scratch: true},
	}
	for name, c := range map[string]*skill.Call{"with a replay": call, "with none": {Stdin: []byte("in")}, "with an empty one": {Replay: []byte{}}} {
		sent := &wireCall{Call: *c}
		if c.Replay != nil {
			sent.Replay = len(c.Replay) + 1
		}
		var got wireCall
		err := got.read(sent.append(nil))
		if err == nil {
			err = got.cut(sent.body())
		}
		if err != nil || string(got.Call.Stdin) != string(c.Stdin) || (got.Call.Replay == nil) != (c.Replay == nil) || string(got.Call.Replay) != string(c.Replay) {
			t.Errorf("%s: %+v, %v", name, got.Call, err)
		}
	}
	for name, r := range map[string]*skill.Recording{
		"whole": {Draws: []byte("draws"), Seen: []skill.Seen{
			{Path: ".", Kind: skill.SeenFolder}, {Path: "a", Kind: skill.SeenFile, Size: 5, SHA256: sum}, {Path: "b/c", Kind: skill.SeenMissing},
		}},
		"kept nothing": {Missing: "it was too much", More: true},
	} {
		t.Run(name, func(t *testing.T) {
			want := &skill.Reply{
				Stdout: []byte("out"), Stderr: []byte("err"), Artifacts: []skill.Artifact{{Name: "f", Data: []byte("data"), Size: 4}},
				Recording: r, Differs: "at draw 7",
			}
			head, body := encodeReply(&skill.Call{}, want, &states{})
			got, refused, err := decodeReply(&frame{head: head.append(nil), body: body}, call)
			if diff := cmp.Diff(want, got); diff != "" || refused != nil || err != nil {
				t.Errorf("%v, %v %s", refused, err, diff)
			}
			// What a process says that records though nobody asked it to is no reply.
			for what, other := range map[string]skill.Call{"no recording asked for": {Replay: call.Replay}, "no replay": {Record: 100}} {
				other.Limits, other.Grants = call.Limits, call.Grants
				if _, _, err := decodeReply(&frame{head: head.append(nil), body: body}, &other); !errors.Is(err, errFrame) {
					t.Errorf("%s: %v", what, err)
				}
			}
		})
	}
}

// TestRecordingsOfAnybody holds what is not taken for a recording.
func TestRecordingsOfAnybody(t *testing.T) {
	call := &skill.Call{Record: 10, Limits: skill.Limits{Output: 100}}
	file := skill.Seen{Path: "a", Kind: skill.SeenFile, SHA256: sum}
	with := func(change func(s *skill.Seen)) *skill.Recording {
		s := file
		change(&s)
		return &skill.Recording{Draws: []byte("d"), Seen: []skill.Seen{s}}
	}
	if _, _, err := answer(with(func(*skill.Seen) {}), call); err != nil {
		t.Fatal(err)
	}
	many := make([]skill.Seen, maxSeen+1)
	for i := range many {
		many[i] = skill.Seen{Path: strings.Repeat("a", i+1), Kind: skill.SeenFolder}
	}
	for name, r := range map[string]*skill.Recording{
		"more draws than asked for": {Draws: make([]byte, 11)},
		"neither draws nor why":     {},
		"both":                      {Draws: []byte("d"), Missing: "why"},
		"a path out of the folder":  with(func(s *skill.Seen) { s.Path = "../a" }),
		"an absolute path":          with(func(s *skill.Seen) { s.Path = "/a" }),
		"a path with a NUL":         with(func(s *skill.Seen) { s.Path = "a\x00" }),
		"a long path":               with(func(s *skill.Seen) { s.Path = strings.Repeat("a", 4097) }),
		"no path":                   with(func(s *skill.Seen) { s.Path = "" }),
		"no kind":                   with(func(s *skill.Seen) { s.Kind = "socket" }),
		"a size below zero":         with(func(s *skill.Seen) { s.Size = -1 }),
		"half a digest":             with(func(s *skill.Seen) { s.SHA256 = sum[:62] }),
		"a digest in capitals":      with(func(s *skill.Seen) { s.SHA256 = strings.ToUpper(sum) }),
		"no digest":                 with(func(s *skill.Seen) { s.SHA256 = "x" }),
		"twice":                     {Draws: []byte("d"), Seen: []skill.Seen{file, file}},
		"too many":                  {Draws: []byte("d"), Seen: many},
	} {
		t.Run(name, func(t *testing.T) {
			if got, refused, err := answer(r, call); !errors.Is(err, errFrame) {
				t.Errorf("%+v, %v, %v", got, refused, err)
			}
		})
	}
}

func answer(r *skill.Recording, call *skill.Call) (*skill.Reply, error, error) {
	head, body := encodeReply(&skill.Call{}, &skill.Reply{Recording: r}, &states{})
	return decodeReply(&frame{head: head.append(nil), body: body}, call)
}

// decodeReply reads a frame with a reply to a call.
func decodeReply(f *frame, call *skill.Call) (reply *skill.Reply, refused, err error) {
	var w wireReply
	if err := w.read(f.head); err != nil {
		return nil, nil, err
	}
	return w.reply(f, call)
}
