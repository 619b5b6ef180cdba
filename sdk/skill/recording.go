package skill

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
)

// Recording is what a run was given that its next one would not be given again: what it
// takes to make the run once more, with the same end, beside the skill and its input.
type Recording struct {
	// Draws are clocks, chance and answers from the network, in the form of the runner
	// that made them; [Call].Replay takes them. nil: they were not kept.
	Draws   []byte
	Missing string // why there are no Draws, for people; "" where there are
	// Seen is what the run looked at in the folder of data, in order of path.
	Seen []Seen
	More bool // it looked at more than Seen has
}

// Seen is one thing in the folder of data, as a run saw it.
type Seen struct {
	Path string   `json:"path"` // below the folder, with slashes; "." is the folder itself
	Kind SeenKind `json:"kind"`
	Size int64    `json:"size,omitempty"` // bytes, of a file
	// SHA256 is that of a file's content or, by [ListingDigest], of what a folder lists,
	// in hexadecimal; "" where neither was looked at, or where it was too much.
	SHA256 string `json:"sha256,omitempty"`
}

// SeenKind is the kind of what a run looked at.
type SeenKind string

// The kinds of what a run looks at.
const (
	SeenFile    SeenKind = "file"
	SeenFolder  SeenKind = "folder"
	SeenMissing SeenKind = "missing" // there was nothing of that name
)

// Valid reports whether k is one of the kinds.
func (k SeenKind) Valid() bool { return k == SeenFile || k == SeenFolder || k == SeenMissing }

// ListingDigest tells one listing of a folder from another, by the names in it; those of
// folders have a slash at their end. It sorts them.
func ListingDigest(names []string) string {
	slices.Sort(names)
	h := sha256.New()
	for _, n := range names {
		h.Write([]byte(n))
		h.Write([]byte{0}) // in no name
	}
	return hex.EncodeToString(h.Sum(nil))
}
