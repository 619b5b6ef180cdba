//go:build wasip1

// Command conforming is the guest program of the conformance suite as a plug-in of Extism, by
// its PDK for Go.
package main

import (
	"bytes"

	"github.com/extism/go-pdk"

	"openskill/plugins/runnertest/behave"
)

//go:wasmexport invoke
func invoke() uint32 {
	out := &output{next: 1 << 16}
	code := behave.Run(bytes.NewReader(pdk.Input()), out)
	pdk.Output(out.Bytes())
	return code
}

// output tells the host of what was printed so far, now and then: the suite prints without
// an end.
type output struct {
	bytes.Buffer

	next int
}

func (o *output) Write(p []byte) (int, error) {
	n, err := o.Buffer.Write(p)
	if o.Len() >= o.next {
		pdk.Output(o.Bytes())
		o.next *= 2
	}
	return n, err
}

func main() {}
