package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// positiveModulus writes six kernels: two widths, and divisors of two sizes and powers of two.
func positiveModulus() {
	modKernel("modWide512", "AVX-512", z512, newWide512)
	modKernel("modSmall512", "AVX-512", z512, newSmall512)
	modKernel("modWide256", "AVX2", y256, newWide256)
	modKernel("modSmall256", "AVX2", y256, newSmall256)
	maskKernel("modMask512", "AVX-512", z512)
	maskKernel("modMask256", "AVX2", y256)
}

// maskKernel writes the modulus of a power of two: the lower bits, of negative numbers too.
func maskKernel(name, set string, v vector) {
	TEXT(name, NOSPLIT, "func(dst, src *int64, n int, mask uint64)")
	if v.bits == 512 {
		describe(name + " takes the lower bits of n numbers with " + set + ".")
	} else {
		describe(name + " takes the lower bits of the first n/4*4 of n numbers with " + set + ".")
	}
	Pragma("noescape")
	dst, src := Load(Param("dst"), GP64()), Load(Param("src"), GP64())
	n := Load(Param("n"), GP64()).(reg.GPVirtual)
	mask := v.param64("mask")
	loop{n: n, lanes: v.lanes64(), unroll: 2, masked: v.bits == 512,
		body: func(vectors int, k reg.Register) {
			xs := v.regs(vectors)
			xs.each(func(i int, x reg.VecVirtual) {
				load64(Mem{Base: src, Disp: i * v.bytes}, k, x)
				if v.bits == 512 {
					VPANDQ(mask, x, x)
				} else {
					VPAND(mask, x, x)
				}
				store64(x, k, Mem{Base: dst, Disp: i * v.bytes})
			})
		},
		advance: func(elements int) {
			ADDQ(I32(8*elements), src)
			ADDQ(I32(8*elements), dst)
		}}.emit()
}

func modKernel(name, set string, v vector, divisor func() modulus) {
	TEXT(name, NOSPLIT, "func(dst, src *int64, n int, d uint64, inverse float64)")
	if v.bits == 512 {
		describe(name + " reduces n numbers with " + set + ".")
	} else {
		describe(name + " reduces the first n/4*4 of n numbers with " + set + ".")
	}
	Pragma("noescape")
	dst, src := Load(Param("dst"), GP64()), Load(Param("src"), GP64())
	n := Load(Param("n"), GP64()).(reg.GPVirtual)
	m := divisor()
	loop{n: n, lanes: v.lanes64(), unroll: 2, masked: v.bits == 512,
		body: func(vectors int, k reg.Register) {
			xs := v.regs(vectors)
			xs.each(func(i int, x reg.VecVirtual) { load64(Mem{Base: src, Disp: i * v.bytes}, k, x) })
			m.mod(xs)
			xs.each(func(i int, x reg.VecVirtual) { store64(x, k, Mem{Base: dst, Disp: i * v.bytes}) })
		},
		advance: func(elements int) {
			ADDQ(I32(8*elements), src)
			ADDQ(I32(8*elements), dst)
		}}.emit()
}
