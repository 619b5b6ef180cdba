package check_test

import (
	"errors"
	"fmt"

	"openskill/wasm/check"
)

// What cannot be a module is refused with a code and the byte at which that shows. Nothing
// is allocated for counts that no bytes stand behind.
func ExampleModule() {
	for _, module := range []string{
		"\x00asm\x01\x00\x00\x00",                             // an empty one
		"\x00asm\x01\x00\x00\x00\x02\x05\xff\xff\xff\xff\x0f", // 2^32-1 imports
	} {
		r, err := check.Module([]byte(module), nil)
		var refused *check.Error
		if errors.As(err, &refused) {
			fmt.Println(refused.Code, "at", refused.Offset)
			continue
		}
		fmt.Println("accepted,", r.Report.Size, "bytes")
	}
	// Output:
	// accepted, 8 bytes
	// INVALID_MODULE at 10
}
