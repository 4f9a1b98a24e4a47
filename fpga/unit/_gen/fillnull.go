package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// fillNull writes one kernel for each size of values and width of registers. The kernels fill nulls with bits, and
// do not depend on the type.
func fillNull() {
	fillKernel("fill64x512", "uint64", z512)
	fillKernel("fill32x512", "uint32", z512)
	fillKernel("fill64x256", "uint64", y256)
	fillKernel("fill32x256", "uint32", y256)
}

func fillKernel(name, kind string, w vector) {
	TEXT(name, NOSPLIT, "func(v *"+kind+", valid *byte, n int, fill "+kind+")")
	docOf(name, "fills the nulls among", w, kind)
	Pragma("noescape")
	v, valid := Load(Param("v"), GP64()), Load(Param("valid"), GP64())
	n := Load(Param("n"), GP64()).(reg.GPVirtual)
	e := elements(kind)
	lanes := w.bytes / e.size
	zero := w.reg()
	w.xor(zero, zero)
	var fill reg.VecVirtual
	switch {
	case e.size == 8:
		fill = w.param64("fill")
	case w.bits == 512:
		fill = w.param32("fill")
	default:
		fill = w.reg()
		x := XMM()
		VMOVD(Load(Param("fill"), GP32()), x)
		VPBROADCASTD(x, fill)
	}
	loop{n: n, lanes: lanes, masked: w.bits == 512,
		body: func(_ int, k reg.Register) {
			x, m := w.reg(), Mem{Base: v}
			e.load(m, k, x)
			if w.bits == 512 {
				flags, nulls := XMM(), K()
				switch {
				case k != nil:
					VMOVDQU8_Z(Mem{Base: valid}, k, flags)
				case lanes == 8:
					VMOVQ(Mem{Base: valid}, flags)
				default:
					VMOVDQU8(Mem{Base: valid}, flags)
				}
				VPTESTNMB(flags, flags, nulls)
				if e.size == 8 {
					VMOVDQA64(fill, nulls, x)
				} else {
					VMOVDQA32(fill, nulls, x)
				}
			} else {
				nulls := w.reg()
				if e.size == 8 {
					VPMOVZXBQ(Mem{Base: valid}, nulls)
					VPCMPEQQ(zero, nulls, nulls)
					VBLENDVPD(nulls, fill, x, x)
				} else {
					VPMOVZXBD(Mem{Base: valid}, nulls)
					VPCMPEQD(zero, nulls, nulls)
					VBLENDVPS(nulls, fill, x, x)
				}
			}
			e.store(x, k, m)
		},
		advance: func(elements int) {
			ADDQ(I32(e.size*elements), v)
			ADDQ(I32(elements), valid)
		}}.emit()
}
