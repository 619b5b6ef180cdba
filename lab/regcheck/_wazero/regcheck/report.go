package regcheck

import (
	"expvar"
	"fmt"
	"sync"
)

// Fault is one instruction that does not do what the program before the allocation says.
type Fault struct {
	Function    int // in the module, without the imported ones
	Instruction string
	What        string
	Around      []string // the instructions before it and behind it
}

// The names in package expvar by which the program that compiles learns what was found: it
// is built of the same process, but may not import this package.
const (
	varFunctions    = "regcheck.functions"
	varInstructions = "regcheck.instructions"
	varFaults       = "regcheck.faults"
)

var (
	functions    = expvar.NewInt(varFunctions)
	instructions = expvar.NewInt(varInstructions)

	mu      sync.Mutex
	found   []Fault
	current int
)

func init() {
	expvar.Publish(varFaults, expvar.Func(func() any {
		mu.Lock()
		defer mu.Unlock()
		all := found
		found = nil
		return all
	}))
}

// Begin tells which function is compiled next; with one worker, the order is theirs.
func Begin(function uint32) {
	mu.Lock()
	defer mu.Unlock()
	current = int(function)
}

// Report checks a function, and keeps what is found.
func Report(f *Function) {
	faults := Check(f)
	functions.Add(1)
	instructions.Add(int64(f.Instructions))
	mu.Lock()
	defer mu.Unlock()
	for i := range faults {
		faults[i].Function = current
	}
	found = append(found, faults...)
}

// fault tells of an instruction once.
func (c *checker) fault(at int, what string) {
	if key := fmt.Sprint(at, what); c.told[key] {
		return
	} else {
		c.told[key] = true
	}
	f := Fault{Instruction: c.Text(at), What: what}
	for i := max(0, at-12); i < min(c.Instructions, at+4); i++ {
		f.Around = append(f.Around, c.Text(i))
	}
	c.faults = append(c.faults, f)
}
