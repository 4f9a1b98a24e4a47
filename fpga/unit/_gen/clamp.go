package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// clampKernels writes one kernel for each type and width.
func clampKernels() {
	clampKernel("clampInt64x512", "int64", z512)
	clampKernel("clampFloat32x512", "float32", z512)
	clampKernel("clampFloat64x512", "float64", z512)
	clampKernel("clampInt64x256", "int64", y256)
	clampKernel("clampFloat32x256", "float32", y256)
	clampKernel("clampFloat64x256", "float64", y256)
}

func clampKernel(name, kind string, w vector) {
	TEXT(name, NOSPLIT, "func(v *"+kind+", n int, lo, hi "+kind+")")
	docOf(name, "clamps", w, kind)
	Pragma("noescape")
	v := Load(Param("v"), GP64())
	n := Load(Param("n"), GP64()).(reg.GPVirtual)
	var lo, hi reg.VecVirtual
	if kind == "float32" {
		lo, hi = w.paramFloat32("lo"), w.paramFloat32("hi")
	} else {
		lo, hi = w.param64("lo"), w.param64("hi")
	}
	e := elements(kind)
	loop{n: n, lanes: w.bytes / e.size, unroll: 2, masked: w.bits == 512,
		body: func(vectors int, k reg.Register) {
			xs := w.regs(vectors)
			xs.each(func(i int, x reg.VecVirtual) { e.load(Mem{Base: v, Disp: i * w.bytes}, k, x) })
			xs.each(func(_ int, x reg.VecVirtual) { clamp(kind, w, lo, hi, x) })
			xs.each(func(i int, x reg.VecVirtual) { e.store(x, k, Mem{Base: v, Disp: i * w.bytes}) })
		},
		advance: func(elements int) { ADDQ(I32(e.size*elements), v) }}.emit()
}

// clamp is x < lo ? lo : (hi < x ? hi : x). The instructions for floats return their second operand unless the first
// is larger (smaller), so that a NaN and a zero of either sign stay what they are.
func clamp(kind string, w vector, lo, hi, x reg.VecVirtual) {
	switch {
	case kind == "float32":
		VMAXPS(x, lo, x)
		VMINPS(x, hi, x)
	case kind == "float64":
		VMAXPD(x, lo, x)
		VMINPD(x, hi, x)
	case w.bits == 512:
		VPMAXSQ(lo, x, x)
		VPMINSQ(hi, x, x)
	default:
		past := w.reg()
		VPCMPGTQ(x, lo, past)
		VBLENDVPD(past, lo, x, x)
		VPCMPGTQ(hi, x, past)
		VBLENDVPD(past, hi, x, x)
	}
}
