package manifest

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"gopkg.in/yaml.v3"

	"openskill/internal/safeyaml"
	"openskill/sdk/skill"
)

// isFlat reports whether an entry of a root may be the manifest of one skill, {id}.yaml or
// {id}.json.
func isFlat(e fs.DirEntry) bool {
	name, ext := strings.TrimSuffix(e.Name(), path.Ext(e.Name())), path.Ext(e.Name())
	_, err := skill.ParseID(name)
	return err == nil && e.Type().IsRegular() && (ext == ".yaml" || ext == ".json") && e.Name() != ListFile
}

// addFlat adds the skills of flat manifests. They are the operator's own: a root of strangers
// has none.
func (r *Registry) addFlat(o *Options, folder, shown string, trust skill.Trust, names []string) {
	if trust < skill.Trusted {
		return
	}
	for _, name := range names {
		file := filepath.Join(shown, name)
		m, problems := readFlat(folder, name, file, trust, o.Packages)
		r.problems = append(r.problems, problems...)
		if m != nil {
			r.addEntry(o, m, folder, file, trust)
		}
	}
}

// readFlat reads a flat manifest. A file with neither an id nor an entry is something else,
// which is in many folders: nil without problems.
func readFlat(folder, name, file string, trust skill.Trust, packages Packages) (*manifest, []Problem) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, []Problem{{file, 0, plain(err)}}
	}
	defer root.Close()
	src, err := readSmall(root, name, safeyaml.MaxBytes)
	if err != nil {
		return nil, []Problem{{file, 0, plain(err)}}
	}
	p := fileParser(file, trust, packages)
	n := p.root(src)
	if n == nil {
		return nil, p.problems
	}
	if !has(n, "id") && !has(n, "entry") {
		return nil, nil
	}
	m := p.manifest(n, false)
	if want := strings.TrimSuffix(name, path.Ext(name)); m.id != "" && string(m.id) != want {
		p.report(m.line, "the id %s and the file name differ: rename the file to %s%s", m.id, m.id, path.Ext(name))
	}
	if len(p.problems) > 0 {
		return nil, p.problems
	}
	return m, nil
}

func has(n *yaml.Node, key string) bool {
	for i := 0; n.Kind == yaml.MappingNode && i < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return true
		}
	}
	return false
}

// flatIn gives the names of the flat manifests in a folder.
func flatIn(folder string) (names []string) {
	entries, _ := os.ReadDir(folder) // who cannot list it is told so elsewhere
	for _, e := range entries {
		if !isFlat(e) {
			continue
		}
		if m, problems := readFlat(folder, e.Name(), e.Name(), skill.Trusted, nil); m != nil || len(problems) > 0 {
			names = append(names, e.Name())
		}
	}
	return names
}

// HasFlat reports whether a folder has flat manifests.
func HasFlat(folder string) bool { return len(flatIn(folder)) > 0 }
