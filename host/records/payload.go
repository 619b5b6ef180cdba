package records

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"unicode/utf8"

	"openskill/sdk/skill"
)

// Policy says what records keep of inputs and outputs.
type Policy string

// The policies, from that which keeps least.
const (
	KeepNone     Policy = "none"     // sizes
	KeepHash     Policy = "hash"     // and SHA-256: whoever can guess a short input can tell that it was this one
	KeepRedacted Policy = "redacted" // and the shape with short values, but for what looks like a secret; the hash only where nothing was left out, since it would help to guess what was
	KeepFull     Policy = "full"     // all of it
)

// Known reports whether p is one of the policies.
func (p Policy) Known() bool {
	switch p {
	case KeepNone, KeepHash, KeepRedacted, KeepFull:
		return true
	}
	return false
}

// maxLooked is the size, in bytes, up to which a payload is looked through for what may
// be kept of it: a run waits for its record.
const maxLooked = 256 << 10

// Payload is what p keeps of data, with no more bytes of JSON than most. Data is what a
// caller or a skill wrote: JSON, or any bytes.
func (p Policy) Payload(data []byte, most int) Payload {
	out := Payload{Bytes: int64(len(data))}
	switch p {
	case KeepHash:
		out.SHA256 = sum(data)
	case KeepFull:
		out.SHA256 = sum(data)
		if len(data) > 0 {
			out.JSON, out.Truncated = whole(data, most)
		}
	case KeepRedacted:
		switch {
		case len(data) == 0:
			out.SHA256 = sum(data)
		case len(data) > maxLooked:
			out.Truncated = true
		default:
			var left bool
			out.JSON, left, out.Truncated = redacted(data, most)
			if !left && !out.Truncated {
				out.SHA256 = sum(data)
			}
		}
	case KeepNone:
	}
	return out
}

func sum(data []byte) string {
	s := sha256.Sum256(data)
	return hex.EncodeToString(s[:])
}

// whole is data as JSON that every database takes. The hash is that of data as it came.
func whole(data []byte, most int) (kept json.RawMessage, truncated bool) {
	if len(data) > most {
		return nil, true
	}
	if !utf8.Valid(data) {
		data = bytes.ToValidUTF8(data, []byte("\uFFFD"))
	}
	if !json.Valid(data) {
		data, _ = json.Marshal(string(data)) // a string can always be written
	}
	if len(data) > most {
		return nil, true
	}
	return bytes.Clone(data), false
}

// message is what p keeps of what the host says of an error: what looks like a secret is
// left out, since it may repeat a name that a caller or a skill chose.
func (p Policy) message(s string) string {
	if p != KeepFull {
		s = scrub(s)
	}
	return skill.CleanText(s, skill.MaxMessage)
}

// mostListed is how many bytes of JSON a record has of artifacts: a guest chooses their
// number and their names.
const mostListed = 16 << 10

// artifacts are files' names, sizes and hashes as p keeps them, the first of them, and what
// stands for the others. A name is a guest's word.
func (p Policy) artifacts(all []ArtifactInfo) ([]ArtifactInfo, *Unlisted) {
	all = p.named(all)
	size := 2
	for i := range all {
		one, _ := json.Marshal(&all[i]) // text and numbers can always be written
		if size += len(one) + 1; size <= mostListed {
			continue
		}
		whole, _ := json.Marshal(all)
		left := &Unlisted{Count: len(all) - i, SHA256: sum(whole)}
		for _, a := range all[i:] {
			left.Bytes += a.Size
		}
		return all[:i], left
	}
	return all, nil
}

func (p Policy) named(all []ArtifactInfo) []ArtifactInfo {
	if p == KeepFull || len(all) == 0 {
		return all
	}
	kept := make([]ArtifactInfo, len(all))
	for i, a := range all {
		kept[i] = ArtifactInfo{Name: scrub(a.Name), Size: a.Size}
		if p == KeepHash {
			kept[i].SHA256 = a.SHA256
		}
	}
	return kept
}
