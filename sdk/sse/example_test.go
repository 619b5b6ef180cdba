package sse_test

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"openskill/sdk/sse"
)

// A stream is read event by event; its end is an error, since only the events say what is
// the last one.
func ExampleReader() {
	events := sse.NewReader(strings.NewReader("event: text\ndata: one\n\ndata: two\n\n"), 1<<10)
	for {
		e, err := events.Next()
		if err != nil {
			fmt.Println(errors.Is(err, io.ErrUnexpectedEOF))
			return
		}
		fmt.Printf("%s: %s\n", e.Name, e.Data)
	}
	// Output:
	// text: one
	// message: two
	// true
}
