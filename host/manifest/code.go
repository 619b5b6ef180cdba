package manifest

import (
	_ "embed"
	"fmt"

	"openskill/internal/digest"
	"openskill/sdk/skill"
)

// codeManifest is the manifest of run_code.
//
//go:embed code.yaml
var codeManifest []byte

// addCode adds run_code. Its trust is community, because callers write the code. Its folder is empty.
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
