package shell

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"openskill/sdk/skill"
	"openskill/wasm"
)

// moduleFile is the module in the state folder, where scripts/shell.sh puts it.
var moduleFile = filepath.Join("runtimes", "shell", "bash.wasm")

// maxModule bounds what is read as the module, in bytes.
const maxModule = 64 << 20

// runtime finds the module, and tells its digest. It is safe for concurrent use.
type runtime struct {
	path string

	mu     sync.Mutex
	digest string
	size   int64
	at     time.Time // when the file was last changed
}

func newRuntime(state string) *runtime {
	if state == "" {
		state = ".openskill"
	}
	return &runtime{path: filepath.Join(state, moduleFile)}
}

// module gives the module as it is now. The error is a *skill.Error.
func (r *runtime) module() (skill.Module, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	st, err := os.Stat(r.path)
	if err != nil {
		return skill.Module{}, unusable(err)
	}
	if r.digest == "" || st.Size() != r.size || !st.ModTime().Equal(r.at) {
		b, err := r.read()
		if err != nil {
			return skill.Module{}, unusable(err)
		}
		r.digest, r.size, r.at = wasm.Digest(b), st.Size(), st.ModTime()
	}
	return skill.Module{
		Digest: r.digest, Trusted: true, File: r.digest,
		Open: func() (io.ReadCloser, error) { return os.Open(r.path) },
	}, nil
}

func (r *runtime) read() ([]byte, error) {
	f, err := os.Open(r.path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxModule+1))
	if err == nil && len(b) > maxModule {
		err = errors.New("the module is too large")
	}
	return b, err
}

func unusable(err error) error {
	e := &skill.Error{Op: "shell.Prepare", Code: skill.ToolInvocationError, Message: "cannot read the shell's module; run make runtimes", Err: err}
	if errors.Is(err, fs.ErrNotExist) {
		e.Message = "the shell is not installed: run make runtimes where Rust with the target wasm32-wasip1 is"
	}
	return e
}
