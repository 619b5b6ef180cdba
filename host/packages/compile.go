package packages

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

const (
	// compiledFolder is where Python looks for compiled modules, beside their sources.
	compiledFolder = "__pycache__"
	// maxModule is the size in bytes up to which a module is compiled, and what one run
	// of the compiler gets together.
	maxModule = 1 << 20
	// maxBroken is how many modules of a set may break the compiler before no more are given
	// to it: each may take its whole limit.
	maxBroken = 4
	// mounted is where scripts see the folder python of a set.
	mounted = "/openskill/packages/"
)

var compilerTag = regexp.MustCompile(`^cpython-3[0-9]{1,2}$`)

// errFull says that a set has no room for more files.
var errFull = errors.New("the set is full")

// module is one of a set, by its path in the folder python.
type module struct {
	path string
	text []byte
}

// compile puts beside the modules of a set what the sandbox's interpreter compiles them to:
// importing is mostly that. They are part of the set's digest, since they are what runs. A
// module that cannot be compiled, or has no room, stays source, which its import compiles.
func (m *setMaker) compile(ctx context.Context, o *Options) error {
	if o.Compile == nil {
		return nil
	}
	var batch []module
	size, broken := 0, 0
	flush := func() error {
		for len(batch) > 0 && broken < maxBroken {
			n, err := m.compileSome(ctx, o, batch)
			if err != nil {
				return err
			}
			if n < len(batch) {
				broken++
				n++ // this one stays source
			}
			batch = batch[n:]
		}
		batch, size = nil, 0
		return nil
	}
	root := filepath.Join(m.dir, "python")
	if _, err := os.Stat(root); err != nil {
		return nil //nolint:nilerr // no package is of Python
	}
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() || !strings.HasSuffix(file, ".py"):
			return nil
		}
		text, err := os.ReadFile(file)
		if err != nil || len(text) > maxModule {
			return err
		}
		name, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		if size+len(text) > maxModule {
			if err := flush(); err != nil {
				return err
			}
		}
		batch, size = append(batch, module{filepath.ToSlash(name), text}), size+len(text)
		return nil
	})
	if err == nil {
		err = flush()
	}
	if errors.Is(err, errFull) {
		return nil
	}
	return err
}

// compileSome compiles modules in one run, and gives how many the compiler got through.
func (m *setMaker) compileSome(ctx context.Context, o *Options, batch []module) (int, error) {
	var paths []string
	var texts [][]byte
	for _, s := range batch {
		paths, texts = append(paths, mounted+s.path), append(texts, s.text)
	}
	tag, files, err := o.Compile(ctx, paths, texts)
	if err != nil {
		return 0, err
	}
	if !compilerTag.MatchString(tag) {
		return 0, nil
	}
	files = files[:min(len(files), len(batch))]
	for i, data := range files {
		if err := m.keepCompiled(batch[i].path, tag, data); err != nil {
			return 0, err
		}
	}
	return len(files), nil
}

// keepCompiled writes what a module was compiled to.
func (m *setMaker) keepCompiled(name, tag string, data []byte) error {
	dir, base := path.Split(name)
	base = strings.TrimSuffix(base, ".py") + "." + tag + ".pyc"
	switch {
	case len(data) == 0 || len(base) > 255:
		return nil
	case m.files >= maxSetFiles || m.bytes+int64(len(data)) > maxSetBytes:
		return errFull
	}
	m.files, m.bytes = m.files+1, m.bytes+int64(len(data))
	to := filepath.Join(m.dir, "python", filepath.FromSlash(dir), compiledFolder)
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(to, base), data, 0o600)
}
