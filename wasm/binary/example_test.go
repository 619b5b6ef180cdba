package binary_test

import (
	"fmt"
	"log"

	"openskill/wasm/binary"
)

// A module is read, changed and written again; here it loses its custom sections, which
// are for tools.
func ExampleDecode() {
	module := []byte("\x00asm\x01\x00\x00\x00" + "\x00\x0a\x04note\x01\x02\x03\x04\x05")
	m, err := binary.Decode(module, nil)
	if err != nil {
		log.Fatal(err)
	}
	for _, c := range m.Customs {
		fmt.Printf("%s: %d bytes\n", c.Name, len(c.Data))
	}
	m.Customs = nil
	fmt.Printf("%d bytes become %d\n", len(module), len(m.Encode()))
	// Output:
	// note: 5 bytes
	// 20 bytes become 8
}
