package metertest

import (
	"bytes"
	"fmt"

	"openskill/wasm/binary"
	"openskill/wasm/meter"
)

// mostCharge keeps sums of charges far from the ends of the counter: the largest
// body could not ask for more in one block.
const mostCharge = 1 << 44

// never is the depth of a loop that no path came from without a test.
const never = 1 << 30

// state is what is known at one place, for all paths that lead there.
type state struct {
	live bool
	paid int64 // the least that is paid and not yet used
	free bool  // some path from the entry passed no test
	// first is the most that was charged on paths from the entry that passed no test, here
	// or in callees, and since the most that was charged since the last test on the
	// others; none: there is no such path.
	first, since int64
	// owed is the most that was used behind a call that may recurse, less what was charged
	// there; nothing: no path came from one.
	owed int64
	// loop is the place of the outermost open loop from whose header some path
	// came without a test. Such a path passed the headers of all loops inside
	// that one, so one number tells of all.
	loop   int
	height int // operands of the input that are on the stack
}

// merge joins the paths of two states.
func (s state) merge(o state) state {
	switch {
	case !s.live:
		return o
	case !o.live:
		return s
	}
	return state{
		live: true, paid: min(s.paid, o.paid), free: s.free || o.free, loop: min(s.loop, o.loop), height: s.height,
		first: max(s.first, o.first), since: max(s.since, o.since), owed: max(s.owed, o.owed),
	}
}

// role is why a block stands in the output.
type role byte

const (
	roleOwn    role = iota // as in the input
	roleResult             // around a tested loop: gives its results
	roleAgain              // the loop that the slow path goes back into
	roleHot                // inside that loop: its end begins the slow path
	roleCopy               // one of the copies of a small loop
)

// open is an open block of the output.
type open struct {
	role role
	loop bool
	head int   // a loop: its number among the headers of the function
	pays int64 // a loop: what its header takes as paid
	end  state // of the branches to its end
}

// construct is an open block of the input.
type construct struct {
	op              binary.Op
	els             bool
	cond            state // of an if
	target          int   // the block of the output that branches must go to
	base            int   // operands below its own
	params, results int
	body            int // a tested loop: where its instructions begin in the input
	need            int64
}

// walker reads a body of the output beside that of the input.
type walker struct {
	v      *verifier
	fn     int
	in     *binary.Code
	body   []byte // of the output
	src    binary.Reader
	dst    binary.Reader
	a, b   binary.Instr // the instructions that come next
	aok    bool
	bok    bool
	steps  []meter.Step
	opens  []open
	cons   []construct
	st     state
	high   int // most operands of the input at once
	types  []binary.ValType
	own    uint32 // locals of the input
	at     int    // where the last pattern that pays for a bulk operation ended
	last   int    // where the last i32.const of the input ended
	length int64  // and what it pushed
	labels [2][]uint32
	heads  []head // of loops of the output, in their order
	nheads int    // that this walk came to
	more   bool   // more is charged where a loop goes on than this walk began it with
}

func (w *walker) fail(format string, a ...any) error {
	return &Violation{Func: w.fn, At: w.b.Pos, Msg: fmt.Sprintf(format, a...)}
}

// next reads the following instruction of the output.
func (w *walker) next() { w.bok = w.dst.Next(&w.b) }

// advance reads the following instruction of the input.
func (w *walker) advance() { w.aok = w.src.Next(&w.a) }

// claimed reports whether the proof says that b is an instruction of the input.
func (w *walker) claimed() bool { return len(w.steps) > 0 && w.steps[0].Out == w.b.Pos }

// function walks over one body, and again if the operands that a walk found make the
// frame larger, or if more is charged where a loop goes on than where it was entered.
func (w *walker) function(i int) error {
	w.heads = w.heads[:0]
	high := 0
	for range mostWalks {
		if err := w.walk(i, high); err != nil {
			return err
		}
		if !w.more && w.frame(w.high) <= w.frame(high) {
			return nil
		}
		high = w.high
	}
	return w.fail("charges add up around loops within loops")
}

func (w *walker) walk(i, operands int) error {
	v := w.v
	c, o := &v.in.Codes[i], &v.out.Codes[i]
	w.fn, w.in, w.body, w.steps = i, c, o.Body, v.claim.Steps[i]
	w.src.Reset(c.Body, 0)
	w.dst.Reset(o.Body, 0)
	w.at, w.last, w.high = -1, -1, 0
	w.nheads, w.more = 0, false
	t := &v.in.Types[v.in.Funcs[i]]
	if err := w.locals(t, c, o); err != nil {
		return err
	}
	w.st = state{live: true, paid: v.claim.Prepaid[i], free: true, loop: never, since: none, owed: nothing}
	w.opens = append(w.opens[:0], open{})
	w.cons = append(w.cons[:0], construct{op: binary.OpBlock, results: len(t.Results)})
	w.advance()
	w.next()
	if err := w.entry(); err != nil {
		return err
	}
	if err := w.use(w.frame(operands)); err != nil {
		return err
	}
	for len(w.cons) > 0 {
		if !w.bok {
			return w.fail("the body ends early")
		}
		if err := w.step(); err != nil {
			return err
		}
	}
	switch {
	case w.bok || w.aok:
		return w.fail("the bodies do not end together")
	case len(w.steps) > 0:
		return w.fail("the proof names instructions that are not there")
	}
	return nil
}

// frame is what a call pays for the stack that the function takes (rule 7).
func (w *walker) frame(operands int) int64 {
	return (8*(int64(w.own)+int64(operands)) + int64(len(w.in.Body))/4) / meter.FrameUnit
}

// locals are those of the input, and then the places of the inserted patterns.
func (w *walker) locals(t *binary.FuncType, c, o *binary.Code) error {
	n := len(c.Locals)
	if len(o.Locals) < n || len(o.Locals) > n+2 {
		return w.fail("locals were lost or added")
	}
	w.own = uint32(len(t.Params)) // at most Limits.Values
	for i, g := range c.Locals {
		if o.Locals[i] != g {
			return w.fail("local %d was changed", i)
		}
		w.own += g.Count
	}
	for i, g := range o.Locals[n:] {
		if (g != binary.LocalGroup{Count: 1, Type: []binary.ValType{binary.I64, binary.I32}[i]}) {
			return w.fail("added local %d has another type", i)
		}
	}
	w.types = []binary.ValType{binary.I64, binary.I32}[:len(o.Locals)-n]
	return nil
}

// entry reads the charge that stands before the first instruction.
func (w *walker) entry() error {
	switch {
	case !w.bok || w.claimed():
	case w.b.Op == binary.OpLoop && w.wrapped(0):
		need, err := w.wrapper()
		w.cons[0].need = need
		return err
	case w.b.Op == binary.OpGlobalGet:
		return w.charge()
	}
	return nil
}

// wrapped looks ahead: what tests is a loop, a block, and in it the fuel, and
// none of them is the input's. Other loops of the output read the fuel at once,
// or hold instructions of the input. skip is how many instructions stand before
// that loop.
func (w *walker) wrapped(skip int) bool {
	r, x, steps := w.dst, w.b, w.steps
	for at := 0; ; at++ {
		want := binary.OpLoop
		switch {
		case len(steps) > 0 && steps[0].Out == x.Pos:
			return false
		case at < skip:
			want = binary.OpBlock
		case at == skip+1:
			want = binary.OpBlock
		case at == skip+2:
			return x.Op == binary.OpGlobalGet && x.A == w.v.fuel
		}
		if x.Op != want || at >= skip && x.Const != binary.BlockEmpty || !r.Next(&x) {
			return false
		}
	}
}

// step reads one instruction of the input, or one inserted pattern.
func (w *walker) step() error {
	if w.claimed() {
		return w.original()
	}
	top := w.opens[len(w.opens)-1]
	ends := w.aok && w.a.Op == binary.OpEnd
	switch op := w.b.Op; {
	case op == binary.OpGlobalGet:
		return w.charge()
	case op == binary.OpLocalTee:
		return w.bulk()
	case op == binary.OpCall:
		return w.helperCall()
	case op == binary.OpLoop && w.aok && w.a.Op == binary.OpLoop:
		return w.plainLoop()
	case op == binary.OpBlock && w.aok && w.a.Op == binary.OpLoop && w.wrapped(1):
		return w.testedLoop()
	case op == binary.OpBlock && top.role == roleHot:
		return w.openCopy()
	case op == binary.OpEnd && ends && top.role == roleOwn:
		return w.end()
	case op == binary.OpBr && ends && top.role == roleCopy:
		return w.closeCopy()
	case op == binary.OpBr && ends && top.role == roleHot && len(w.cons) > 1:
		return w.closeLoop()
	case op == binary.OpReturn && ends && top.role == roleHot && len(w.cons) == 1:
		return w.closeFunction()
	}
	return w.fail("%v is neither an instruction of the input nor part of an inserted pattern", w.b.Op)
}

// expect reads one inserted instruction; a is its index, label or constant.
func (w *walker) expect(op binary.Op, a int64) error {
	if !w.bok || w.claimed() || w.b.Op != op {
		return w.fail("an inserted pattern is incomplete: %v expected, %v found", op, w.b.Op)
	}
	got := a
	switch op.Imm() {
	case binary.ImmIndex, binary.ImmLabel:
		got = int64(w.b.A)
	case binary.ImmBlock, binary.ImmI64:
		got = w.b.Const
	}
	if got != a {
		return w.fail("an inserted pattern is wrong: %v of %d expected, of %d found", op, a, got)
	}
	w.next()
	return nil
}

// pattern reads several inserted instructions.
func (w *walker) pattern(want ...[2]int64) error {
	for _, p := range want {
		if err := w.expect(binary.Op(p[0]), p[1]); err != nil {
			return err
		}
	}
	return nil
}

// amount reads the constant of a charge.
func (w *walker) amount(least int64) (int64, error) {
	c := w.b.Const
	if !w.bok || w.claimed() || w.b.Op != binary.OpI64Const || c < least || c > mostCharge {
		return 0, w.fail("a charge of %d: at least %d expected", c, least)
	}
	w.next()
	return c, nil
}

// added checks that the place of an inserted pattern is a local that the input
// does not have: place 0 holds fuel, 1 a length.
func (w *walker) added(place int) (int64, error) {
	if len(w.types) <= place {
		return 0, w.fail("an inserted pattern uses a local of the input")
	}
	return int64(w.own) + int64(place), nil
}

const (
	gt   = int64(binary.OpGlobalGet)
	gs   = int64(binary.OpGlobalSet)
	lg   = int64(binary.OpLocalGet)
	lt   = int64(binary.OpLocalTee)
	cl   = int64(binary.OpCall)
	kons = int64(binary.OpI64Const)
	sub  = int64(binary.OpI64Sub)
	less = int64(binary.OpI64LtS)
	fi   = int64(binary.OpEnd)
)

// charge reads: fuel less a constant, and perhaps a test.
func (w *walker) charge() error {
	if err := w.pattern([2]int64{gt, int64(w.v.fuel)}); err != nil {
		return err
	}
	c, err := w.amount(0)
	if err != nil {
		return err
	}
	if c == 0 && w.bok && w.b.Op == binary.OpI64LtS { // nothing to pay: a test alone
		err := w.pattern(w.asks()...)
		w.tested()
		return err
	}
	if err := w.pattern([2]int64{sub}); err != nil {
		return err
	}
	w.st.paid += c
	w.st.owed = owes(w.st.owed, -c)
	if w.bok && w.b.Op == binary.OpGlobalSet {
		if err := w.untested(c); err != nil {
			return err
		}
		return w.pattern([2]int64{gs, int64(w.v.fuel)})
	}
	return w.settle()
}

// settle reads: store the counter, and ask the host if it is below zero.
func (w *walker) settle() error {
	t, err := w.added(0)
	if err != nil {
		return err
	}
	fuel := int64(w.v.fuel)
	err = w.pattern(append([][2]int64{{lt, t}, {gs, fuel}, {lg, t}, {kons, 0}}, w.asks()...)...)
	w.tested()
	return err
}

// asks is how a comparison with 0 goes on: the host is asked if the counter is below.
func (w *walker) asks() [][2]int64 {
	return [][2]int64{{less}, {int64(binary.OpIf), binary.BlockEmpty}, {kons, 0}, {cl, int64(w.v.first + helperRefuel)}, {fi}}
}

// tested notes that all paths to here passed a test.
func (w *walker) tested() {
	w.st.free, w.st.loop = false, never
	if w.st.first > none || w.st.since > none {
		w.st.first, w.st.since = none, 0
	}
}

// bulk reads the charge for the length that stands on the stack.
func (w *walker) bulk() error {
	n, err := w.added(1)
	if err != nil {
		return err
	}
	if err := w.pattern([2]int64{lt, n}, [2]int64{gt, int64(w.v.fuel)}, [2]int64{lg, n}, [2]int64{0xad},
		[2]int64{kons, 3}, [2]int64{0x88}, [2]int64{sub}); err != nil {
		return err
	}
	if err := w.settle(); err != nil {
		return err
	}
	if !w.bok || !w.claimed() || w.a.Op != binary.OpMemoryCopy && w.a.Op != binary.OpMemoryFill && w.a.Op != binary.OpMemoryInit {
		return w.fail("a length is charged before another instruction")
	}
	w.at = w.b.Pos
	return nil
}

// helperCall reads the call that pays for an operation on tables.
func (w *walker) helperCall() error {
	var want uint32
	switch w.a.Op {
	case binary.OpTableInit, binary.OpTableCopy, binary.OpTableFill:
		want = helperEntries
	case binary.OpTableGrow:
		want = helperGrow + w.a.A
	default:
		return w.fail("a call is neither in the input nor expected here")
	}
	if err := w.pattern([2]int64{cl, int64(w.v.first + want)}); err != nil {
		return err
	}
	if !w.bok || !w.claimed() {
		return w.fail("a length is charged before another instruction")
	}
	w.at = w.b.Pos
	return nil
}

// use takes n from what is paid.
func (w *walker) use(n int64) error {
	if !w.st.live {
		return nil
	}
	w.st.paid -= n
	if w.st.paid < 0 {
		return w.fail("%d units are used before they are paid", -w.st.paid)
	}
	if w.st.owed = owes(w.st.owed, n); w.st.owed > mostUnwound {
		return w.fail("%d units of work are paid before a call that may recurse, and done behind it; at most %d may be", w.st.owed, mostUnwound)
	}
	return nil
}

// branch takes the state to the block of the output that a label d names.
func (w *walker) branch(d int) error {
	if d >= len(w.opens) {
		return w.fail("no block %d to branch to", d)
	}
	at := len(w.opens) - 1 - d
	o := &w.opens[at]
	if !o.loop {
		o.end = o.end.merge(w.st)
		if at == 0 {
			w.leave()
		}
		return nil
	}
	if !w.st.live {
		return nil
	}
	w.goesOn(o)
	if w.st.paid < o.pays {
		return w.fail("%d units are paid where a loop goes on, and %d are taken as paid there", w.st.paid, o.pays)
	}
	if w.st.loop <= at {
		return w.fail("a loop goes on without a test on the way")
	}
	return nil
}

// follow checks that the branch of the output goes where that of the input went.
func (w *walker) follow(from, to uint32) error {
	if int(from) >= len(w.cons) {
		return w.fail("no construct %d to branch to", from)
	}
	if want := len(w.opens) - 1 - w.cons[len(w.cons)-1-int(from)].target; int(to) != want {
		return w.fail("a branch to block %d; to %d it went in the input", to, want)
	}
	return w.branch(int(to))
}

// same compares an instruction byte for byte.
func (w *walker) same() error {
	if !bytes.Equal(w.in.Body[w.a.Pos:w.a.End], w.body[w.b.Pos:w.b.End]) {
		return w.fail("an instruction of the input was changed")
	}
	return nil
}
