package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// magic is 1.5 x 2^52: a float64 to which a number below 2^51 in magnitude is added comes out rounded to an integer,
// which its lowest 51 bits hold.
const magic = 0x1.8p52

// modulus emits floorMod by a divisor in every lane. See package floormod for why it is exact.
type modulus interface {
	// mod replaces every x by floorMod(x, d).
	mod(xs vectors)
}

// wide512 is floormod.Wide with AVX-512.
type wide512 struct{ d, inverse, magic, fold reg.VecVirtual }

// newWide512 reads the parameters d and inverse.
func newWide512() modulus {
	m := wide512{d: z512.param64("d"), inverse: z512.param64("inverse"), magic: z512.allFloat(magic), fold: z512.reg()}
	VPMULLQ(m.magic, m.d, m.fold)
	return m
}

func (m wide512) mod(xs vectors) {
	q := z512.regs(len(xs))
	xs.each(func(i int, x reg.VecVirtual) { VCVTQQ2PD(x, q[i]) })
	xs.each(func(i int, x reg.VecVirtual) { VPADDQ(m.fold, x, x) })
	// The bits of magic, and the quotient in their low end; fold takes magic's part of the product away.
	xs.each(func(i int, x reg.VecVirtual) { VFMADD213PD(m.magic, m.inverse, q[i]) })
	xs.each(func(i int, x reg.VecVirtual) { VPMULLQ(m.d, q[i], q[i]) })
	xs.each(func(i int, x reg.VecVirtual) { VPSUBQ(q[i], x, x) })
	nonNegative512(m.d, q, xs)
}

// nonNegative512 adds d to every x that is negative: of two numbers of which one is negative it is the larger unsigned.
func nonNegative512(d reg.VecVirtual, other, xs vectors) {
	xs.each(func(i int, x reg.VecVirtual) { VPADDQ(d, x, other[i]) })
	xs.each(func(i int, x reg.VecVirtual) { VPMINUQ(other[i], x, x) })
}

// small512 is floormod.Small with AVX-512: a quotient by too large a step, then one of what is left.
type small512 struct{ d, inverse reg.VecVirtual }

func newSmall512() modulus { return small512{z512.param64("d"), z512.param64("inverse")} }

func (m small512) mod(xs vectors) {
	q := z512.regs(len(xs))
	for range 2 {
		xs.each(func(i int, x reg.VecVirtual) { VCVTQQ2PD(x, q[i]) })
		xs.each(func(i int, x reg.VecVirtual) { VMULPD(m.inverse, q[i], q[i]) })
		xs.each(func(i int, x reg.VecVirtual) { VCVTPD2QQ(q[i], q[i]) })
		xs.each(func(i int, x reg.VecVirtual) { VPMULLQ(m.d, q[i], q[i]) })
		xs.each(func(i int, x reg.VecVirtual) { VPSUBQ(q[i], x, x) })
	}
	nonNegative512(m.d, q, xs)
}

// parts256 turns int64 lanes into their upper and lower 32 bits as float64: AVX2 converts no 64-bit integers. The
// upper half's sign is taken away and given back, so that it can be put behind the exponent of 2^52 like the lower's.
type parts256 struct{ lowMagic, highMagic, high reg.VecVirtual }

func newParts256() parts256 {
	return parts256{y256.allFloat(0x1p52), y256.all(0x4330000080000000), y256.allFloat(0x1p52 + 0x1p31)}
}

func (p parts256) split(x reg.VecVirtual) (high, low reg.VecVirtual) {
	high, low = YMM(), YMM()
	VPSRLQ(Imm(32), x, high)
	VPXOR(p.highMagic, high, high)
	VSUBPD(p.high, high, high)
	VPBLENDD(Imm(0xaa), p.lowMagic, x, low)
	VSUBPD(p.lowMagic, low, low)
	return high, low
}

// wide256 is floormod.Wide with AVX2.
type wide256 struct {
	parts256
	d, dHigh, inverse, magic, word, zero reg.VecVirtual
}

func newWide256() modulus {
	m := wide256{
		parts256: newParts256(), d: y256.param64("d"), dHigh: YMM(), inverse: y256.param64("inverse"), magic: y256.allFloat(magic),
		word: y256.allFloat(0x1p32), zero: YMM(),
	}
	VPSRLQ(Imm(32), m.d, m.dHigh)
	VPXOR(m.zero, m.zero, m.zero)
	return m
}

func (m wide256) mod(xs vectors) {
	for _, x := range xs {
		q, low := m.split(x)
		VFMADD213PD(low, m.word, q)
		VFMADD213PD(m.magic, m.inverse, q)
		VPSUBQ(m.magic, q, q)
		multiply256(vectors{q}, m.d, m.dHigh)
		VPSUBQ(q, x, x)
		negative := YMM()
		VPCMPGTQ(x, m.zero, negative)
		VPAND(m.d, negative, negative)
		VPADDQ(negative, x, x)
	}
}

// small256 is floormod.Small with AVX2: all in float64, the upper half's remainder first.
type small256 struct {
	parts256
	d, inverse, magic, word reg.VecVirtual
}

func newSmall256() modulus {
	m := small256{newParts256(), y256.param64("d"), y256.param64("inverse"), y256.allFloat(magic), y256.allFloat(0x1p32)}
	m.toFloat(m.d)
	return m
}

// toFloat converts integers below 2^52.
func (m small256) toFloat(x reg.VecVirtual) {
	VPOR(m.lowMagic, x, x)
	VSUBPD(m.lowMagic, x, x)
}

func (m small256) mod(xs vectors) {
	for _, x := range xs {
		high, low := m.split(x)
		m.reduce(high)
		VFMADD213PD(low, m.word, high)
		m.reduce(high)
		other := YMM()
		VADDPD(m.d, high, other)
		VBLENDVPD(high, other, high, high)
		VADDPD(m.lowMagic, high, high)
		VPXOR(m.lowMagic, high, x)
	}
}

// reduce takes the nearest multiple of d away.
func (m small256) reduce(x reg.VecVirtual) {
	q := YMM()
	VMULPD(m.inverse, x, q)
	VADDPD(m.magic, q, q)
	VSUBPD(m.magic, q, q)
	VFNMADD231PD(m.d, q, x)
}

// multiply256 sets every x to the low 64 bits of x times y, from three products of 32 bits; high is y's upper half.
func multiply256(xs vectors, y, high Op) {
	cross, upper := y256.regs(len(xs)), y256.regs(len(xs))
	xs.each(func(i int, x reg.VecVirtual) { VPSRLQ(Imm(32), x, upper[i]) })
	xs.each(func(i int, x reg.VecVirtual) { VPMULUDQ(high, x, cross[i]) })
	xs.each(func(i int, x reg.VecVirtual) { VPMULUDQ(y, upper[i], upper[i]) })
	xs.each(func(i int, x reg.VecVirtual) { VPMULUDQ(y, x, x) })
	xs.each(func(i int, x reg.VecVirtual) { VPADDQ(upper[i], cross[i], cross[i]) })
	xs.each(func(i int, x reg.VecVirtual) { VPSLLQ(Imm(32), cross[i], cross[i]) })
	xs.each(func(i int, x reg.VecVirtual) { VPADDQ(cross[i], x, x) })
}
