package guest_test

import (
	"fmt"
	"io"
	"os"
	"strings"

	"openskill/sdk/go/guest"
)

type input struct {
	Name  string `json:"name"`
	Times *int   `json:"times"` // may be left out
}

type output struct {
	Greeting string `json:"greeting"`
}

func greet(call *guest.Call, in input) (output, error) {
	if strings.TrimSpace(in.Name) == "" {
		return output{}, guest.Invalid("name", "blank", "name: must not be blank")
	}
	call.Info("greeting", "name", in.Name)
	return output{"Hello, " + in.Name + "!"}, nil
}

// A skill is a function of a typed input. Its main is os.Exit(guest.Serve(greet)); a test
// gives it streams of its own.
func ExampleServeOn() {
	for _, call := range []string{`{"input": {"name": "Ada"}}`, `{"input": {"name": " "}}`, `{"input": {"name": 1}}`} {
		code := guest.ServeOn(&guest.Streams{In: strings.NewReader(call), Out: os.Stdout, Err: io.Discard}, greet)
		fmt.Println("exit code", code)
	}
	// Output:
	// {"success":true,"data":{"greeting":"Hello, Ada!"},"error":null}
	// exit code 0
	// {"success":false,"data":null,"error":{"code":"INVALID_ARGUMENT","message":"name: must not be blank","details":{"field":"name","reason":"blank"}}}
	// exit code 1
	// {"success":false,"data":null,"error":{"code":"INVALID_ARGUMENT","message":"name: must be a string","details":{"field":"name","reason":"type"}}}
	// exit code 1
}

// A field whose type depends on another one is decoded once that is known.
func ExampleDecode() {
	type measured struct {
		Unit  string `json:"unit"`
		Value any    `json:"value"` // a number; of the unit "range", two
	}
	width := func(_ *guest.Call, in measured) (any, error) {
		if in.Unit != "range" {
			return 0, nil
		}
		var ends []float64
		if err := guest.Decode(in.Value, "value", &ends); err != nil {
			return nil, err
		}
		return map[string]float64{"width": ends[1] - ends[0]}, nil
	}
	for _, value := range []string{`[1, 2.5]`, `[1, "two"]`} {
		call := strings.NewReader(`{"input": {"unit": "range", "value": ` + value + `}}`)
		guest.ServeOn(&guest.Streams{In: call, Out: os.Stdout, Err: io.Discard}, width)
	}
	// Output:
	// {"success":true,"data":{"width":1.5},"error":null}
	// {"success":false,"data":null,"error":{"code":"INVALID_ARGUMENT","message":"value[1]: must be a number","details":{"field":"value[1]","reason":"type"}}}
}
