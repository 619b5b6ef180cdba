//go:build wasip1

// Command bench is the plug-in of Extism that benchmarks call: it answers with its input,
// or computes.
package main

import (
	"strconv"

	"github.com/extism/go-pdk"
)

//go:wasmexport echo
func echo() int32 {
	pdk.Output(pdk.Input())
	return 0
}

// compute counts primes by a sieve, ten times over, after it has read its input: what is
// before that is done once for all calls.
//
//go:wasmexport compute
func compute() int32 {
	n := 200_000 + len(pdk.Input())
	count := 0
	for range 10 {
		count += primes(n)
	}
	pdk.OutputString(strconv.Itoa(count))
	return 0
}

// grow does it once, with more memory than the plug-in has when it begins.
//
//go:wasmexport grow
func grow() int32 {
	pdk.OutputString(strconv.Itoa(primes(2_000_000 + len(pdk.Input()))))
	return 0
}

func primes(n int) (count int) {
	composite := make([]bool, n)
	for i := 2; i < n; i++ {
		if composite[i] {
			continue
		}
		count++
		for j := i * i; j < n; j += i {
			composite[j] = true
		}
	}
	return count
}

func main() {}
