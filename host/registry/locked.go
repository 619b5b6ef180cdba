package registry

import (
	"path/filepath"

	"openskill/host/share/lock"
	"openskill/sdk/skill"
)

// locks are the lock files beside skills' folders, each read once.
type locks map[string]locked

type locked struct {
	file *lock.File
	err  error
}

func (l locks) read(dir string) locked {
	is, known := l[dir]
	if !known {
		is.file, is.err = lock.Read(dir)
		l[dir] = is
	}
	return is
}

// pulled is what the lock file beside a folder says of it: a skill that was pulled stays a
// stranger's, in the operator's own folder too, unless the trust policy said otherwise. nil:
// it was not pulled. Where the file is damaged nobody knows, and all are strangers'.
func (r *Registry) pulled(folder string, trust skill.Trust) (skill.Trust, *lock.Entry) {
	dir, name := filepath.Split(folder)
	is := r.locks.read(filepath.Clean(dir))
	if is.err != nil {
		return skill.Community, nil
	}
	e := is.file.Skills[skill.ID(name)]
	if e == nil {
		return trust, nil
	}
	return min(trust, e.Trust), e
}
