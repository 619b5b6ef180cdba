package manifest

import "openskill/sdk/skill"

// ReadFolder reads one folder with a skill.yaml as a skill of strangers: its trust
// is community, and all that the manifest starts with must be there, because
// nobody will build it. Only Defaults, Caps and Packages of o matter. The skill is
// nil if there are problems, whose files are named relative to the folder.
func ReadFolder(folder string, o Options) (*Skill, []Problem) {
	return ReadFolderAs(skill.Community, folder, o)
}

// ReadFolderAs is [ReadFolder] of a skill that somebody vouches for: a trusted one may
// have what only trusted skills may.
func ReadFolderAs(trust skill.Trust, folder string, o Options) (*Skill, []Problem) {
	if err := o.check(); err != nil {
		return nil, []Problem{{File: ManifestFile, Message: err.Error()}}
	}
	target, err := realFolder(folder)
	if err != nil {
		return nil, []Problem{{File: ManifestFile, Message: plain(err)}}
	}
	m, digest, sums, problems := readFolder(target, ".", o.Packages, true, as(trust))
	if m == nil || len(problems) > 0 {
		return nil, problems
	}
	s := o.build(m, target, digest, trust)
	s.keepSums(sums)
	return s, nil
}
