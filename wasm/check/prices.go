package check

import "openskill/wasm/binary"

// price is what one instruction costs beside the structure that it stands in:
// nanoseconds, and bytes that the compiler keeps until the function is done.
type price struct{ ns, bytes int32 }

// prices were measured with functions of many instructions of one kind, in a
// process of its own, and lowered to what they cost among others.
var prices = buildPrices()

// The parts of prices that depend on more than the instruction.
const (
	priceTest     = 2_500 // of an address; and as many bytes
	priceArgument = 500   // a parameter or result of a call
	bytesArgument = 400
	priceBranch   = 800   // a value that a branch carries
	priceTarget   = 4_500 // of a branch table
	priceReload   = 200   // a global that is read anew after a call
	bytesReload   = 150
)

// What package amend makes of a select of floats, and of one of vectors. The prices of other
// instructions are those of what it makes of them, on the processor where that is more.
var (
	priceChoice       = price{900, 1_200}
	priceChoiceVector = price{6_500, 5_000}
)

func buildPrices() (t [0x300]price) {
	for i := range t {
		t[i] = price{220, 300}
	}
	for i := 0x200; i < 0x300; i++ {
		t[i] = price{1_000, 800} // vectors
	}
	for i := 0x28; i <= 0x3e; i++ {
		t[i] = price{300, 500} // loads and stores, without the test of the address
	}
	for _, p := range []struct {
		ops   []binary.Op
		price price
	}{
		{[]binary.Op{binary.OpNop, binary.OpDrop}, price{10, 0}},
		{[]binary.Op{binary.OpLocalGet, binary.OpLocalSet, binary.OpLocalTee}, price{30, 0}},
		{[]binary.Op{binary.OpI32Const, binary.OpI64Const}, price{50, 150}},
		{[]binary.Op{binary.OpGlobalGet, binary.OpGlobalSet, binary.OpTableSize, 0x3f}, price{500, 500}},
		{[]binary.Op{0x95, 0x9a, 0xa3}, price{600, 500}}, // divisions and negations of floats
		{[]binary.Op{0x96, 0x97, 0xa4, 0xa5}, price{2_500, 2_000}},
		{[]binary.Op{0x98, 0xa6}, price{3_000, 2_500}},                                                                         // copysign
		{[]binary.Op{0xb5, 0xba}, price{2_500, 3_500}},                                                                         // conversions of unsigned numbers
		{[]binary.Op{0x67, 0x68, 0x79, 0x7a}, price{900, 1_000}},                                                               // clz, ctz
		{[]binary.Op{0x6d, 0x6e, 0x7f, 0x80}, price{3_000, 2_000}},                                                             // divisions
		{[]binary.Op{0x6f, 0x70, 0x81, 0x82}, price{4_000, 3_500}},                                                             // remainders, which may become divisions
		{[]binary.Op{0xa8, 0xa9, 0xaa, 0xab, 0xae, 0xaf, 0xb0, 0xb1}, price{6_000, 6_000}},                                     // conversions that trap
		{[]binary.Op{0x100, 0x101, 0x102, 0x103, 0x104, 0x105, 0x106, 0x107}, price{3_000, 4_000}},                             // that saturate
		{[]binary.Op{0x20f}, price{1_500, 1_500}},                                                                              // i8x16.splat
		{[]binary.Op{0x207}, price{2_500, 2_500}},                                                                              // v128.load8_splat
		{[]binary.Op{0x224, 0x229, 0x22b, 0x22e, 0x233, 0x235, 0x238, 0x23d, 0x23f, 0x2d7, 0x2da, 0x2db}, price{2_000, 1_800}}, // comparisons
		{[]binary.Op{0x226, 0x228, 0x230, 0x232, 0x23a, 0x23c}, price{3_200, 2_800}},                                           // of unsigned numbers
		{[]binary.Op{0x264, 0x284, 0x2a4, 0x2c4}, price{6_000, 7_500}},                                                         // bitmasks
		{[]binary.Op{0x26b, 0x26d}, price{6_500, 5_500}},                                                                       // i8x16.shl, shr_u
		{[]binary.Op{0x26c}, price{18_500, 11_500}},                                                                            // i8x16.shr_s
		{[]binary.Op{0x252, 0x2d5, 0x2dc, 0x2dd, 0x2de, 0x2df}, price{7_500, 7_000}},                                           // bitselect, products
		{[]binary.Op{0x20d, 0x2e8, 0x2e9, 0x2f4, 0x2f5}, price{11_500, 8_500}},                                                 // shuffle, min, max
		{[]binary.Op{0x262}, price{20_500, 11_500}},                                                                            // i8x16.popcnt
		{[]binary.Op{0x20e, 0x27f, 0x28b, 0x28c, 0x28d, 0x29d, 0x29e, 0x29f}, price{3_000, 2_000}},                             // many instructions each
		{[]binary.Op{0x2ab, 0x2ac, 0x2ad, 0x2bd, 0x2bf, 0x2c0, 0x2cb, 0x2cc, 0x2cd}, price{3_000, 2_000}},
		{[]binary.Op{0x2fa, 0x2fe}, price{4_000, 2_500}},
		{[]binary.Op{0x2f8, 0x2f9}, price{34_500, 21_500}}, // conversions of vectors, lane by lane
		{[]binary.Op{0x2fc, 0x2fd}, price{15_500, 11_500}},
		{[]binary.Op{0x2fb}, price{19_000, 11_500}},
		{[]binary.Op{0x2ff}, price{8_500, 5_500}},
		{[]binary.Op{0x2ba}, price{30_500, 15_500}}, // i32x4.dot_i16x8_s
		{[]binary.Op{binary.OpTableGet}, price{4_000, 3_500}},
		{[]binary.Op{binary.OpTableSet}, price{5_000, 3_500}},
		{[]binary.Op{binary.OpCall, binary.OpReturnCall}, price{1_000, 1_500}},
		{[]binary.Op{binary.OpCallIndirect, binary.OpReturnCallI}, price{12_000, 12_000}},
		{[]binary.Op{binary.OpRefFunc}, price{4_050, 3_650}}, // a constant and table.get, see package amend
		{[]binary.Op{binary.OpMemoryGrow, binary.OpTableGrow}, price{4_000, 4_000}},
		{[]binary.Op{binary.OpMemoryCopy}, price{20_000, 12_000}},
		{[]binary.Op{binary.OpMemoryFill, binary.OpMemoryInit, binary.OpTableCopy, binary.OpTableInit}, price{30_000, 18_000}},
		{[]binary.Op{binary.OpTableFill}, price{70_000, 20_000}},
	} {
		for _, op := range p.ops {
			t[op] = p.price
		}
	}
	return t
}
