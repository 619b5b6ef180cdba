package meter

import (
	"openskill/wasm/binary"
)

// loop opens a loop. One that is tested, and takes no parameters, is laid out as
//
//	block (results)
//	  loop
//	    block
//	      charge, test, body, br 2
//	    end
//	    ask the host, br 0
//	  end
//	  unreachable
//	end
//
// so that the hot path has no merge, and the branches of the body go to the loop.
func (e *emitter) loop(h *node, in *binary.Instr) {
	switch {
	case h == nil: // dead code
		e.op(opLoop)
		e.blockType(in.Const)
		e.labels = append(e.labels, label{op: in.Op, abs: e.depth})
		e.depth++
	case !h.test || e.w.params(in.Const) > 0:
		e.op(opLoop)
		e.blockType(in.Const)
		e.labels = append(e.labels, label{op: in.Op, abs: e.depth})
		e.depth++
		e.charge(h.chg, h.test)
	default:
		e.op(opBlock)
		e.blockType(in.Const)
		e.op(opLoop, emptyBlock, opBlock, emptyBlock)
		e.head(h.chg)
		e.labels = append(e.labels, label{op: in.Op, abs: e.depth + 1, closes: e.closing(h.chg)})
		e.depth += 3
	}
}

// closing is what stands behind the body of a loop that loop laid out.
func (e *emitter) closing(need int64) []byte {
	b := []byte{opBr, 2, opEnd, byte(binary.OpI64Const)}
	b = binary.AppendS64(b, need)
	b = binary.AppendU32(append(b, byte(binary.OpCall)), e.w.refuel)
	return append(b, opBr, 0, opEnd, opUnreach, opEnd)
}

// loopExtra is how many blocks stand around a loop that was laid out by loop.
func loopExtra(closes []byte) int {
	if closes != nil {
		return 1
	}
	return 0
}

// small reports whether the loop is laid out several times: short, without calls
// or bulk operations, and without a type. A loop inside it may be laid out again,
// once, and a function may grow to three times its size by that.
func (e *emitter) small(h *node, in *binary.Instr, to int) bool {
	if in.Const != binary.BlockEmpty || !h.test || e.copying == 2 || len(e.out) > 3*len(e.code.Body)+1024 {
		return false
	}
	r := binary.NewReader(e.code.Body[:to], e.code.Offset)
	r.Seek(in.End)
	var x binary.Instr
	for depth := 0; r.Next(&x); {
		if x.Pos-in.End > copiesMaxBody {
			return false
		}
		switch x.Op {
		case binary.OpCall, binary.OpCallIndirect, binary.OpReturnCall, binary.OpReturnCallI,
			binary.OpMemoryGrow, binary.OpMemoryCopy, binary.OpMemoryFill, binary.OpMemoryInit,
			binary.OpTableCopy, binary.OpTableFill, binary.OpTableGrow, binary.OpTableInit:
			return false
		case binary.OpBlock, binary.OpIf, binary.OpLoop:
			depth++
		case binary.OpEnd:
			if depth == 0 {
				return true
			}
			depth--
		}
	}
	return false
}

// copied lays a small loop out several times under one charge, which pays for
// all copies, and gives the place behind its end in the input.
//
//	block
//	  loop
//	    block
//	      charge, test
//	      block body br 3 end   ;; a branch back goes on with the next copy
//	      …
//	      body, br 2            ;; in the last copy, to the loop
//	    end
//	    ask the host, br 0
//	  end
//	  unreachable
//	end
func (e *emitter) copied(h *node, in *binary.Instr) int {
	first := e.next
	end := e.endOf(in.End)
	need := copies * h.chg
	outer := e.depth
	e.op(opBlock, emptyBlock, opLoop, emptyBlock, opBlock, emptyBlock)
	e.depth += 3
	e.head(need)
	e.copying++
	for range copies - 1 {
		e.next = first
		e.op(opBlock, emptyBlock)
		e.labels = append(e.labels, label{op: in.Op, abs: e.depth})
		e.depth++
		e.body(in.End, end)
		e.arm(end)
		e.opu(opBr, uint32(e.depth-1-outer))
		e.depth--
		e.labels = e.labels[:len(e.labels)-1]
		e.op(opEnd)
	}
	e.next = first
	e.labels = append(e.labels, label{op: in.Op, abs: outer + 1})
	e.body(in.End, end)
	e.arm(end)
	e.labels = e.labels[:len(e.labels)-1]
	e.copying--
	e.out = append(e.out, e.closing(need)...)
	e.depth = outer
	return end + 1
}

// endOf finds the end that closes the block whose content begins at pos.
func (e *emitter) endOf(pos int) int {
	r := binary.NewReader(e.code.Body, e.code.Offset)
	r.Seek(pos)
	var x binary.Instr
	for depth := 0; r.Next(&x); {
		switch x.Op {
		case binary.OpBlock, binary.OpIf, binary.OpLoop:
			depth++
		case binary.OpEnd:
			if depth == 0 {
				return x.Pos
			}
			depth--
		}
	}
	return len(e.code.Body) - 1 // not reached: the module was validated
}
