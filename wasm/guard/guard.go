package guard

import (
	"errors"

	"github.com/tetratelabs/wazero"
)

// Size is the address space of a memory in bytes: all that 32 bits can reach.
const Size = 4 << 30

// Compile returns a configuration whose compiler omits the checks; it calls [Install]. Memories must
// lie in address space from [Reserve], and come from an allocator whose memories have the method
//
//	GuardPages() (base uintptr, ok bool)
//
// A module that defines a memory is not instantiated with any other one.
func Compile(cfg wazero.RuntimeConfig) (wazero.RuntimeConfig, error) {
	// wazero as it is has no such method.
	c, ok := cfg.(interface {
		WithGuardPages(guard func(code []byte, landings []uint32) (forget func(), err error)) wazero.RuntimeConfig
	})
	if !ok {
		return nil, errors.New("guard: this program was built with a compiler without guard pages; build it with make")
	}
	if err := Install(); err != nil {
		return nil, err
	}
	return c.WithGuardPages(Code), nil
}
