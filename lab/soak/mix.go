package soak

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strconv"

	"openskill/lab/load"
	"openskill/sdk/skill"
)

// Kind is one kind of call: how often it is made, what is sent and what must come back.
type Kind struct {
	Name   string
	Weight int        // of all weights together
	Skill  string     // its id
	Code   skill.Code // how it must end; empty: with a success
	body   func(n int64) (body, want string)
}

// Mix is what a soak sends. Most calls succeed; some end by each of the ways that callers
// of a host see every day, each of which the host must clean up after. The weights are
// in thousandths.
func Mix() []Kind {
	always := func(body, want string) func(int64) (string, string) {
		return func(int64) (string, string) { return body, want }
	}
	return []Kind{
		{"echo", 560, "echo", "", func(n int64) (string, string) {
			text := "call " + strconv.FormatInt(n, 10)
			return `{"input":{"text":"` + text + `"}}`, `"echoed":"` + text + `"`
		}},
		{"calculator (Python)", 240, "calculator", "", func(n int64) (string, string) {
			return fmt.Sprintf(`{"input":{"numbers":[%d,2,3],"ops":["sum","max"]}}`, n), fmt.Sprintf(`"sum":%d`, n+5)
		}},
		{"file_search", 80, "file_search", "", always(`{"input":{"query":"needle","root_dir":"./data"}}`, `"path":"./data/notes/b.txt"`)},
		{"log_transform", 80, "log_transform", "", always(`{"input":{"input_path":"./data/app.log"}}`, `"lines":40`)},
		{"wrong input", 18, "calculator", skill.InvalidArgument, always(`{"input":{"numbers":[],"ops":["mean"]}}`, `numbers`)},
		{"a skill's own refusal", 10, "log_transform", skill.InvalidArgument, always(`{"input":{"input_path":"./data/none.log"}}`, `"not_found"`)},
		{"fuel used up", 10, Spin, skill.FuelExhausted, always(`{"input":{},"limits":{"fuel":1000000}}`, `fuel`)},
		{"time over", 2, Spin, skill.Timeout, always(`{"input":{},"limits":{"timeout_ms":20}}`, `"TIMEOUT"`)},
	}
}

// Spin is the skill that never ends.
const Spin = "spin"

// spinModule is (module (memory (export "memory") 1) (func (export "_start") (loop br 0))).
var spinModule = []byte("\x00asm\x01\x00\x00\x00" +
	"\x01\x04\x01\x60\x00\x00" + "\x03\x02\x01\x00" + "\x05\x03\x01\x00\x01" +
	"\x07\x13\x02\x06memory\x02\x00\x06_start\x00\x00" +
	"\x0a\x09\x01\x07\x00\x03\x40\x0c\x00\x0b\x0b")

// Order says which kind the n-th call is: shuffled, and the same in every run.
type Order struct{ slots []uint8 }

// NewOrder deals the kinds by their weights.
func NewOrder(kinds []Kind) Order {
	var o Order
	for i, k := range kinds {
		o.slots = append(o.slots, bytes.Repeat([]byte{byte(i)}, k.Weight)...)
	}
	r := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same order each time is what is wanted
	r.Shuffle(len(o.slots), func(i, j int) { o.slots[i], o.slots[j] = o.slots[j], o.slots[i] })
	return o
}

// Of is the index of the n-th call's kind.
func (o Order) Of(n int64) int { return int(o.slots[n%int64(len(o.slots))]) }

// Request is the n-th call, and what its answer must hold.
func (k *Kind) Request(n int64) (r *load.Request, want string) {
	body, want := k.body(n)
	return load.Invoke(k.Skill, []byte(body)), want
}

// Wrong says what is wrong with an answer, or nothing.
func (k *Kind) Wrong(a *load.Answer, err error, want string) string {
	switch {
	case err != nil:
		return fmt.Sprintf("%s: %v", a.Code, err)
	case a.Success != (k.Code == ""), !a.Success && a.Code != string(k.Code):
		return a.Said()
	case !bytes.Contains(a.Body, []byte(want)):
		return fmt.Sprintf("%q is not in it: %s", want, a.Said())
	}
	return ""
}
