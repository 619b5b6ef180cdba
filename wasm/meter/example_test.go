package meter_test

import (
	"fmt"
	"log"

	"openskill/wasm/check"
	"openskill/wasm/meter"
	"openskill/wasm/meter/metertest"
	"openskill/wasm/wasmtest"
)

// A module that passed the check is made to count what it does; the verifier then finds on
// the rewritten bytes that every path pays before it runs.
func ExampleRewrite() {
	b := wasmtest.New()
	b.Command(wasmtest.Loop(wasmtest.Br(0))) // a loop that does not end
	checked, err := check.Module(b.Bytes(), nil)
	if err != nil {
		log.Fatal(err)
	}
	metered, err := meter.Rewrite(checked.Module, checked.MaxStack, &meter.Options{Trace: true})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("loops:", metered.Stats.Loops, "of which tested:", metered.Stats.TestedLoops)
	fmt.Println("verified:", metertest.Verify(checked.Module, metered))
	// Output:
	// loops: 1 of which tested: 1
	// verified: <nil>
}
