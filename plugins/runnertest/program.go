package runnertest

import (
	"slices"
	"strconv"
)

// A Behaviour is one thing that a guest program of the suite does.
type Behaviour string

// The behaviours. N and Names are the fields of [Program].
const (
	Echo         Behaviour = "echo"          // copy standard input to standard output
	Drain        Behaviour = "drain"         // read standard input to its end, print how many bytes there were
	Print        Behaviour = "print"         // print N bytes of Pattern
	PrintForever Behaviour = "print-forever" // print Pattern without an end
	Stderr       Behaviour = "stderr"        // print N bytes of Pattern on standard error, and "out" on standard output
	Exit         Behaviour = "exit"          // print "bye" and exit with N
	Spin         Behaviour = "spin"          // loop without an end and without a call
	Sleep        Behaviour = "sleep"         // sleep for N milliseconds
	Allocate     Behaviour = "allocate"      // allocate and touch memory until refused, then fail as the language does
	Recurse      Behaviour = "recurse"       // call itself without an end
	Environment  Behaviour = "environment"   // print a JSON {"env": {…}, "args": […]}, args after the behaviour
	ReadFile     Behaviour = "read-file"     // print the file Names[0], or "refused" and exit 3
	WriteWork    Behaviour = "write-work"    // write N bytes of Pattern to ./work/NAME for each of Names, making folders
	FillWork     Behaviour = "fill-work"     // write files of 64 KiB to ./work until refused or N files, then print how many
	ListWork     Behaviour = "list-work"     // print a JSON list of the names in ./work; "null" if it cannot be read
	WriteData    Behaviour = "write-data"    // try to change ./data in every way, print a JSON list of the ways that worked
)

// Program is a behaviour with its parameters.
type Program struct {
	Do    Behaviour
	N     uint64
	Names []string
}

// Arguments are the arguments of a call for p: the behaviour, N in decimal, then
// the names.
func (p Program) Arguments() []string {
	return slices.Concat([]string{string(p.Do), strconv.FormatUint(p.N, 10)}, p.Names)
}

// Pattern is the first n bytes of what the printing behaviours print: lines of
// seven digits and a newline that count from zero and begin again after ten
// million, so that a part that is missing or doubled shows.
func Pattern(n uint64) []byte {
	b := make([]byte, 0, n+8)
	for i := uint64(0); uint64(len(b)) < n; i = (i + 1) % 10_000_000 {
		b = append(b, "0000000\n"...)
		for d, v := len(b)-2, i; v > 0; d, v = d-1, v/10 {
			b[d] = byte('0' + v%10)
		}
	}
	return b[:n]
}
