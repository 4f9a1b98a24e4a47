package main

import (
	"strconv"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// tileStride is rowmajor.Stride: the floats from one column of a tile to the next.
const tileStride = 8192 + 16

// rowMajor writes the transposition of a tile, as float32 and rounded to bfloat16.
func rowMajor() {
	transposition256("rows256", 4, false)
	transposition256("rowsBFloat256", 8, true)
	transposition("rows512", "writes the first rows/16*16 rows of up to 16 columns, stride bytes apart.",
		func(row reg.VecVirtual, k reg.OpmaskVirtual, to Mem) { VMOVUPS(row, k, to) })
	transposition("rowsBFloat512",
		"writes the first rows/16*16 rows of up to 16 columns as bfloat16, stride bytes apart.",
		func(row reg.VecVirtual, k reg.OpmaskVirtual, to Mem) {
			// x + 7fffh + (bit 16 of x): package bfloat16 says why.
			rounded, unordered := ZMM(), K()
			VCMPPS(Imm(3), row, row, unordered)
			VPSRLD(Imm(16), row, rounded)
			VPANDD_BCST(word(1), rounded, rounded)
			VPADDD_BCST(word(0x7fff), rounded, rounded)
			VPADDD(row, rounded, rounded)
			VPSRLD(Imm(16), rounded, rounded)
			VPBROADCASTD(word(0x7fc0), unordered, rounded)
			VPMOVDW(rounded, k, to)
		})
}

// rowsAhead is how far ahead of the rows that a kernel writes it prefetches. Rows lie so far apart that every other one
// is in a page of its own, which no prefetcher foresees.
const rowsAhead = 32

// transposition writes a kernel that takes 16 rows of 16 columns at a time and stores row after row.
func transposition(name, does string, store func(row reg.VecVirtual, k reg.OpmaskVirtual, to Mem)) {
	TEXT(name, NOSPLIT, "func(dst *byte, stride int, tile *float32, rows, columns int)")
	describe(name + " " + does)
	Pragma("noescape")
	dst, stride := Load(Param("dst"), GP64()), Load(Param("stride"), GP64())
	tile := Load(Param("tile"), GP64())
	n := Load(Param("rows"), GP64()).(reg.GPVirtual)
	k := firstLanes(Load(Param("columns"), GP64()))
	ahead := GP64()
	IMUL3Q(I32(rowsAhead), stride, ahead)
	ADDQ(dst, ahead)
	loop{n: n, lanes: 16,
		body: func(int, reg.Register) {
			r := z512.regs(16)
			r.each(func(c int, x reg.VecVirtual) { VMOVUPS(Mem{Base: tile, Disp: 4 * tileStride * c}, x) })
			// Pairs of columns, then fours, are interleaved inside each 128 bits; then the 128 bits are put in order, twice.
			t := z512.regs(16)
			for i := 0; i < 16; i += 2 {
				VUNPCKLPS(r[i+1], r[i], t[i])
				VUNPCKHPS(r[i+1], r[i], t[i+1])
			}
			for i := 0; i < 16; i += 4 {
				VUNPCKLPD(t[i+2], t[i], r[i])
				VUNPCKHPD(t[i+2], t[i], r[i+1])
				VUNPCKLPD(t[i+3], t[i+1], r[i+2])
				VUNPCKHPD(t[i+3], t[i+1], r[i+3])
			}
			for i := range 4 {
				VSHUFF32X4(Imm(0x88), r[i+4], r[i], t[i])
				VSHUFF32X4(Imm(0xdd), r[i+4], r[i], t[i+4])
				VSHUFF32X4(Imm(0x88), r[i+12], r[i+8], t[i+8])
				VSHUFF32X4(Imm(0xdd), r[i+12], r[i+8], t[i+12])
			}
			for i := range 8 {
				VSHUFF32X4(Imm(0x88), t[i+8], t[i], r[i])
				VSHUFF32X4(Imm(0xdd), t[i+8], t[i], r[i+8])
			}
			r.each(func(_ int, x reg.VecVirtual) {
				store(x, k, Mem{Base: dst})
				ADDQ(stride, dst)
				PREFETCHT0(Mem{Base: ahead})
				ADDQ(stride, ahead)
			})
		},
		advance: func(elements int) { ADDQ(I32(4*elements), tile) }}.emit()
}

// transposition256 writes a kernel that takes four rows of 16 columns at a time. The four rows of a column are one load
// of 128 bits. Two columns, with numbers that differ by apart, become the halves of a register, so that interleaving
// inside the halves is enough: apart is such that the rows, or their bfloat16, need no further permutation.
func transposition256(name string, apart int, bfloat bool) {
	does := "writes the first rows/4*4 rows of up to 16 columns"
	if bfloat {
		does += " as bfloat16"
	}
	TEXT(name, NOSPLIT, "func(dst *byte, stride int, tile *float32, rows, columns int)")
	describe(name + " " + does + ", stride bytes apart.")
	Pragma("noescape")
	dst, stride := Load(Param("dst"), GP64()), Load(Param("stride"), GP64())
	tile := Load(Param("tile"), GP64())
	n, columns := Load(Param("rows"), GP64()), Load(Param("columns"), GP64())
	ahead := GP64()
	IMUL3Q(I32(rowsAhead), stride, ahead)
	ADDQ(dst, ahead)
	rows := func(prefix string, store func(row string, x, y reg.VecVirtual)) {
		Label(prefix)
		CMPQ(n, I32(4))
		JL(LabelRef("end"))
		var blocks [2]vectors
		for b := range blocks {
			r, t := y256.regs(4), y256.regs(2)
			r.each(func(i int, x reg.VecVirtual) {
				column := i + (12-apart)*b
				VMOVUPS(Mem{Base: tile, Disp: 4 * tileStride * column}, x.AsX())
				VINSERTF128(Imm(1), Mem{Base: tile, Disp: 4 * tileStride * (column + apart)}, x, x)
			})
			for i, t := range t {
				VUNPCKLPS(r[2*i+1], r[2*i], t)
				VUNPCKHPS(r[2*i+1], r[2*i], r[2*i+1])
			}
			VUNPCKLPD(t[1], t[0], r[0])
			VUNPCKHPD(t[1], t[0], r[2])
			VUNPCKLPD(r[3], r[1], t[0])
			VUNPCKHPD(r[3], r[1], r[3])
			blocks[b] = vectors{r[0], r[2], t[0], r[3]}
		}
		for i := range 4 {
			store(prefix+strconv.Itoa(i), blocks[0][i], blocks[1][i])
			ADDQ(stride, dst)
			PREFETCHT0(Mem{Base: ahead})
			ADDQ(stride, ahead)
		}
		ADDQ(I32(16), tile)
		SUBQ(I32(4), n)
		JMP(LabelRef(prefix))
	}
	if bfloat {
		bfloatRows(rows, columns, dst)
	} else {
		floatRows(rows, columns, dst)
	}
	Label("end")
	VZEROUPPER()
	RET()
}

// floatRows stores two registers a row.
func floatRows(rows func(prefix string, store func(row string, x, y reg.VecVirtual)), columns, dst reg.Register) {
	CMPQ(columns, I32(16))
	JL(LabelRef("narrow"))
	rows("whole", func(_ string, x, y reg.VecVirtual) {
		VMOVUPS(x, Mem{Base: dst})
		VMOVUPS(y, Mem{Base: dst, Disp: 32})
	})
	Label("narrow")
	few := lanesBelow(columns)
	CMPQ(columns, I32(8))
	JLE(LabelRef("few"))
	SUBQ(I32(8), columns)
	many := lanesBelow(columns)
	rows("many", func(_ string, x, y reg.VecVirtual) {
		VMOVUPS(x, Mem{Base: dst})
		VMASKMOVPS(y, many, Mem{Base: dst, Disp: 32})
	})
	rows("few", func(_ string, x, _ reg.VecVirtual) { VMASKMOVPS(x, few, Mem{Base: dst}) })
}

// bfloatRows stores one register a row. With an odd number of columns the last one, of two bytes, is stored by itself.
func bfloatRows(rows func(prefix string, store func(row string, x, y reg.VecVirtual)), columns, dst reg.Register) {
	round := func(x, y reg.VecVirtual) {
		for _, x := range []reg.VecVirtual{x, y} {
			// x + 7fffh + (bit 16 of x), as above.
			rounded, unordered := YMM(), YMM()
			VCMPPS(Imm(3), x, x, unordered)
			VPSRLD(Imm(16), x, rounded)
			VPAND(words256(1<<32|1), rounded, rounded)
			VPADDD(words256(0x7fff<<32|0x7fff), rounded, rounded)
			VPADDD(x, rounded, rounded)
			VPSRLD(Imm(16), rounded, rounded)
			VBLENDVPS(unordered, words256(0x7fc0<<32|0x7fc0), rounded, x)
		}
		VPACKUSDW(y, x, x)
	}
	CMPQ(columns, I32(16))
	JL(LabelRef("narrow"))
	rows("whole", func(_ string, x, y reg.VecVirtual) {
		round(x, y)
		VMOVDQU(x, Mem{Base: dst})
	})
	Label("narrow")
	row, pairs, last, value := AllocLocal(32), GP64(), GP64(), GP64()
	MOVQ(columns, pairs)
	SHRQ(Imm(1), pairs)
	mask := lanesBelow(pairs)
	LEAQ(row, last)
	LEAQ(Mem{Base: last, Index: columns, Scale: 2, Disp: -2}, last)
	rows("part", func(name string, x, y reg.VecVirtual) {
		round(x, y)
		TESTQ(pairs, pairs)
		JZ(LabelRef(name + "odd"))
		VPMASKMOVD(x, mask, Mem{Base: dst})
		TESTQ(I32(1), columns)
		JZ(LabelRef(name + "stored"))
		Label(name + "odd")
		VMOVDQU(x, row)
		MOVWLZX(Mem{Base: last}, value.As32())
		MOVW(value.As16(), Mem{Base: dst, Index: columns, Scale: 2, Disp: -2})
		Label(name + "stored")
	})
}

// lanesBelow returns a mask of the 32-bit lanes below n.
func lanesBelow(n reg.Register) reg.VecVirtual {
	numbers, mask := YMM(), YMM()
	VPMOVZXBD(laneNumbers(), numbers)
	VMOVD(n.(reg.GPVirtual).As32(), mask.AsX())
	VPBROADCASTD(mask.AsX(), mask)
	VPCMPGTD(numbers, mask, mask)
	return mask
}
