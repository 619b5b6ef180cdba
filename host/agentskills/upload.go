package agentskills

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"sync"

	"openskill/host/manifest"
	"openskill/sdk/skill"
)

// Upload is a version of an uploaded Agent Skill: its files never change.
type Upload struct {
	Folder  string // absolute
	Digest  string
	Version string
	Owner   string // the tenant that uploaded it
	Shared  bool   // visible to all tenants
}

// unversioned begins the version of a skill whose SKILL.md has none.
const unversioned = "0.0.0-sha"

// short is a version of one or two numbers.
var short = regexp.MustCompile(`^(0|[1-9][0-9]*)(\.(0|[1-9][0-9]*))?$`)

// ReadUpload reads the folder of an uploaded Agent Skill as a version of a skill. The version is metadata.version of
// its SKILL.md (1.0 is 1.0.0); without a valid one, it is made of the digest. The skill is nil if there are problems,
// whose files are named relative to the folder.
func ReadUpload(folder string, o manifest.Options) (*manifest.Skill, []manifest.Problem) {
	options, err := (*FileOptions)(nil).complete()
	if err != nil {
		return nil, []manifest.Problem{{File: FileName, Message: err.Error()}}
	}
	f := readUpload(folder, options)
	if f.read == nil {
		return nil, f.skipped
	}
	front, digest := f.read.front, f.read.digest
	version := front.Metadata["version"]
	if short.MatchString(version) {
		version += strings.Repeat(".0", 2-strings.Count(version, ".")) // 1.0 is common
	}
	if !manifest.ValidVersion(version) {
		version = unversioned + strings.TrimPrefix(digest, "sha256:")[:12]
	}
	limits := o.Defaults.Lower(o.Caps)
	return &manifest.Skill{
		Folder: folder, Limits: limits, Primary: skill.Target{Kind: skill.Agentic, Entry: FileName},
		Descriptor: skill.Descriptor{
			ID: skill.ID(front.Name), Version: version, Description: front.Description, Runner: skill.Agentic, Digest: digest, Enabled: true,
			Limits: limits.JSON(), InputSchema: []byte(`{"type":"object"}`), OutputSchema: []byte(`{"type":"object"}`),
		},
	}, nil
}

// readUpload reads a folder that is not named after its skill.
func readUpload(at string, o *FileOptions) *folder {
	return readFolder(place{dir: at, shown: ".", root: &Root{Path: at}, uploaded: true}, o)
}

// uploads is a source of uploads.
type uploads struct {
	changes func() uint64
	list    func() (all []Upload, whole bool)
	options *FileOptions

	mu    sync.Mutex
	at    uint64
	known map[Upload]*FileSkill
	given []Skill
}

func newUploads(changes func() uint64, list func() (all []Upload, whole bool), o *FileOptions) (Source, error) {
	c, err := o.complete()
	if err != nil {
		return nil, err
	}
	return &uploads{changes: changes, list: list, options: c, known: map[Upload]*FileSkill{}}, nil
}

func (u *uploads) Skills(ctx context.Context) ([]Skill, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	at := u.changes() // before they are read
	if at == u.at {
		return slices.Clone(u.given), nil
	}
	versions, whole := u.list()
	known, given := map[Upload]*FileSkill{}, []Skill{}
	for _, v := range versions {
		s := u.known[v]
		if s == nil {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			f := readUpload(v.Folder, u.options)
			if f.read == nil || f.read.digest != v.Digest {
				whole = false // the catalogue fetches its files again
				continue
			}
			s = f.read
			s.upload, s.owner, s.pulled, s.young = &v, v.Owner, true, false
		}
		known[v] = s
		given = append(given, s)
	}
	if !whole {
		at = u.at // they are read again at the next look
	}
	u.at, u.known, u.given = at, known, given
	return slices.Clone(given), nil
}

// Upload returns the version that the skill is, or nil if it was not uploaded.
func (s *FileSkill) Upload() *Upload { return s.upload }

// GrantName is the name under which the operator allows the scripts of the skill something. It contains the tenant of
// an upload, because tenants may have skills of one name.
func (s *FileSkill) GrantName() string {
	if s.upload != nil {
		return s.upload.Owner + "/" + s.front.Name
	}
	return s.front.Name
}

// claimant returns the namespace of a skill's name: each tenant has its own.
func claimant(s Skill) string {
	_, _, owner := origin(s)
	if f, ok := s.(*FileSkill); ok && f.upload != nil && f.upload.Shared {
		owner = "shared\x00" + owner // no tenant has this name
	}
	return owner
}
