package manifest

import (
	"path/filepath"

	"openskill/sdk/skill"
)

// Origins decides whose the folders of skills are, for skills with a manifest and for Agent
// Skills alike. It reads each file once: make one for each look at the folders, after which
// a record that was made before a folder is found with it. It is for one goroutine.
//
// A folder that was pulled, or lies in one, is a stranger's. Trusted are:
//   - folders that the operator named, as they were then: [Trust];
//   - pulled folders whose entry in the lock file says so, by the key that it was verified
//     with, as long as they are as they were pulled;
//   - other folders below the operator's roots, unless a mark of origin is in them or in a
//     folder above.
//
// A damaged lock file makes strangers' of all folders beside it and below them.
type Origins struct {
	named  *Named
	broken error
	locks  map[string]locked
	marks  map[string]bool
	sums   map[string]string // digests of folders above
}

type locked struct {
	file *Lock
	err  error
}

// NewOrigins begins a look. stateDir has what the operator trusts by name; "": nothing.
func NewOrigins(stateDir string) *Origins {
	o := &Origins{locks: map[string]locked{}, marks: map[string]bool{}, sums: map[string]string{}}
	o.named, o.broken = ReadNamed(stateDir)
	return o
}

// Problems says why nothing is trusted by name; nil where that is not so.
func (o *Origins) Problems() []Problem {
	if o.broken == nil {
		return nil
	}
	return []Problem{{File: NamedFile, Message: o.broken.Error() + "; no skill is trusted by name until it is fixed"}}
}

// Origin is whose a folder is.
type Origin struct {
	Trust  skill.Trust
	Pulled bool // it came from elsewhere, whatever its trust: the operator's own skills win over it
	// Changed says that the folder, or one above, is not as it was pulled: it is not served.
	Changed bool
}

// Of says whose a folder is. The path is absolute and leads through no links, most is the
// trust of its root, and digest gives [Digest] of the folder, "" where it has none.
func (o *Origins) Of(folder string, most skill.Trust, digest func() string) Origin {
	is := Origin{Trust: most}
	for at := folder; at != filepath.Dir(at); at = filepath.Dir(at) {
		beside := o.lock(filepath.Dir(at))
		if beside.err != nil {
			is.Trust, is.Pulled = skill.Community, true
			continue
		}
		e := beside.file.Skills[skill.ID(filepath.Base(at))]
		switch {
		case e != nil:
			now := digest
			if at != folder {
				now = func() string { return o.sum(at) }
			}
			if now() != e.Digest {
				return Origin{Trust: skill.Community, Pulled: true, Changed: true}
			}
			is.Pulled = true
			if e.Key == "" { // nobody vouched for it
				is.Trust = skill.Community
			}
			is.Trust = min(is.Trust, e.Trust)
		case o.marked(at):
			is.Trust, is.Pulled = skill.Community, true
		}
	}
	if is.Trust < most && o.named.Has(digest()) {
		is.Trust = most
	}
	return is
}

// IsSkill reports whether a folder is that of a skill: by its manifest, or because it was
// pulled. What is in the folder of a skill belongs to it, and is not a separate skill.
func (o *Origins) IsSkill(folder string) bool {
	if Manifest(folder) != "" || o.marked(folder) {
		return true
	}
	beside := o.lock(filepath.Dir(folder))
	return beside.err == nil && beside.file.Skills[skill.ID(filepath.Base(folder))] != nil
}

func (o *Origins) lock(dir string) locked {
	is, known := o.locks[dir]
	if !known {
		is.file, is.err = ReadLock(dir)
		o.locks[dir] = is
	}
	return is
}

func (o *Origins) marked(dir string) bool {
	is, known := o.marks[dir]
	if !known {
		is = Marked(dir)
		o.marks[dir] = is
	}
	return is
}

func (o *Origins) sum(dir string) string {
	is, known := o.sums[dir]
	if !known {
		is, _ = Digest(dir) // a folder without one is not as it was pulled
		o.sums[dir] = is
	}
	return is
}
