package main

import (
	"strconv"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// textColumns writes the kernels that turn rows into columns: eight rows of eight cells are widened and transposed
// in registers.
func textColumns(name string, signs bool) {
	if signs {
		TEXT(name, NOSPLIT, "func(dst **int64, src *byte, first, rows, ahead int, signed uint8)")
		describe(name + " writes rows/8*8 rows of eight 32-bit cells, which lie 160 bytes apart, to eight columns, from " +
			"element first on. The cells of the columns whose bit is set in signed are sign-extended. A nil column is " +
			"left out. For each row the kernel prefetches 32 bytes, from ahead bytes behind src on.")
	} else {
		TEXT(name, NOSPLIT, "func(dst **int64, src *byte, first, rows, ahead int)")
		describe(name + " does what columns512 does if no column is signed.")
	}
	Pragma("noescape")
	dst, src := Load(Param("dst"), GP64()), Load(Param("src"), GP64())
	first, n := Load(Param("first"), GP64()), Load(Param("rows"), GP64()).(reg.GPVirtual)
	soon := Load(Param("ahead"), GP64())
	ADDQ(src, soon)
	signed512 := K()
	if signs {
		mask := GP32()
		Load(Param("signed"), mask.As8())
		MOVBLZX(mask.As8(), mask)
		KMOVB(mask, signed512)
	}
	loop{n: n, lanes: 8,
		body: func(int, reg.Register) {
			for i := range 4 {
				PREFETCHT0(Mem{Base: soon, Disp: 64 * i})
			}
			r, t := z512.regs(8), z512.regs(8)
			r.each(func(i int, x reg.VecVirtual) {
				m := Mem{Base: src, Disp: 4 * textFields * i}
				VPMOVZXDQ(m, x)
				if signs {
					VPMOVSXDQ(m, signed512, x)
				}
			})
			for i := 0; i < 8; i += 2 {
				VPUNPCKLQDQ(r[i+1], r[i], t[i])
				VPUNPCKHQDQ(r[i+1], r[i], t[i+1])
			}
			for i := range 2 {
				for j := 0; j < 8; j += 4 {
					VSHUFI64X2(Imm(0x88), t[i+j+2], t[i+j], r[i+j])
					VSHUFI64X2(Imm(0xdd), t[i+j+2], t[i+j], r[i+j+2])
				}
			}
			for i := range 4 {
				VSHUFI64X2(Imm(0x88), r[i+4], r[i], t[i])
				VSHUFI64X2(Imm(0xdd), r[i+4], r[i], t[i+4])
			}
			t.each(func(i int, x reg.VecVirtual) {
				column := GP64()
				skip := "none" + strconv.Itoa(i)
				MOVQ(Mem{Base: dst, Disp: 8 * i}, column)
				TESTQ(column, column)
				JZ(LabelRef(skip))
				VMOVDQU64(x, Mem{Base: column, Index: first, Scale: 8})
				Label(skip)
			})
		},
		advance: func(elements int) {
			ADDQ(I32(4*textFields*elements), src)
			ADDQ(I32(4*8*elements), soon)
			ADDQ(I32(elements), first)
		}}.emit()
}

// textValidity writes the kernel that turns a plane of bits into eight columns of bytes.
func textValidity() {
	TEXT("validity512", NOSPLIT, "func(dst **byte, plane *byte, first, rows int)")
	describe("validity512 writes at most 64 rows of a plane, which has a byte for each row, to eight columns of " +
		"bytes, from element first on: column i gets bit i of each byte. A nil column is left out.")
	Pragma("noescape")
	dst, plane := Load(Param("dst"), GP64()), Load(Param("plane"), GP64())
	first := Load(Param("first"), GP64())
	rows := firstLanes(Load(Param("rows"), GP64()))
	ones, bits := z512.all(0x0101010101010101), ZMM()
	bit := z512.all(0x0101010101010101)
	VMOVDQU64(Mem{Base: plane}, bits)
	for i := range 8 {
		column, set, x := GP64(), K(), ZMM()
		skip := "none" + strconv.Itoa(i)
		MOVQ(Mem{Base: dst, Disp: 8 * i}, column)
		TESTQ(column, column)
		JZ(LabelRef(skip))
		VPTESTMB(bit, bits, set)
		VMOVDQU8_Z(ones, set, x)
		VMOVDQU8(x, rows, Mem{Base: column, Index: first, Scale: 1})
		Label(skip)
		VPADDB(bit, bit, bit)
	}
	VZEROUPPER()
	RET()
}

// text256Columns writes the kernels that turn rows into columns, four by four, for groups of which all cells, the
// first six, or none are signed.
func text256Columns() {
	for _, kind := range []struct {
		name, what string
		signed     int
	}{{"signed256", "are signed", 8}, {"mixed256", "are signed but for the last two", mixedDecimals}, {"unsigned256", "are not signed", 0}} {
		TEXT(kind.name, NOSPLIT, "func(dst **int64, src *byte, first, rows, ahead int)")
		describe(kind.name + " does what columns512 does, with AVX2, where a group's cells " + kind.what + ".")
		Pragma("noescape")
		dst, src := Load(Param("dst"), GP64()), Load(Param("src"), GP64())
		first, n := Load(Param("first"), GP64()), Load(Param("rows"), GP64()).(reg.GPVirtual)
		soon := Load(Param("ahead"), GP64())
		ADDQ(src, soon)
		loop{n: n, lanes: 8,
			body: func(int, reg.Register) {
				for i := range 4 {
					PREFETCHT0(Mem{Base: soon, Disp: 64 * i})
				}
				for half := range 2 {
					for block := range 2 {
						r, t := y256.regs(4), y256.regs(4)
						r.each(func(i int, x reg.VecVirtual) {
							load256(Mem{Base: src, Disp: 4*textFields*(4*block+i) + 16*half}, kind.signed-4*half, x)
						})
						for i := 0; i < 4; i += 2 {
							VPUNPCKLQDQ(r[i+1], r[i], t[i])
							VPUNPCKHQDQ(r[i+1], r[i], t[i+1])
						}
						for i := range 4 {
							VPERM2I128(U8(0x20+0x11*(i/2)), t[2+i%2], t[i%2], r[i])
						}
						r.each(func(i int, x reg.VecVirtual) {
							column := GP64()
							skip := "none" + strconv.Itoa(8*block+4*half+i)
							MOVQ(Mem{Base: dst, Disp: 8 * (4*half + i)}, column)
							TESTQ(column, column)
							JZ(LabelRef(skip))
							VMOVDQU(x, Mem{Base: column, Index: first, Scale: 8, Disp: 32 * block})
							Label(skip)
						})
					}
				}
			},
			advance: func(elements int) {
				ADDQ(I32(4*textFields*elements), src)
				ADDQ(I32(4*8*elements), soon)
				ADDQ(I32(elements), first)
			}}.emit()
	}
}

// load256 widens four cells. signed is the number of cells, from the first on, that are signed.
func load256(m Mem, signed int, x reg.VecVirtual) {
	switch {
	case signed >= 4:
		VPMOVSXDQ(m, x)
	case signed <= 0:
		VPMOVZXDQ(m, x)
	default:
		y := YMM()
		VPMOVSXDQ(m, x)
		VPMOVZXDQ(m, y)
		VPBLENDD(U8(0xff<<(2*signed)&0xff), y, x, x)
	}
}

// text256Validity writes the kernel that turns a plane of bits into eight columns of bytes, for a whole block.
func text256Validity() {
	TEXT("validity256", NOSPLIT, "func(dst **byte, plane *byte, first int)")
	describe("validity256 does what validity512 does, for 64 rows, with AVX2.")
	Pragma("noescape")
	dst, plane := Load(Param("dst"), GP64()), Load(Param("plane"), GP64())
	first := Load(Param("first"), GP64())
	ones, bit := y256.all(0x0101010101010101), y256.all(0x0101010101010101)
	bits := y256.regs(2)
	bits.each(func(i int, x reg.VecVirtual) { VMOVDQU(Mem{Base: plane, Disp: 32 * i}, x) })
	for i := range 8 {
		column := GP64()
		skip := "none" + strconv.Itoa(i)
		MOVQ(Mem{Base: dst, Disp: 8 * i}, column)
		TESTQ(column, column)
		JZ(LabelRef(skip))
		bits.each(func(half int, x reg.VecVirtual) {
			y := YMM()
			VPAND(bit, x, y)
			VPCMPEQB(bit, y, y)
			VPAND(ones, y, y)
			VMOVDQU(y, Mem{Base: column, Index: first, Scale: 1, Disp: 32 * half})
		})
		Label(skip)
		VPADDB(bit, bit, bit)
	}
	VZEROUPPER()
	RET()
}
