package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// logN writes two kernels, which differ in more than their width.
func logN() {
	log512()
	log256()
}

const (
	logUnroll = 2 // of log512

	logBegin = 0x3fe68 << 44 // float64 bits of 0.703125, where the mantissas z begin

	// Ziv's test, as package logn has it, on the bits that rounding to float32 drops, moved to the top of a word.
	zivShift  = 64 - 29
	zivFrom   = (1<<28 - 1<<7) << zivShift
	zivLength = 1 << 8 << zivShift
)

// log512 takes 16 values at a time, in two vectors of float64. A table of 16 entries lies in registers.
func log512() {
	TEXT("log512", NOSPLIT, "func(dst, src *float32, n int, add, lo, hi float32, table *[2][16]float64) (done int)")
	describe("log512 works on n clamped values with AVX-512, 16 at a time, the last of which may be fewer. It ends " +
		"before values of which some need more than the vectors' precision. It returns the number of values that it " +
		"has worked on.")
	Pragma("noescape")
	dst, src, table := Load(Param("dst"), GP64()), Load(Param("src"), GP64()), Load(Param("table"), GP64())
	n, total := Load(Param("n"), GP64()).(reg.GPVirtual), GP64()
	MOVQ(n, total)

	v := z512
	add, lo, hi := v.paramFloat32("add"), v.paramFloat32("lo"), v.paramFloat32("hi")
	entries := v.regs(4) // reciprocals 0 to 7 and 8 to 15, logarithms 0 to 7 and 8 to 15
	entries.each(func(i int, x reg.VecVirtual) { VMOVUPD(Mem{Base: table, Disp: 64 * i}, x) })
	nan := v.all32(0x7fc00000)
	specials := v.all32(4<<(4*2) | 5<<(4*5)) // a zero becomes -Inf, +Inf stays, all others are the NaN
	begin, exponent, ln2 := v.all(logBegin), v.all(0xfff<<52), v.allFloat(math.Ln2)

	loop{n: n, lanes: 16, unroll: logUnroll, masked: true,
		body: func(vectors int, k reg.Register) {
			ys := v.regs(vectors)
			if k == nil {
				readsAhead(src, vectors)
			}
			ys.each(func(i int, y reg.VecVirtual) {
				load32(Mem{Base: src, Disp: 64 * i}, k, y)
				clamp("float32", v, lo, hi, y)
				VADDPS(add, y, y)
			})
			x := v.regs(2 * vectors) // y as float64, then z, then r
			ys.each(func(i int, y reg.VecVirtual) {
				high := YMM()
				VEXTRACTF32X8(Imm(1), y, high)
				VCVTPS2PD(y.AsY(), x[2*i])
				VCVTPS2PD(high, x[2*i+1])
			})
			exp, at, w := v.regs(len(x)), v.regs(len(x)), v.regs(len(x))
			x.each(func(i int, x reg.VecVirtual) { VPSUBQ(begin, x, exp[i]) })
			exp.each(func(i int, e reg.VecVirtual) { VPSRLQ(Imm(48), e, at[i]) })
			exp.each(func(i int, e reg.VecVirtual) { VPANDQ(exponent, e, w[i]) })
			x.each(func(i int, x reg.VecVirtual) { VPSUBQ(w[i], x, x) })
			at.each(func(i int, at reg.VecVirtual) { VMOVDQA64(at, w[i]) })
			w.each(func(_ int, w reg.VecVirtual) { VPERMI2PD(entries[1], entries[0], w) })
			// r = z times the reciprocal, less 1, exact
			x.each(func(i int, z reg.VecVirtual) { VFMADD213PD_BCST(float(-1), w[i], z) })
			at.each(func(_ int, at reg.VecVirtual) { VPERMI2PD(entries[3], entries[2], at) })
			exp.each(func(_ int, e reg.VecVirtual) { VPSRAQ(Imm(52), e, e) })
			exp.each(func(_ int, e reg.VecVirtual) { VCVTQQ2PD(e, e) })
			exp.each(func(i int, e reg.VecVirtual) { VFMADD213PD(at[i], ln2, e) }) // ln of all but 1+r
			// ln(1+r) by its series up to the ninth power
			c := func(power int) Mem { return float(float64(power%2*2-1) / float64(power)) }
			w.each(func(_ int, w reg.VecVirtual) { VBROADCASTSD(c(9), w) })
			for power := 8; power >= 2; power-- {
				x.each(func(i int, r reg.VecVirtual) { VFMADD213PD_BCST(c(power), r, w[i]) })
			}
			x.each(func(i int, r reg.VecVirtual) { VMULPD(r, r, at[i]) })
			x.each(func(i int, r reg.VecVirtual) { VFMADD213PD(r, at[i], w[i]) })
			w.each(func(i int, w reg.VecVirtual) { VADDPD(exp[i], w, w) })

			w.each(func(i int, w reg.VecVirtual) { VPSLLQ(Imm(zivShift), w, exp[i]) })
			exp.each(func(_ int, e reg.VecVirtual) { VPSUBQ_BCST(word(zivFrom), e, e) })
			special := make([]reg.OpmaskVirtual, vectors)
			var stop reg.OpmaskVirtual
			ys.each(func(i int, y reg.VecVirtual) {
				special[i] = K()
				t, near, other := ZMM(), K(), K()
				VPSUBD_BCST(word(1), y, t)
				VPCMPUD_BCST(Imm(5), word(0x7f800000-1), t, special[i])
				VPCMPUQ_BCST(Imm(2), word(zivLength), exp[2*i], near)
				VPCMPUQ_BCST(Imm(2), word(zivLength), exp[2*i+1], other)
				KUNPCKBW(near, other, near)
				KANDNW(near, special[i], near)
				if i > 0 {
					KORW(near, stop, near)
				}
				stop = near
			})
			KORTESTW(stop, stop)
			JNZ(LabelRef("end"))

			ys.each(func(i int, y reg.VecVirtual) {
				low, high, result, t := YMM(), YMM(), ZMM(), ZMM()
				VCVTPD2PS(w[2*i], low)
				VCVTPD2PS(w[2*i+1], high)
				VINSERTF32X8(Imm(1), high, low.AsZ(), result)
				VMOVDQA32(nan, t)
				VFIXUPIMMPS(Imm(0), specials, y, t)
				VMOVDQA32(t, special[i], result)
				store32(result, k, Mem{Base: dst, Disp: 64 * i})
			})
		},
		advance: func(elements int) {
			ADDQ(I32(4*elements), src)
			ADDQ(I32(4*elements), dst)
		},
		end: func() {
			SUBQ(n, total)
			Store(total, ReturnIndex(0))
		}}.emit()
}

// log256 takes 8 values at a time, in two vectors of float64. It has no table: AVX2 cannot look up registers by an
// index of 64 bits, and gathers are slow on processors without AVX-512. The kernel divides instead, once for each
// value: ln z = 2 s (1 + s^2/3 + s^4/5 + ...), s = (z-1)/(z+1), |s| < 0.175.
func log256() {
	TEXT("log256", NOSPLIT, "func(dst, src *float32, n int, add, lo, hi float32) (done int)")
	describe("log256 works on the first n/8*8 of n clamped values with AVX2, 8 at a time. It ends before values of " +
		"which some are special or subnormal, or need more than the vectors' precision. It returns the number of " +
		"values that it has worked on.")
	Pragma("noescape")
	dst, src := Load(Param("dst"), GP64()), Load(Param("src"), GP64())
	n, total := Load(Param("n"), GP64()).(reg.GPVirtual), GP64()
	MOVQ(n, total)
	v := y256
	add, lo, hi := v.paramFloat32("add"), v.paramFloat32("lo"), v.paramFloat32("hi")
	ints := func(x uint32) Mem { return repeated(v, uint64(x)<<32|uint64(x)) }
	floats := func(x float64) Mem { return repeated(v, math.Float64bits(x)) }

	loop{n: n, lanes: 8,
		body: func(_ int, _ reg.Register) {
			y := YMM()
			VMOVUPS(Mem{Base: src}, y)
			clamp("float32", v, lo, hi, y)
			VADDPS(add, y, y)
			// Normal, positive and finite: between the smallest normal number and +Inf, as integers.
			under, over := YMM(), YMM()
			VMOVDQU(ints(0x00800000), under)
			VPCMPGTD(y, under, under)
			VPCMPGTD(ints(0x7f7fffff), y, over)
			VPOR(over, under, under)
			VPTEST(under, under)
			JNZ(LabelRef("end"))

			from, exp := YMM(), YMM()
			VPSUBD(ints(0x3f340000), y, from)
			VPSRAD(Imm(23), from, exp)
			VPAND(ints(0xff800000), from, from)
			VPSUBD(from, y, y)

			z, k, high := v.regs(2), v.regs(2), XMM()
			VCVTPS2PD(y.AsX(), z[0])
			VEXTRACTF128(Imm(1), y, high)
			VCVTPS2PD(high, z[1])
			VCVTDQ2PD(exp.AsX(), k[0])
			VEXTRACTI128(Imm(1), exp, high)
			VCVTDQ2PD(high, k[1])

			den := v.regs(2)
			one := floats(1)
			z.each(func(i int, z reg.VecVirtual) { VADDPD(one, z, den[i]) })
			z.each(func(_ int, z reg.VecVirtual) { VSUBPD(one, z, z) })
			z.each(func(i int, z reg.VecVirtual) { VDIVPD(den[i], z, z) }) // s
			square := den
			z.each(func(i int, s reg.VecVirtual) { VMULPD(s, s, square[i]) })
			z.each(func(_ int, s reg.VecVirtual) { VADDPD(s, s, s) }) // 2 s
			sum := v.regs(2)
			z.each(func(i int, _ reg.VecVirtual) { VMOVUPD(floats(1./17), sum[i]) })
			for j := 15; j >= 3; j -= 2 {
				z.each(func(i int, _ reg.VecVirtual) { VFMADD213PD(floats(1/float64(j)), square[i], sum[i]) })
			}
			z.each(func(i int, s reg.VecVirtual) { VMULPD(s, square[i], square[i]) })
			z.each(func(i int, s reg.VecVirtual) { VFMADD231PD(sum[i], square[i], s) })
			z.each(func(i int, w reg.VecVirtual) { VFMADD231PD(floats(math.Ln2), k[i], w) })

			// Ziv's test with a signed comparison: the interval that it tests for is moved to the least numbers.
			z.each(func(i int, w reg.VecVirtual) { VPSLLQ(Imm(zivShift), w, sum[i]) })
			z.each(func(i int, _ reg.VecVirtual) {
				VPADDQ(repeated(v, 1<<63-zivFrom), sum[i], sum[i])
			})
			z.each(func(i int, _ reg.VecVirtual) {
				limit := k[i]
				VMOVDQU(repeated(v, 1<<63+zivLength+1), limit)
				VPCMPGTQ(sum[i], limit, sum[i])
			})
			VPOR(sum[1], sum[0], sum[0])
			VPTEST(sum[0], sum[0])
			JNZ(LabelRef("end"))

			low := XMM()
			result := YMM()
			VCVTPD2PSY(z[0], low)
			VCVTPD2PSY(z[1], high)
			VINSERTF128(Imm(1), high, low.AsY(), result)
			VMOVDQU(result, Mem{Base: dst})
		},
		advance: func(elements int) {
			ADDQ(I32(4*elements), src)
			ADDQ(I32(4*elements), dst)
		},
		end: func() {
			SUBQ(n, total)
			Store(total, ReturnIndex(0))
		}}.emit()
}
