package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// tileStride is rowmajor.Stride: the floats from one column of a tile to the next.
const tileStride = 8192 + 16

// rowMajor writes the transposition of a tile, as float32 and rounded to bfloat16.
func rowMajor() {
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

// transposition writes a kernel that takes 16 rows of 16 columns at a time and stores row after row.
func transposition(name, does string, store func(row reg.VecVirtual, k reg.OpmaskVirtual, to Mem)) {
	TEXT(name, NOSPLIT, "func(dst *byte, stride int, tile *float32, rows, columns int)")
	describe(name + " " + does)
	Pragma("noescape")
	dst, stride := Load(Param("dst"), GP64()), Load(Param("stride"), GP64())
	tile := Load(Param("tile"), GP64())
	n := Load(Param("rows"), GP64()).(reg.GPVirtual)
	k := firstLanes(Load(Param("columns"), GP64()))
	// Rows lie so far apart that every other one is in a page of its own, which no prefetcher foresees.
	const rowsAhead = 32
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
