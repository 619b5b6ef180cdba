package workers

import (
	"encoding/binary"
	"encoding/hex"
	"io/fs"
	"strings"

	"openskill/sdk/skill"
)

// maxSeen bounds what a run is said to have seen, in things and in bytes of their names;
// runners keep less.
const (
	maxSeen      = 4096
	maxSeenBytes = 1 << 20
)

// recordedOf is what a recording is on its way: what says how much there is, and that.
func recordedOf(r *skill.Recording) (*wireRecording, []byte, []byte) {
	w := &wireRecording{Missing: r.Missing, More: r.More}
	if r.Draws != nil {
		w.Draws = len(r.Draws) + 1
	}
	seen := appendSeen(nil, r.Seen)
	w.Seen = len(seen)
	return w, r.Draws, seen
}

func appendSeen(b []byte, list []skill.Seen) []byte {
	for _, s := range list {
		b = appendText(b, s.Path)
		b = appendText(b, s.Kind)
		b = binary.AppendVarint(b, s.Size)
		b = appendText(b, s.SHA256)
	}
	return b
}

// readSeen takes what a run has seen as a process that may be anybody's says it: paths
// that a folder can have, in their order.
func readSeen(b []byte) ([]skill.Seen, bool) {
	if len(b) > maxSeenBytes {
		return nil, false
	}
	r := reader{b: b}
	var list []skill.Seen
	last := ""
	for len(r.b) > 0 && !r.bad {
		s := skill.Seen{Path: r.text(), Kind: skill.SeenKind(r.text()), Size: r.signed(), SHA256: r.text()}
		sum, err := hex.DecodeString(s.SHA256)
		switch {
		case r.bad, s.Path <= last, len(list) == maxSeen, len(s.Path) > 4096, !fs.ValidPath(s.Path), strings.ContainsRune(s.Path, 0),
			!s.Kind.Valid(), s.Size < 0, err != nil, len(sum) != 0 && len(sum) != 32, s.SHA256 != strings.ToLower(s.SHA256):
			return nil, false
		}
		last = s.Path
		list = append(list, s)
	}
	return list, !r.bad
}

// recording gives what cut has of a recording, and whether that is one of the call's.
func (w *wireRecording) recording(call *skill.Call, cut func(n int, most uint64) []byte) (*skill.Recording, bool) {
	r := &skill.Recording{Missing: skill.CleanText(w.Missing, skill.MaxMessage), More: w.More}
	n := max(w.Draws-1, 0)
	draws := cut(n, call.Record)
	seen := cut(w.Seen, maxSeenBytes)
	if call.Record == 0 || len(draws) != n || len(seen) != w.Seen {
		return nil, false
	}
	if w.Draws > 0 {
		r.Draws = draws
	}
	list, ok := readSeen(seen)
	r.Seen = list
	return r, ok && (r.Draws == nil) == (r.Missing != "")
}
