package metertest

import (
	"slices"

	"openskill/wasm/binary"
)

// callees notes all calls of the input, and gives functions and shapes in an order in which
// callees come first, as far as they do not call each other.
func (v *verifier) callees() (order []int32) {
	n := len(v.in.Codes)
	v.all = make([][]int32, n+v.nshapes)
	for f, taken := range v.taken {
		if taken {
			s := n + int(v.shapes[v.in.Funcs[f]])
			v.all[s] = append(v.all[s], int32(f)) // at most Limits.Functions
		}
	}
	met := slices.Repeat([]int{-1}, len(v.all))
	for f := range v.in.Codes {
		r := binary.NewReader(v.in.Codes[f].Body, 0)
		for x := (binary.Instr{}); r.Next(&x); {
			if to := v.callee(&x); to >= 0 && met[to] != f {
				met[to] = f
				v.all[f] = append(v.all[f], to)
			}
		}
	}
	type visit struct {
		node int32
		next int
	}
	seen := make([]bool, len(v.all))
	for root := range v.all {
		if seen[root] {
			continue
		}
		seen[root] = true
		for path := []visit{{int32(root), 0}}; len(path) > 0; {
			p := &path[len(path)-1]
			if p.next == len(v.all[p.node]) {
				order = append(order, p.node)
				path = path[:len(path)-1]
				continue
			}
			to := v.all[p.node][p.next]
			p.next++
			if !seen[to] {
				seen[to] = true
				path = append(path, visit{to, 0})
			}
		}
	}
	return order
}

// callee gives what an instruction of the input calls: a function, or behind those a shape;
// none if it calls nothing, or an import.
func (v *verifier) callee(x *binary.Instr) int32 {
	switch x.Op {
	case binary.OpCall, binary.OpReturnCall:
		return max(int32(x.A)-int32(v.nimp), none) // at most Limits.Functions
	case binary.OpCallIndirect, binary.OpReturnCallI:
		return int32(len(v.in.Codes)) + int32(v.shapes[x.A])
	}
	return none
}

// knot numbers the cycles of calls, by Kosaraju's algorithm. order has callees first.
func (v *verifier) knot(order []int32) {
	callers := make([][]int32, len(v.all))
	for f, list := range v.all {
		for _, to := range list {
			callers[to] = append(callers[to], int32(f))
		}
	}
	v.knots = slices.Repeat([]int32{none}, len(v.all))
	for i := len(order) - 1; i >= 0; i-- {
		if v.knots[order[i]] != none {
			continue
		}
		v.knots[order[i]] = order[i]
		for open := []int32{order[i]}; len(open) > 0; {
			at := open[len(open)-1]
			open = open[:len(open)-1]
			for _, from := range callers[at] {
				if v.knots[from] == none {
					v.knots[from] = order[i]
					open = append(open, from)
				}
			}
		}
	}
}

// callCycles looks for a cycle among the calls that are reached without a test.
func (v *verifier) callCycles() error {
	const open, done = 1, 2
	state := make([]byte, len(v.calls))
	type visit struct {
		node int32
		next int
	}
	for root := range v.calls {
		if state[root] != 0 {
			continue
		}
		state[root] = open
		path := []visit{{int32(root), 0}}
		for len(path) > 0 {
			p := &path[len(path)-1]
			if p.next == len(v.calls[p.node]) {
				state[p.node] = done
				path = path[:len(path)-1]
				continue
			}
			to := v.calls[p.node][p.next]
			p.next++
			switch state[to] {
			case open:
				for i := len(path) - 1; ; i-- { // one of them is a function: shapes do not call each other
					if n := int(path[i].node); n < len(v.in.Codes) {
						return &Violation{Func: n, Msg: "calls itself, directly or not, without a test on the way"}
					}
				}
			case 0:
				state[to] = open
				path = append(path, visit{to, 0})
			}
		}
	}
	return nil
}
