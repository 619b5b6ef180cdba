package workers

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// tenantFile has the tenant on whose behalf a module was compiled. It is empty once another
// tenant has asked for the module.
const tenantFile = "tenant"

// shared notes that a tenant asks for a compiled module, which may be another one's.
func (m *Modules) shared(n, tenant string) {
	path := filepath.Join(m.root, n, tenantFile)
	if of, err := os.ReadFile(path); err == nil && len(of) > 0 && string(of) != tenant {
		_ = os.WriteFile(path, nil, 0o600) // or it has been removed
	}
}

// compiled is a compiled module in the folder.
type compiled struct {
	path    string
	size    int64
	used    time.Time
	trusted bool
	tenant  string // "": several
}

// trim removes compiled modules until there is room: of the tenant that has the most, what
// was not used for the longest. So uploads and dry runs of one tenant take no room of
// another's. Runtimes are removed last. Workers that were given a module keep it, by links
// of their own.
func (m *Modules) trim() {
	all, total := m.list()
	slices.SortFunc(all, func(a, b compiled) int { return a.used.Compare(b.used) })
	for total > m.o.Bytes && len(all) > 0 {
		i := next(all)
		if os.RemoveAll(all[i].path) == nil {
			total -= all[i].size
		}
		all = slices.Delete(all, i, i+1)
	}
}

// next is the index of the module that is removed next.
func next(all []compiled) int {
	sums := map[string]int64{}
	most := ""
	for _, c := range all {
		if c.trusted {
			continue
		}
		if sums[c.tenant] += c.size; sums[c.tenant] > sums[most] {
			most = c.tenant
		}
	}
	return max(slices.IndexFunc(all, func(c compiled) bool { return !c.trusted && c.tenant == most }), 0)
}

func (m *Modules) list() (all []compiled, total int64) {
	entries, err := os.ReadDir(m.root)
	if err != nil {
		return nil, 0 // the next one tries again
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || strings.HasPrefix(e.Name(), "new-") {
			continue
		}
		c := compiled{path: filepath.Join(m.root, e.Name()), used: info.ModTime(), trusted: strings.HasSuffix(e.Name(), trustedSuffix)}
		if of, err := os.ReadFile(filepath.Join(c.path, tenantFile)); err == nil {
			c.tenant = string(of)
		}
		_ = filepath.WalkDir(c.path, func(_ string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return nil
			}
			if info, err := d.Info(); err == nil {
				c.size += info.Size()
			}
			return nil
		})
		total += c.size
		all = append(all, c)
	}
	return all, total
}
