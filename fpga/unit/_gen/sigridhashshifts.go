package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// shiftsUnroll is how many vectors the kernels of this file interleave.
const shiftsUnroll = 8

// sigridHashShifts writes the AVX-512 kernels of the variant with shifts: five, by the size of the divisor, by hashes
// as int64 and as int32, and one that folds the ids for a checksum too.
//
// It is for Intel's processors. Two ports there work on vectors of 512 bits; only the first shifts, only the second
// permutes, and VPMULLQ is three operations.
func sigridHashShifts() {
	for _, small := range []bool{false, true} {
		for _, narrow := range []bool{false, true} {
			hashShiftsKernel(small, narrow)
		}
	}
	hashShiftsSumKernel()
}

func hashShiftsKernel(small, narrow bool) {
	name, kind, size, as := "hashShiftsWide", "int64", 8, ""
	limit := "d is from 2^14 to 2^31."
	if small {
		name, limit = "hashShiftsSmall", "d is below 2^14."
	}
	if narrow {
		name, kind, size, as = name+"To32x", "byte", 4, ", and writes the low 32 bits of each hash,"
	}
	name += "512"
	TEXT(name, NOSPLIT, "func(dst *"+kind+", src *int64, n int, salt, d uint64, inverse float64)")
	describe(name + " hashes n ids" + as + " with AVX-512, and shifts in place of products. " + limit)
	Pragma("noescape")
	dst, src := Load(Param("dst"), GP64()), Load(Param("src"), GP64())
	n := Load(Param("n"), GP64()).(reg.GPVirtual)
	h, m := newShiftsHash(), newShiftsModulus(small, narrow)
	loop{n: n, lanes: 8, unroll: shiftsUnroll, masked: true,
		body: func(vectors int, k reg.Register) {
			xs := z512.regs(vectors)
			if k == nil {
				readsAhead(src, vectors)
			}
			xs.each(func(i int, x reg.VecVirtual) { load64(Mem{Base: src, Disp: 64 * i}, k, x) })
			h.mix(xs)
			m.mod(xs)
			if narrow {
				m.store32(xs, k, dst)
			} else {
				m.store64(xs, k, dst)
			}
		},
		advance: func(elements int) {
			ADDQ(I32(8*elements), src)
			ADDQ(I32(size*elements), dst)
		}}.emit()
}

// hashShiftsSumKernel is hashSumKernel with the hash of this file.
func hashShiftsSumKernel() {
	const name = "hashShiftsWideTo32Sum512"
	far := crcFactors("far", 8*crcStride)
	TEXT(name, NOSPLIT, "func(left *[16]byte, dst *byte, src *int64, n int, salt, d uint64, inverse float64, "+
		"state uint32)")
	describe(name + " hashes n ids with shifts in place of products, writes the low 32 bits of each hash, and sets " +
		"left to a message that has the remainder of the ids' bytes, to which state is added first. n is a multiple of " +
		"32 above 0, and d is from 2^14 to 2^31.")
	Pragma("noescape")
	dst, src := Load(Param("dst"), GP64()), Load(Param("src"), GP64())
	n := Load(Param("n"), GP64()).(reg.GPVirtual)
	h, m := newShiftsHash(), newShiftsModulus(false, true)
	k, first := ZMM(), ZMM()
	VMOVDQU64(far, k)
	acc := z512.regs(crcLanes)
	acc.each(func(_ int, a reg.VecVirtual) { VPXORQ(a, a, a) })
	VMOVD(Load(Param("state"), GP32()), first.AsX()) // clears the rest
	Label("loop")
	xs := z512.regs(crcLanes)
	readsAhead(src, crcLanes)
	xs.each(func(i int, x reg.VecVirtual) { VMOVDQU64(Mem{Base: src, Disp: 64 * i}, x) })
	acc.each(func(i int, a reg.VecVirtual) {
		low := ZMM()
		VPCLMULQDQ(Imm(0x00), k, a, low)
		VPCLMULQDQ(Imm(0x11), k, a, a)
		VPTERNLOGQ(Imm(0x96), xs[i], low, a)
	})
	VPXORQ(first, acc[0], acc[0])
	VPXORQ(first, first, first)
	h.mix(xs)
	m.mod(xs)
	m.store32(xs, nil, dst)
	ADDQ(I32(crcStride), src)
	ADDQ(I32(crcStride/2), dst)
	SUBQ(I32(crcStride/8), n)
	JNZ(LabelRef("loop"))
	left := Load(Param("left"), GP64())
	crcFinish(acc, k, left)
	VZEROUPPER()
	RET()
}

// shiftsHash emits what hash does, with shifts in place of the products whose factor is a sum of powers of two. Two of
// them take one operation more than VPMULLQ so, but VPMULLQ's result is late: on Sapphire Rapids after 15 cycles.
type shiftsHash struct{ salt, high, mul reg.VecVirtual }

func newShiftsHash() shiftsHash {
	return shiftsHash{salt: z512.param64("salt"), high: z512.all(0xffffff << 40), mul: z512.all(0x9ddfea08eb382d69)}
}

func (h shiftsHash) mix(xs vectors) {
	t := z512.regs(len(xs))
	times := func() { xs.each(func(_ int, x reg.VecVirtual) { VPMULLQ(h.mul, x, x) }) }
	xs.each(func(_ int, x reg.VecVirtual) { h.twang(x) })
	xs.each(func(_ int, x reg.VecVirtual) { VPXORQ(h.salt, x, x) })
	times()
	xs.each(func(i int, x reg.VecVirtual) { VPSRLQ(Imm(47), x, t[i]) })
	xs.each(func(i int, x reg.VecVirtual) { VPTERNLOGQ(Imm(0x96), h.salt, t[i], x) }) // x ^= x >> 47 ^ salt
	times()
	xs.each(func(_ int, x reg.VecVirtual) { foldRight(x, 47) })
	times()
}

// twang is twang_mix64 of one vector. The processor overlaps it with that of the next vectors.
func (h shiftsHash) twang(x reg.VecVirtual) {
	t := ZMM()
	// The first sum is y = ^x + x<<21, and x - x<<21 is ^y. y ^ y>>24 is ^y ^ ^y>>24 with the upper 24 bits flipped.
	VPSLLQ(Imm(21), x, t)
	VPSUBQ(t, x, x)
	VPSRLQ(Imm(24), x, t)
	VPTERNLOGQ(Imm(0x96), h.high, t, x)
	addShifted(x, 3, 8)
	foldRight(x, 14)
	addShifted(x, 2, 4)
	foldRight(x, 28)
	addShifted(x, 31)
}

// addShifted adds x << by to x for every by.
func addShifted(x reg.VecVirtual, by ...uint64) {
	terms := z512.regs(len(by))
	terms.each(func(i int, t reg.VecVirtual) { VPSLLQ(Imm(by[i]), x, t) })
	terms.each(func(_ int, t reg.VecVirtual) { VPADDQ(t, x, x) })
}

// foldRight is x ^= x >> by.
func foldRight(x reg.VecVirtual, by uint64) {
	t := ZMM()
	VPSRLQ(Imm(by), x, t)
	VPXORQ(t, x, x)
}

// shiftsModulus is floormod.Wide or floormod.Small for divisors up to 2^31. Every remainder fits 32 bits, so a product
// of quotient and divisor is needed modulo 2^32 only: VPMULUDQ computes it in one operation, from the low halves of its
// operands, and the bits of magic above the quotient do not matter.
type shiftsModulus struct {
	small             bool
	d, inverse, magic reg.VecVirtual
	d32, inverse32    reg.VecVirtual    // in every 32-bit lane; inverse32 is a float32
	evens             reg.VecVirtual    // for store32: the places of the low halves in a pair of vectors
	lows              reg.OpmaskVirtual // for store64: the low halves of 64-bit lanes
}

func newShiftsModulus(small, narrow bool) *shiftsModulus {
	m := &shiftsModulus{small: small, d: z512.param64("d"), inverse: z512.param64("inverse"), d32: ZMM()}
	VPBROADCASTD(m.d.AsX(), m.d32)
	if small {
		m.inverse32 = ZMM()
		VCVTPD2PS(m.inverse, m.inverse32.AsY())
		VBROADCASTSS(m.inverse32.AsX(), m.inverse32)
	} else {
		m.magic = z512.allFloat(magic)
	}
	if narrow {
		m.evens = ZMM()
		VMOVDQU64(shared("evens", func() {
			for i := range 16 {
				DATA(4*i, U32(2*i))
			}
		}), m.evens)
	} else {
		bits := GP32()
		MOVL(U32(0x5555), bits)
		m.lows = K()
		KMOVW(bits, m.lows)
	}
	return m
}

// mod leaves a remainder between -d and d in the low half of each lane, and anything in the upper half. The second step
// of small divisors is in float32: the first leaves less than 2^14 in magnitude, so the second quotient, up to 2^13, is
// off by less than 2^-8 before it is rounded.
func (m *shiftsModulus) mod(xs vectors) {
	q := z512.regs(len(xs))
	subtract := func() {
		q.each(func(_ int, q reg.VecVirtual) { VPMULUDQ(m.d, q, q) })
		xs.each(func(i int, x reg.VecVirtual) { VPSUBD(q[i], x, x) })
	}
	xs.each(func(i int, x reg.VecVirtual) { VCVTQQ2PD(x, q[i]) })
	if !m.small {
		q.each(func(_ int, q reg.VecVirtual) { VFMADD213PD(m.magic, m.inverse, q) })
		subtract()
		return
	}
	q.each(func(_ int, q reg.VecVirtual) { VMULPD(m.inverse, q, q) })
	q.each(func(_ int, q reg.VecVirtual) { VCVTPD2QQ(q, q) })
	subtract()
	xs.each(func(i int, x reg.VecVirtual) { VCVTDQ2PS(x, q[i]) })
	q.each(func(_ int, q reg.VecVirtual) { VMULPS(m.inverse32, q, q) })
	q.each(func(_ int, q reg.VecVirtual) { VCVTPS2DQ(q, q) })
	subtract()
}

// store64 adds d to negative remainders, as nonNegative512 does, and stores 64-bit lanes.
func (m *shiftsModulus) store64(xs vectors, k, dst reg.Register) {
	t := z512.regs(len(xs))
	xs.each(func(i int, x reg.VecVirtual) { VPADDD(m.d32, x, t[i]) })
	xs.each(func(i int, x reg.VecVirtual) { VPMINUD_Z(t[i], x, m.lows, x) })
	xs.each(func(i int, x reg.VecVirtual) { store64(x, k, Mem{Base: dst, Disp: 64 * i}) })
}

// store32 adds d to negative remainders and stores the low halves, of two vectors at a time where there are two.
func (m *shiftsModulus) store32(xs vectors, k, dst reg.Register) {
	if len(xs) == 1 {
		low, t := YMM(), YMM()
		VPMOVQD(xs[0], low)
		VPADDD(m.d32.AsY(), low, t)
		VPMINUD(t, low, low)
		if k == nil {
			VMOVDQU32(low, Mem{Base: dst}) // as in storeLow32
		} else {
			store32(low, k, Mem{Base: dst})
		}
		return
	}
	t, pairs := z512.regs(len(xs)/2), make(vectors, len(xs)/2)
	for i := range pairs {
		pairs[i] = xs[2*i]
		VPERMT2D(xs[2*i+1], m.evens, pairs[i])
	}
	pairs.each(func(i int, p reg.VecVirtual) { VPADDD(m.d32, p, t[i]) })
	pairs.each(func(i int, p reg.VecVirtual) { VPMINUD(t[i], p, p) })
	pairs.each(func(i int, p reg.VecVirtual) { store32(p, nil, Mem{Base: dst, Disp: 64 * i}) })
}
