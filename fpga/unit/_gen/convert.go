package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// convertKernels writes one kernel for each conversion and width.
func convertKernels() {
	widenKernels()
	convertKernel("int64ToFloat32x512", "int64", "float32", z512, func(x, y reg.VecVirtual) { VCVTQQ2PS(x, y.AsY()) })
	convertKernel("int64ToFloat64x512", "int64", "float64", z512, func(x, y reg.VecVirtual) { VCVTQQ2PD(x, y) })
	convertKernel("float32ToFloat64x512", "float32", "float64", z512, func(x, y reg.VecVirtual) { VCVTPS2PD(x.AsY(), y) })
	convertKernel("float64ToFloat32x512", "float64", "float32", z512, func(x, y reg.VecVirtual) {
		nan := K()
		VCMPPD(Imm(3), x, x, nan)
		VCVTPD2PS(x, y.AsY())
		VPBROADCASTD(word(0x7fc00000), nan, y.AsY())
	})
	nearestFloatsKernel()
	convertKernel("int64ToFloat64x256", "int64", "float64", y256, func(x, y reg.VecVirtual) {
		// high 2^32 is exact, and so is its sum with low before the one rounding.
		high, low := split256(vectors{x})
		VFMADD132PD(floats256(0x1p32), low[0], high[0])
		VMOVAPD(high[0], y)
	})
	convertKernel("float32ToFloat64x256", "float32", "float64", y256, func(x, y reg.VecVirtual) { VCVTPS2PD(x.AsX(), y) })
	convertKernel("float64ToFloat32x256", "float64", "float32", y256, func(x, y reg.VecVirtual) {
		nan, narrow := YMM(), XMM()
		VCVTPD2PSY(x, narrow)
		VCMPPS(Imm(3), narrow, narrow, nan.AsX())
		VBLENDVPS(nan.AsX(), words256(0x7fc000007fc00000), narrow, y.AsX())
	})
}

func convertKernel(name, from, to string, w vector, convert func(x, y reg.VecVirtual)) {
	TEXT(name, NOSPLIT, "func(dst *"+to+", src *"+from+", n int)")
	if w.bits == 512 {
		describe(name + " converts n values with AVX-512.")
	} else {
		describe(name + " converts the first n/4*4 of n values with AVX2.")
	}
	Pragma("noescape")
	dst, src := Load(Param("dst"), GP64()), Load(Param("src"), GP64())
	n := Load(Param("n"), GP64()).(reg.GPVirtual)
	// A vector has as many lanes as fit 64 bits each; the narrow type takes half a register.
	sized := func(e element, r reg.VecVirtual) reg.Register {
		if e.size == 4 {
			return w.half(r)
		}
		return r
	}
	in, out := elements(from), elements(to)
	loop{n: n, lanes: w.lanes64(), masked: w.bits == 512,
		body: func(_ int, k reg.Register) {
			x, y := w.reg(), w.reg()
			in.load(Mem{Base: src}, k, sized(in, x))
			convert(x, y)
			out.store(sized(out, y), k, Mem{Base: dst})
		},
		advance: func(elements int) {
			ADDQ(I32(in.size*elements), src)
			ADDQ(I32(out.size*elements), dst)
		}}.emit()
}

// nearestFloatsKernel writes the conversion of int64 to float32 with AVX2.
func nearestFloatsKernel() {
	TEXT("int64ToFloat32x256", NOSPLIT, "func(dst *float32, src *int64, n int)")
	describe("int64ToFloat32x256 converts the first n/8*8 of n values with AVX2.")
	Pragma("noescape")
	dst, src := Load(Param("dst"), GP64()), Load(Param("src"), GP64())
	loop{n: Load(Param("n"), GP64()).(reg.GPVirtual), lanes: 8,
		body: func(int, reg.Register) {
			y := YMM()
			nearestFloats(Mem{Base: src}, y)
			VMOVUPS(y, Mem{Base: dst})
		},
		advance: func(elements int) {
			ADDQ(I32(8*elements), src)
			ADDQ(I32(4*elements), dst)
		}}.emit()
}

// nearestFloats sets y to the float32 nearest to each of the eight int64 at src. AVX2 converts no 64-bit integers, and
// two roundings, to float64 and to float32, are not one. Where all eight are below 2^51 in magnitude, as most integers
// are, their float64 are exact: 2^51 is added, the sum becomes the fraction of a float64, and 2^52 + 2^51 is
// subtracted. Otherwise the eight are converted one by one.
func nearestFloats(src Mem, y reg.VecVirtual) {
	xs, large := y256.regs(2), YMM()
	xs.each(func(i int, x reg.VecVirtual) {
		VMOVDQU(words256(1<<51), x)
		VPADDQ(src.Offset(32*i), x, x)
	})
	VPOR(xs[0], xs[1], large)
	VPTEST(words256(0xfff<<52), large)
	JNZ(LabelRef("large"))
	xs.each(func(_ int, x reg.VecVirtual) { VPOR(floats256(0x1p52), x, x) })
	xs.each(func(_ int, x reg.VecVirtual) { VSUBPD(floats256(0x1p52+0x1p51), x, x) })
	VCVTPD2PSY(xs[0], y.AsX())
	VCVTPD2PSY(xs[1], xs[1].AsX())
	VINSERTF128(Imm(1), xs[1].AsX(), y, y)
	JMP(LabelRef("converted"))
	Label("large")
	halves := vectors{XMM(), XMM()}
	halves.each(func(half int, x reg.VecVirtual) {
		for i := range 4 {
			one := XMM()
			VXORPS(one, one, one)
			VCVTSI2SSQ(src.Offset(32*half+8*i), one, one)
			if i == 0 {
				VMOVAPS(one, x)
			} else {
				VINSERTPS(Imm(uint64(i)<<4), one, x, x)
			}
		}
	})
	VINSERTF128(Imm(1), halves[1], halves[0].AsY(), y)
	Label("converted")
}
