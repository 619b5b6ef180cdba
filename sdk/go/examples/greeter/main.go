// Command greeter is a skill: it greets somebody by name.
package main

import (
	"os"
	"strings"

	"openskill/sdk/go/guest"
)

// Input is what a caller sends. Times may be left out.
type Input struct {
	Name  string `json:"name"`
	Times *int   `json:"times"`
}

// Output is what the caller gets.
type Output struct {
	Greeting string `json:"greeting"`
}

func greet(call *guest.Call, in Input) (Output, error) {
	name := strings.TrimSpace(in.Name)
	if name == "" {
		return Output{}, guest.Invalid("name", "blank", "name: must not be blank")
	}
	times := 1
	if in.Times != nil {
		times = *in.Times
	}
	if times < 1 || times > 9 {
		return Output{}, guest.Invalid("times", "range", "times: must be from 1 to 9")
	}
	call.Info("greeting", "times", times)
	return Output{strings.Repeat("Hello, "+name+"! ", times-1) + "Hello, " + name + "!"}, nil
}

func main() {
	guest.Rehearse(greet, Input{Name: "nobody"})
	os.Exit(guest.Serve(greet))
}
