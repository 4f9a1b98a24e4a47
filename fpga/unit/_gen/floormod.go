package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// magic is 1.5 x 2^52. The addition of a number below 2^51 in magnitude to it rounds that number to an integer,
// which the lowest 51 bits of the sum hold.
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
	// The bits of magic, and the quotient in their low end; fold subtracts magic's part of the product.
	xs.each(func(i int, x reg.VecVirtual) { VFMADD213PD(m.magic, m.inverse, q[i]) })
	xs.each(func(i int, x reg.VecVirtual) { VPMULLQ(m.d, q[i], q[i]) })
	xs.each(func(i int, x reg.VecVirtual) { VPSUBQ(q[i], x, x) })
	nonNegative512(m.d, q, xs)
}

// nonNegative512 adds d to every x that is negative. The result is the smaller of x and x + d as unsigned numbers,
// since a negative number is the larger one of two as unsigned numbers.
func nonNegative512(d reg.VecVirtual, other, xs vectors) {
	xs.each(func(i int, x reg.VecVirtual) { VPADDQ(d, x, other[i]) })
	xs.each(func(i int, x reg.VecVirtual) { VPMINUQ(other[i], x, x) })
}

// small512 is floormod.Small with AVX-512. It subtracts a rounded quotient times d twice: the second time from what
// the first has left.
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

// The code below for AVX2 keeps its constants in memory: there are 16 registers, and two vectors at a time need
// them.

// words256 returns memory with x in every 64-bit word, floats256 with a float64.
func words256(x uint64) Mem   { return repeated(y256, x) }
func floats256(x float64) Mem { return repeated(y256, math.Float64bits(x)) }

// split256 turns int64 lanes into their upper and lower 32 bits as float64: AVX2 converts no 64-bit integers. The
// sign of the upper half is removed first and restored at the end, so that the upper half can be put behind the
// exponent of 2^52 like the lower half.
func split256(xs vectors) (high, low vectors) {
	high, low = y256.regs(len(xs)), y256.regs(len(xs))
	xs.each(func(i int, x reg.VecVirtual) { VPSRLQ(Imm(32), x, high[i]) })
	xs.each(func(i int, x reg.VecVirtual) { VPBLENDD(Imm(0xaa), floats256(0x1p52), x, low[i]) })
	high.each(func(_ int, h reg.VecVirtual) { VPXOR(words256(0x4330000080000000), h, h) })
	low.each(func(_ int, l reg.VecVirtual) { VSUBPD(floats256(0x1p52), l, l) })
	high.each(func(_ int, h reg.VecVirtual) { VSUBPD(floats256(0x1p52+0x1p31), h, h) })
	return high, low
}

// wide256 is floormod.Wide with AVX2.
type wide256 struct{ d, dHigh, inverse, zero reg.VecVirtual }

func newWide256() modulus {
	m := wide256{d: y256.param64("d"), dHigh: YMM(), inverse: y256.param64("inverse"), zero: YMM()}
	VPSRLQ(Imm(32), m.d, m.dHigh)
	VPXOR(m.zero, m.zero, m.zero)
	return m
}

func (m wide256) mod(xs vectors) {
	q, low := split256(xs)
	q.each(func(i int, q reg.VecVirtual) { VFMADD132PD(floats256(0x1p32), low[i], q) })
	q.each(func(_ int, q reg.VecVirtual) { VFMADD213PD(floats256(magic), m.inverse, q) })
	q.each(func(_ int, q reg.VecVirtual) { VPSUBQ(floats256(magic), q, q) })
	multiply256(q, m.d, m.dHigh)
	xs.each(func(i int, x reg.VecVirtual) { VPSUBQ(q[i], x, x) })
	xs.each(func(i int, x reg.VecVirtual) { VPCMPGTQ(x, m.zero, q[i]) })
	xs.each(func(i int, _ reg.VecVirtual) { VPAND(m.d, q[i], q[i]) })
	xs.each(func(i int, x reg.VecVirtual) { VPADDQ(q[i], x, x) })
}

// small256 is floormod.Small with AVX2: all in float64, the upper half's remainder first.
type small256 struct{ d, inverse reg.VecVirtual }

func newSmall256() modulus {
	m := small256{y256.param64("d"), y256.param64("inverse")}
	VPOR(floats256(0x1p52), m.d, m.d)
	VSUBPD(floats256(0x1p52), m.d, m.d) // d as float64
	return m
}

func (m small256) mod(xs vectors) {
	high, low := split256(xs)
	m.reduce(high, xs)
	high.each(func(i int, h reg.VecVirtual) { VFMADD132PD(floats256(0x1p32), low[i], h) })
	m.reduce(high, xs)
	high.each(func(i int, r reg.VecVirtual) { VADDPD(m.d, r, low[i]) })
	high.each(func(i int, r reg.VecVirtual) { VBLENDVPD(r, low[i], r, r) })
	high.each(func(_ int, r reg.VecVirtual) { VADDPD(floats256(0x1p52), r, r) })
	high.each(func(i int, r reg.VecVirtual) { VPXOR(floats256(0x1p52), r, xs[i]) })
}

// reduce subtracts the nearest multiple of d; q is scratch.
func (m small256) reduce(xs, q vectors) {
	xs.each(func(i int, x reg.VecVirtual) { VMULPD(m.inverse, x, q[i]) })
	xs.each(func(i int, _ reg.VecVirtual) { VADDPD(floats256(magic), q[i], q[i]) })
	xs.each(func(i int, _ reg.VecVirtual) { VSUBPD(floats256(magic), q[i], q[i]) })
	xs.each(func(i int, x reg.VecVirtual) { VFNMADD231PD(m.d, q[i], x) })
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
