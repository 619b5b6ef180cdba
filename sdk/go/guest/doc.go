// Package guest is a skill's own side of the contract: one call on standard input,
// one answer on standard output.
//
//	func main() { os.Exit(guest.Serve(greet)) }
//
//	func greet(call *guest.Call, in Input) (Output, error) { … }
//
// Input and Output are structs with json tags. A field of Input is required unless it
// is a pointer or its tag has omitempty or omitzero; names are matched exactly, and
// fields that Input does not have are left to the skill's schema. What is wrong with a
// call is answered as INVALID_ARGUMENT that names the field.
//
// While the function runs, what it prints on os.Stdout goes to standard error, which is
// for logs. A panic of it is answered as INTERNAL; one in another goroutine ends the
// program, as everywhere in Go.
//
// It imports the standard library only, and runs as a WASI command and natively.
package guest
