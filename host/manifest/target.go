package manifest

import "openskill/sdk/skill"

// ReadTarget says what a manifest of strangers starts with, for those who have a
// module and its manifest and must put them into a folder first. Only Packages of o
// matters. The problems are those of the text alone; see [ReadFolder] for the rest.
func ReadTarget(manifest []byte, o Options) (skill.Target, []Problem) {
	m, problems := parseManifest(ManifestFile, manifest, skill.Community, o.Packages)
	if m == nil || len(problems) > 0 {
		return skill.Target{}, problems
	}
	return m.primary, nil
}
