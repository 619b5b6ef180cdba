package packages

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"openskill/sdk/skill"
)

const maxProject = 1 << 20 // bytes of a package.json

// nameInTarball reads the name of a package from its package.json.
func nameInTarball(file string) (string, error) {
	wrong := func(err error) error {
		return &skill.Error{Op: "packages.Add", Code: skill.ArchiveRejected, Message: "cannot read the package.json of " + skill.CleanText(filepath.Base(file), 100), Err: err}
	}
	f, err := os.Open(file)
	if err != nil {
		return "", wrong(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return "", wrong(err)
	}
	r := tar.NewReader(io.LimitReader(z, maxSetBytes))
	for {
		h, err := r.Next()
		if err != nil {
			return "", wrong(err)
		}
		if path.Base(h.Name) != "package.json" || strings.Count(path.Clean(h.Name), "/") != 1 {
			continue
		}
		var p struct {
			Name string `json:"name"`
		}
		b, err := io.ReadAll(io.LimitReader(r, maxProject))
		if err == nil {
			err = json.Unmarshal(b, &p)
		}
		if err == nil && !npmName.MatchString(p.Name) {
			err = errors.New("invalid name")
		}
		if err != nil {
			return "", wrong(err)
		}
		return p.Name, nil
	}
}
