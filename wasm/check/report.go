package check

import (
	"errors"

	"openskill/internal/digest"
	"openskill/wasm/binary"
)

// Report is what an author or operator reads about a module.
type Report struct {
	Digest   string     `json:"digest"` // "sha256:" and the hash of the bytes
	Size     int        `json:"size"`
	Accepted bool       `json:"accepted"`
	Error    *Verdict   `json:"error,omitempty"`
	Features []string   `json:"features"`
	Imports  []Imported `json:"imports"`
	Exports  []string   `json:"exports"` // names of functions, cleaned; the first hundred
	Counts   []Count    `json:"counts"`
}

// Verdict is why a module was refused.
type Verdict struct {
	Code    Code   `json:"code"`
	Message string `json:"message"`
	Offset  int    `json:"offset,omitempty"`
}

// Imported is one import as the report names it.
type Imported struct {
	Module string `json:"module"`
	Name   string `json:"name"`
	Kind   string `json:"kind"`
}

// Count is one property of a module beside the cap that it is held against.
type Count struct {
	Property string `json:"property"`
	Value    uint64 `json:"value"`
	Cap      uint64 `json:"cap"`
}

func (r *Report) begin(b []byte, known string) {
	if r.Digest, r.Size = known, len(b); known == "" {
		r.Digest = digest.Of(b)
	}
	r.Features, r.Imports, r.Exports, r.Counts = []string{}, []Imported{}, []string{}, []Count{}
}

func (r *Report) add(p string, n int, limit uint64) {
	r.Counts = append(r.Counts, Count{Property: p, Value: uint64(n), Cap: limit})
}

func (r *Report) count(m *binary.Module, o *Options) {
	l := o.Limits.WithDefaults()
	r.add("bytes", r.Size, uint64(l.Size))
	r.add("types", len(m.Types), uint64(l.Types))
	r.add("imports", len(m.Imports), uint64(l.Imports))
	r.add("functions", len(m.Funcs), uint64(l.Functions))
	r.add("exports", len(m.Exports), uint64(l.Exports))
	r.add("globals", len(m.Globals), uint64(l.Globals))
	r.add("tables", len(m.Tables), uint64(l.Tables))
	entries := 0
	for i := range m.Elems {
		entries += len(m.Elems[i].Funcs) + len(m.Elems[i].Exprs)
	}
	r.add("table entries in segments", entries, uint64(l.TableEntries))
	r.add("data segments", len(m.Datas), uint64(l.Datas))
	const most = 100
	for i := range m.Imports {
		if i == most {
			break
		}
		im := &m.Imports[i]
		r.Imports = append(r.Imports, Imported{Module: cleanName(im.Module), Name: cleanName(im.Name), Kind: im.Kind.String()})
	}
	for i := range m.Exports {
		if m.Exports[i].Kind == binary.ExternFunc && len(r.Exports) < most {
			r.Exports = append(r.Exports, cleanName(m.Exports[i].Name))
		}
	}
}

func (r *Report) functions(v *validator) {
	l := v.o.Limits.WithDefaults()
	r.add("bytes of the largest body", int(v.body.Load()), uint64(l.BodySize))
	r.add("locals of one function", int(v.locals.Load()), uint64(l.Locals))
	r.add("nesting depth", int(v.depth.Load()), uint64(v.o.Depth))
	r.add("branches, blocks and calls", int(v.branches.Load()), v.o.Branches) // below the bytes of a module
	r.add("targets of one br_table", int(v.targets.Load()), uint64(v.o.BranchTargets))
	b := &v.bill
	r.add("estimated milliseconds to compile", int(b.total.Load()/1e6), uint64(v.o.CompileModule.Milliseconds()))
	r.add("estimated milliseconds of one function", int(b.slowest.Load()/1e6), uint64(v.o.CompileFunction.Milliseconds()))
	r.add("estimated MiB to compile", int((b.kept.Load()+b.largest.Load())>>20), uint64(v.o.CompileMemory>>20))
	if v.tail.Load() {
		r.Features = append(r.Features, string(binary.FeatureTailCall))
	}
	if v.except.Load() || len(v.tags) > 0 {
		r.Features = append(r.Features, string(binary.FeatureExceptions))
	}
}

// Refuse puts down that a pass behind this package refused the module.
func (r *Report) Refuse(err error) { r.end(err) }

func (r *Report) end(err error) {
	r.Accepted = err == nil
	var e *Error
	if errors.As(err, &e) {
		r.Error = &Verdict{Code: e.Code, Message: e.Msg, Offset: e.Offset}
	}
}
