// Package fronts is what stays in the host of the runners whose calls run in worker
// processes: for each kind a front, which looks at files and runs nothing. It says whether
// a skill is ready, and gives a worker the modules that it lacks.
package fronts

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"sync"

	"openskill/host/workers"
	"openskill/plugins/extism"
	"openskill/plugins/javascript"
	"openskill/plugins/python"
	"openskill/plugins/wasi"
	"openskill/sdk/skill"
	"openskill/wasm"
)

// All makes the front of every runner of plugins/all.Sandboxed. state is the folder of the
// host, and modules are those that it has compiled.
func All(state string, modules *workers.Modules) []workers.Front {
	return []workers.Front{
		&wasiFront{wasi.New(nil, nil)},
		&jsFront{javascript.New(nil, nil)},
		newPythonFront(state, modules),
		&extismFront{extism.New(nil, nil)},
	}
}

// maxModule is the size in bytes up to which a module is read.
const maxModule = 64 << 20

// wasiFront is wasm:wasi in the host: it looks at files.
type wasiFront struct{ *wasi.Runner }

func (f *wasiFront) ReadyWith(folder, entry string, _ []string) error { return f.Ready(folder, entry) }
func (f *wasiFront) AvailableWith(context.Context, []string) error    { return nil }

// Source is the entry of the call itself, if that has the digest: a worker is believed
// no other.
func (f *wasiFront) Source(call *skill.Call, digest string) (*workers.Source, string, error) {
	return entrySource(call, call.Entry, digest, nil)
}

// extismFront is wasm:extism in the host, as wasiFront.
type extismFront struct{ *extism.Runner }

func (f *extismFront) ReadyWith(folder, entry string, _ []string) error {
	return f.Ready(folder, entry)
}
func (f *extismFront) AvailableWith(context.Context, []string) error { return nil }

// Source is the module that is made of the entry of the call itself.
func (f *extismFront) Source(call *skill.Call, digest string) (*workers.Source, string, error) {
	file, function := extism.Split(call.Entry)
	return entrySource(call, file, digest, func(module []byte) ([]byte, error) { return extism.Command(module, function) })
}

// entrySource gives the module of a file, or what is made of it, if that has the digest.
func entrySource(call *skill.Call, name, digest string, made func(module []byte) ([]byte, error)) (*workers.Source, string, error) {
	if call.Folder == "" {
		return nil, "", nil
	}
	root, err := os.OpenRoot(call.Folder)
	if err != nil {
		return nil, "", err
	}
	defer root.Close()
	file, err := root.Open(filepath.FromSlash(name))
	if err != nil {
		return nil, "", err
	}
	defer file.Close()
	module, err := io.ReadAll(io.LimitReader(file, maxModule+1))
	if err != nil {
		return nil, "", err
	}
	if made != nil {
		if module, err = made(module); err != nil {
			return nil, "", &skill.Error{Op: "host.Source", Code: skill.InvalidModule, Subject: string(call.SkillID), Message: "the plug-in was refused", Err: err}
		}
	}
	if own := wasm.Digest(module); own != digest {
		return nil, "", &skill.Error{Op: "host.Source", Code: skill.Conflict, Subject: string(call.SkillID), Message: "the module was changed while the call began; call again"}
	}
	return &workers.Source{Tenant: call.Tenant, Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(module)), nil }}, digest, nil
}

// jsFront is wasm:javascript in the host.
type jsFront struct{ *javascript.Runner }

func (f *jsFront) ReadyWith(folder, entry string, _ []string) error { return f.Ready(folder, entry) }

func (f *jsFront) AvailableWith(ctx context.Context, _ []string) error { return f.Available(ctx) }

var quickjs = sync.OnceValues(func() ([]byte, error) {
	module, _, err := javascript.Module()
	return module, err
})

// Source is the one module that runs scripts.
func (f *jsFront) Source(_ *skill.Call, digest string) (*workers.Source, string, error) {
	module, err := quickjs()
	if err != nil {
		return nil, "", err
	}
	if own := wasm.Digest(module); digest == "" || digest == own {
		return &workers.Source{Trusted: true, Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(module)), nil }}, own, nil
	}
	return nil, "", nil
}

// pythonFront is wasm:python in the host.
type pythonFront struct{ *python.Front }

func newPythonFront(state string, m *workers.Modules) *pythonFront {
	return &pythonFront{python.NewFront(state, func(digest string) bool { return m.Has(digest, true) })}
}

// Source is the module of a runtime, any that is installed: what a script imports, its
// worker has read.
func (f *pythonFront) Source(call *skill.Call, digest string) (*workers.Source, string, error) {
	of, open, err := f.Module(call.Requires, digest)
	if err != nil || of == "" {
		return nil, "", err
	}
	return &workers.Source{Trusted: true, Open: open}, of, nil
}
