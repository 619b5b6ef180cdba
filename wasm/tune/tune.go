package tune

import (
	"fmt"

	"openskill/wasm/binary"
)

// Options say what is known of a program that its module does not show.
type Options struct {
	// Low is how many bytes, from address 0 on, the program never accesses through an
	// address that wrapped around 2^32. 0 means that nothing is known, and nothing
	// changes. A C program that the linker gave its stack first has its stack's far end
	// there; one with its data first has nothing in the first 1,024 bytes.
	Low uint32
	// Stack is how much of its stack a CPython is told of, in bytes, where it is told
	// of less; see stack.go. 0 leaves that as it is.
	Stack uint32
}

// Stats counts what was done.
type Stats struct {
	Direct  int  // additions that became offsets
	Entries int  // of tables, taken out because their function only traps
	Shared  int  // accesses that go through the local that theirs was computed from
	Stack   bool // it is a CPython that is told of more of its stack
}

// Tuned is a module that was rewritten.
type Tuned struct {
	Module *binary.Module
	Stats  Stats
}

// Module rewrites the bodies of m, which must be valid and is not changed; the two
// share what is the same. nil options change nothing.
func Module(m *binary.Module, opts *Options) (*Tuned, error) {
	out := *m
	t := &Tuned{Module: &out}
	if opts == nil || opts.Low == 0 {
		return t, nil
	}
	f := folder{m: m, low: uint64(opts.Low), stats: &t.Stats}
	f.types = make([]*binary.FuncType, 0, len(m.Funcs)+len(m.Imports))
	for i := range m.Imports {
		if m.Imports[i].Kind == binary.ExternFunc {
			f.types = append(f.types, &m.Types[m.Imports[i].Type])
		}
	}
	for _, i := range m.Funcs {
		f.types = append(f.types, &m.Types[i])
	}
	out.Codes = make([]binary.Code, len(m.Codes))
	for i := range m.Codes {
		c := m.Codes[i]
		body, err := f.function(&c)
		if err != nil {
			return nil, fmt.Errorf("tune: function %d: %w", i, err)
		}
		c.Body = body
		out.Codes[i] = c
	}
	t.Stats.Entries = entries(&out)
	var err error
	if t.Stats.Stack, err = stack(&out, opts.Stack); err != nil {
		return nil, fmt.Errorf("tune: stack: %w", err)
	}
	return t, nil
}
