package worker

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// trim removes compiled modules that were not used for the longest until there is
// room. Workers that were given them keep them, by links of their own.
func (m *Modules) trim() {
	entries, err := os.ReadDir(m.root)
	if err != nil {
		return // the next one tries again
	}
	type kept struct {
		path string
		size int64
		used time.Time
	}
	var all []kept
	total := int64(0)
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || strings.HasPrefix(e.Name(), "new-") {
			continue
		}
		k := kept{path: filepath.Join(m.root, e.Name()), used: info.ModTime()}
		_ = filepath.WalkDir(k.path, func(_ string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return nil //nolint:nilerr // what cannot be read is not counted
			}
			if info, err := d.Info(); err == nil {
				k.size += info.Size()
			}
			return nil
		})
		total += k.size
		all = append(all, k)
	}
	slices.SortFunc(all, func(a, b kept) int { return a.used.Compare(b.used) })
	for _, k := range all {
		if total <= m.o.Bytes {
			return
		}
		if os.RemoveAll(k.path) == nil {
			total -= k.size
		}
	}
}
