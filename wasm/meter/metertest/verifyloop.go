package metertest

import (
	"openskill/wasm/binary"
)

// wrapper reads the head of a tested loop or function: a loop, a block, and the
// test that leaves the block without a trace. It gives what the test takes.
func (w *walker) wrapper() (need int64, err error) {
	if err := w.expect(binary.OpLoop, binary.BlockEmpty); err != nil {
		return 0, err
	}
	w.header()
	w.opens[len(w.opens)-1].role = roleAgain
	if err := w.expect(binary.OpBlock, binary.BlockEmpty); err != nil {
		return 0, err
	}
	w.opens = append(w.opens, open{role: roleHot})
	if err := w.expect(binary.OpGlobalGet, int64(w.v.fuel)); err != nil {
		return 0, err
	}
	if need, err = w.amount(1); err != nil {
		return 0, err
	}
	t, err := w.added(0)
	if err != nil {
		return 0, err
	}
	if err := w.pattern([2]int64{sub}, [2]int64{lt, t}, [2]int64{kons, 0}, [2]int64{less}, [2]int64{int64(binary.OpBrIf), 0}); err != nil {
		return 0, err
	}
	if err := w.branch(0); err != nil {
		return 0, err
	}
	if err := w.pattern([2]int64{lg, t}, [2]int64{gs, int64(w.v.fuel)}); err != nil {
		return 0, err
	}
	w.st.paid += need
	w.st.owed = owes(w.st.owed, -need)
	w.tested()
	return need, nil
}

// slow reads the slow path: the block ends, the host gives at least what the
// head takes, and the loop begins again.
func (w *walker) slow(need int64) error {
	if err := w.expect(binary.OpEnd, 0); err != nil {
		return err
	}
	w.st = w.opens[len(w.opens)-1].end // nothing falls out of the block
	w.opens = w.opens[:len(w.opens)-1]
	if err := w.pattern([2]int64{kons, need}, [2]int64{cl, int64(w.v.first + helperRefuel)}); err != nil {
		return err
	}
	w.tested()
	if err := w.branch(0); err != nil {
		return err
	}
	if err := w.pattern([2]int64{int64(binary.OpBr), 0}, [2]int64{fi}, [2]int64{int64(binary.OpUnreachable)}); err != nil {
		return err
	}
	w.opens = w.opens[:len(w.opens)-1]
	w.st = state{}
	return nil
}

// testedLoop opens a loop of the input that is laid out with a slow path.
func (w *walker) testedLoop() error {
	if w.a.Const != w.b.Const {
		return w.fail("a loop got another type")
	}
	if p, _ := w.arity(w.a.Const); p > 0 {
		return w.fail("a loop with parameters has a slow path")
	}
	c := w.push(binary.OpLoop, len(w.opens)+1)
	w.opens = append(w.opens, open{role: roleResult})
	c.body = w.a.End
	w.next()
	need, err := w.wrapper()
	if err != nil {
		return err
	}
	w.cons[len(w.cons)-1].need = need
	w.advance()
	return nil
}

// openCopy opens a copy of a small loop: a branch back goes on with what follows
// the copy.
func (w *walker) openCopy() error {
	c := &w.cons[len(w.cons)-1]
	if c.op != binary.OpLoop || c.results > 0 || !w.aok || w.a.Pos != c.body || c.target != len(w.opens)-2 {
		return w.fail("a copy of something else than a small loop")
	}
	if err := w.expect(binary.OpBlock, binary.BlockEmpty); err != nil {
		return err
	}
	c.target = len(w.opens)
	w.opens = append(w.opens, open{role: roleCopy})
	return nil
}

// closeCopy ends a copy: what falls out of the loop leaves all copies.
func (w *walker) closeCopy() error {
	c := &w.cons[len(w.cons)-1]
	if c.target != len(w.opens)-1 {
		return w.fail("a copy ends before the constructs in it")
	}
	const out = 3 // the copy, the hot block, the loop, and then the block around them
	if err := w.branch(out); err != nil {
		return err
	}
	if err := w.pattern([2]int64{int64(binary.OpBr), out}, [2]int64{fi}); err != nil {
		return err
	}
	w.st = w.opens[len(w.opens)-1].end
	w.st.height = c.base
	w.opens = w.opens[:len(w.opens)-1]
	c.target = len(w.opens) - 2
	w.src.Seek(c.body)
	w.advance()
	return nil
}

// closeLoop ends a tested loop.
func (w *walker) closeLoop() error {
	c := &w.cons[len(w.cons)-1]
	if c.op != binary.OpLoop || c.target != len(w.opens)-2 {
		return w.fail("the end of a loop stands in another construct")
	}
	const out = 2
	if err := w.branch(out); err != nil {
		return err
	}
	if err := w.expect(binary.OpBr, out); err != nil {
		return err
	}
	if err := w.slow(c.need); err != nil {
		return err
	}
	if err := w.expect(binary.OpEnd, 0); err != nil {
		return err
	}
	w.st = w.opens[len(w.opens)-1].end
	w.opens = w.opens[:len(w.opens)-1]
	w.close()
	return nil
}

// closeFunction ends a function that tests at its entry.
func (w *walker) closeFunction() error {
	w.leave()
	if err := w.expect(binary.OpReturn, 0); err != nil {
		return err
	}
	if err := w.slow(w.cons[0].need); err != nil {
		return err
	}
	if err := w.expect(binary.OpEnd, 0); err != nil {
		return err
	}
	w.opens = w.opens[:len(w.opens)-1]
	w.close()
	return nil
}
