package tape_test

import (
	"fmt"
	"log"
	"time"

	"openskill/wasm/tape"
)

// What a run was told is told again in the same order; asking for anything else ends it.
func ExampleOpen() {
	r := tape.NewRecorder(1 << 10)
	r.Wall(1_000)
	r.Chance([]byte{1, 2, 3})
	b, ok := r.Tape(tape.Start{Of: "greeter.wasm", Made: time.Unix(1_700_000_000, 0)})
	if !ok {
		log.Fatal("the tape has grown too large")
	}

	p, err := tape.Open(b)
	if err != nil {
		log.Fatal(err)
	}
	now, err := p.Wall()
	fmt.Println(now, err)
	_, err = p.Mono() // the recorded run drew chance here
	fmt.Println(err)
	// Output:
	// 1000 <nil>
	// the run asked for something else than was recorded, at draw 2: time passed, and there is random bytes
}
