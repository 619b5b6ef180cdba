package manifest

import (
	_ "embed"
	"fmt"

	"openskill/internal/digest"
	"openskill/sdk/skill"
)

// codeManifest is that of the skill that runs the code of its callers.
//
//go:embed code.yaml
var codeManifest []byte

// addCode adds the skill that runs the code of its callers: community, since it is theirs. Its
// folder has no files.
func (r *Registry) addCode(o *Options) {
	if o.Code == "" {
		return
	}
	const place = "openSkill"
	m, problems := parseManifest(place, codeManifest, skill.Community, nil)
	if m == nil {
		panic(fmt.Sprint("manifest: run_code: ", problems)) // it is part of the program
	}
	s := o.build(m, o.Code, digest.Of(codeManifest), skill.Community)
	s.Code = true
	r.add(s, place, false)
}
