package guard

import (
	"errors"

	"github.com/tetratelabs/wazero"
)

// Size is how many bytes of address space a memory may take: all that 32 bits can reach.
const Size = 4 << 30

// Compile has a compiler leave out the checks, after [Install]. Memories then come from an
// allocator whose memories have the method
//
//	GuardPages() (base uintptr, ok bool)
//
// and lie in what [Reserve] gives; modules with another one of their own are not instantiated.
func Compile(cfg wazero.RuntimeConfig) (wazero.RuntimeConfig, error) {
	// wazero as it is has no such method.
	c, ok := cfg.(interface {
		WithGuardPages(guard func(code []byte, landings []uint32) (forget func(), err error)) wazero.RuntimeConfig
	})
	if !ok {
		return nil, errors.New("guard: the compiler that this program was built with knows no guard pages; build it with make")
	}
	if err := Install(); err != nil {
		return nil, err
	}
	return c.WithGuardPages(Code), nil
}
