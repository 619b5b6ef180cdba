package manifest

import (
	"os"
	"path/filepath"

	"openskill/internal/safeyaml"
	"openskill/sdk/skill"
)

// Validate reads one folder as a trusted skill, or as one with a list or with flat manifests,
// and reports every problem; none means that a host would serve it. A file to be built may be
// missing. Warnings name the defaults for missing keys. Only CLIDir and
// Packages of o matter.
func Validate(folder string, o Options) (problems, warnings []Problem) {
	target, err := realFolder(folder)
	if err != nil {
		return []Problem{{folder, 0, plain(err)}}, nil
	}
	flat := flatIn(target)
	if Manifest(target) != "" || !exists(target, ListFile) && len(flat) == 0 {
		m, _, _, problems := readFolder(target, folder, o.Packages, false, as(skill.Trusted))
		if m != nil {
			warnings = o.warnings(m, target, filepath.Join(folder, Manifest(target)))
		}
		return problems, warnings
	}
	for _, name := range flat {
		file := filepath.Join(folder, name)
		m, more := readFlat(target, name, file, skill.Trusted, o.Packages)
		problems = append(problems, more...)
		if m != nil {
			warnings = append(warnings, o.warnings(m, filepath.Join(target, string(m.id)), file)...)
		}
	}
	if !exists(target, ListFile) {
		return problems, warnings
	}
	file := filepath.Join(folder, ListFile)
	root, err := os.OpenRoot(target)
	if err != nil {
		return append(problems, Problem{file, 0, plain(err)}), warnings
	}
	defer root.Close()
	src, err := readSmall(root, ListFile, safeyaml.MaxBytes)
	if err != nil {
		return append(problems, Problem{file, 0, plain(err)}), warnings
	}
	_, more := parseList(file, src, skill.Trusted, o.Packages)
	return append(problems, more...), warnings
}

// warnings says what a host assumes of a manifest whose code is in a folder, or in the CLI
// folder.
func (o *Options) warnings(m *manifest, folder, file string) []Problem {
	if name, ok := o.inCLIFolder(m.primary); ok && !exists(folder, m.primary.Entry) {
		folder, m.primary.Entry = o.CLIDir, name
	}
	m.describe(folder, file)
	return m.warnings
}
