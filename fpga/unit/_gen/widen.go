package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// widenKernels writes the kernels that store 32-bit integers, which lie anywhere in memory, as int64. They work on
// whole vectors, and the caller does the rest.
func widenKernels() {
	widen("int32ToInt64", z512, func(m Op, x reg.Register) { VPMOVSXDQ(m, x) })
	widen("uint32ToInt64", z512, func(m Op, x reg.Register) { VPMOVZXDQ(m, x) })
	widen("int32ToInt64", y256, func(m Op, x reg.Register) { VPMOVSXDQ(m, x) })
	widen("uint32ToInt64", y256, func(m Op, x reg.Register) { VPMOVZXDQ(m, x) })
}

func widen(name string, w vector, extend func(m Op, x reg.Register)) {
	name += map[int]string{256: "x256", 512: "x512"}[w.bits]
	TEXT(name, NOSPLIT, "func(dst *int64, src *byte, n int)")
	describe(name + " extends the first whole vectors of n values.")
	Pragma("noescape")
	dst, src := Load(Param("dst"), GP64()), Load(Param("src"), GP64())
	n := Load(Param("n"), GP64()).(reg.GPVirtual)
	loop{n: n, lanes: w.lanes64(), unroll: 4,
		body: func(vectors int, _ reg.Register) {
			w.regs(vectors).each(func(i int, x reg.VecVirtual) {
				extend(Mem{Base: src, Disp: i * w.bytes / 2}, x)
				storeWhole(w, x, Mem{Base: dst, Disp: i * w.bytes})
			})
		},
		advance: func(elements int) {
			ADDQ(I32(4*elements), src)
			ADDQ(I32(8*elements), dst)
		}}.emit()
}

// storeWhole stores a whole register.
func storeWhole(w vector, x reg.Register, m Mem) {
	if w.bits == 512 {
		VMOVDQU64(x, m)
	} else {
		VMOVDQU(x, m)
	}
}
