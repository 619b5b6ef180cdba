// Command guest is the guest program of the conformance suite, for runners of
// WASI commands.
package main

import (
	"os"

	"openskill/plugins/runnertest/behave"
)

func main() {
	if code := behave.Run(os.Stdin, os.Stdout); code != 0 {
		os.Exit(int(code)) // proc_exit takes the low 32 bits, which is the point
	}
}
