package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// zeroExtend writes the unit and the narrowing of ids to 32 bits, in two widths.
func zeroExtend() {
	lowHalves("zeroExtend512", z512)
	lowHalves("zeroExtend256", y256)
	narrow512()
	narrow256()
}

func lowHalves(name string, w vector) {
	TEXT(name, NOSPLIT, "func(v *int64, n int)")
	docOf(name, "clears the upper halves of", w, "int64")
	Pragma("noescape")
	v := Load(Param("v"), GP64())
	n := Load(Param("n"), GP64()).(reg.GPVirtual)
	mask := w.all(1<<32 - 1)
	e := elements("int64")
	loop{n: n, lanes: w.lanes64(), unroll: 2, masked: w.bits == 512,
		body: func(vectors int, k reg.Register) {
			xs := w.regs(vectors)
			xs.each(func(i int, x reg.VecVirtual) { e.load(Mem{Base: v, Disp: i * w.bytes}, k, x) })
			xs.each(func(_ int, x reg.VecVirtual) {
				if w.bits == 512 {
					VPANDQ(mask, x, x)
				} else {
					VPAND(mask, x, x)
				}
			})
			xs.each(func(i int, x reg.VecVirtual) { e.store(x, k, Mem{Base: v, Disp: i * w.bytes}) })
		},
		advance: func(elements int) { ADDQ(I32(8*elements), v) }}.emit()
}

const narrowDoc = " copies the low halves of n numbers until one of the next 16 does not fit into an int32. It " +
	"returns the number of numbers copied."

func narrow512() {
	TEXT("narrow512", NOSPLIT, "func(dst *byte, src *int64, n int) (done int)")
	describe("narrow512" + narrowDoc)
	Pragma("noescape")
	dst, src := Load(Param("dst"), GP64()), Load(Param("src"), GP64())
	n, total := Load(Param("n"), GP64()).(reg.GPVirtual), GP64()
	MOVQ(n, total)
	loop{n: n, lanes: 16, masked: true,
		body: func(_ int, k reg.Register) {
			halves := []reg.Register{k, nil}
			if k != nil {
				up := K()
				KSHIFTRW(Imm(8), k, up)
				halves[1] = up
			}
			xs := z512.regs(2)
			wrong := K()
			low := []reg.VecVirtual{YMM(), YMM()}
			xs.each(func(i int, x reg.VecVirtual) {
				load64(Mem{Base: src, Disp: 64 * i}, halves[i], x)
				back, differs := ZMM(), K()
				VPMOVQD(x, low[i])
				VPMOVSXDQ(low[i], back)
				VPCMPUQ(Imm(4), back, x, differs)
				if i == 0 {
					KMOVW(differs, wrong)
				} else {
					KORW(differs, wrong, wrong)
				}
			})
			KORTESTW(wrong, wrong)
			JNZ(LabelRef("end"))
			packed := ZMM()
			VINSERTI64X4(Imm(1), low[1], low[0].AsZ(), packed)
			store32(packed, k, Mem{Base: dst})
		},
		advance: func(elements int) {
			ADDQ(I32(8*elements), src)
			ADDQ(I32(4*elements), dst)
		},
		end: func() {
			SUBQ(n, total)
			Store(total, ReturnIndex(0))
		}}.emit()
}

func narrow256() {
	TEXT("narrow256", NOSPLIT, "func(dst *byte, src *int64, n int) (done int)")
	describe("narrow256" + narrowDoc + " It copies n/8*8 at most.")
	Pragma("noescape")
	dst, src := Load(Param("dst"), GP64()), Load(Param("src"), GP64())
	n, total := Load(Param("n"), GP64()).(reg.GPVirtual), GP64()
	MOVQ(n, total)
	loop{n: n, lanes: 8,
		body: func(_ int, _ reg.Register) {
			a, b, low, high := YMM(), YMM(), YMM(), YMM()
			VMOVUPS(Mem{Base: src}, a)
			VMOVUPS(Mem{Base: src, Disp: 32}, b)
			VSHUFPS(Imm(0x88), b, a, low)
			VSHUFPS(Imm(0xdd), b, a, high)
			sign := YMM()
			VPSRAD(Imm(31), low, sign)
			VPXOR(sign, high, high)
			VPTEST(high, high)
			JNZ(LabelRef("end"))
			VPERMQ(Imm(0xd8), low, low)
			VMOVDQU(low, Mem{Base: dst})
		},
		advance: func(elements int) {
			ADDQ(I32(8*elements), src)
			ADDQ(I32(4*elements), dst)
		},
		end: func() {
			SUBQ(n, total)
			Store(total, ReturnIndex(0))
		}}.emit()
}
