package main

import (
	"math/bits"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

const (
	ieeePolynomial = 0x04c11db7 // without x^32, bit i being the coefficient of x^i

	crcLanes  = 4 // registers that are folded side by side
	crcStride = 64 * crcLanes
)

// checksumKernels writes fold512.
func checksumKernels() {
	far := crcFactors("far", 8*crcStride)
	TEXT("fold512", NOSPLIT, "func(left *[16]byte, state uint32, p *byte, n int)")
	describe("fold512 sets left to a message that has the remainder of the n bytes at p, to which state is added " +
		"first. n is a multiple of 256 above 0.")
	Pragma("noescape")
	left, state := Load(Param("left"), GP64()), Load(Param("state"), GP32())
	p, n := Load(Param("p"), GP64()), Load(Param("n"), GP64())
	k := ZMM()
	VMOVDQU64(far, k)
	acc := z512.regs(crcLanes)
	acc.each(func(i int, a reg.VecVirtual) { VMOVDQU64(Mem{Base: p, Disp: 64 * i}, a) })
	first := ZMM()
	VMOVD(state, first.AsX()) // clears the rest
	VPXORQ(first, acc[0], acc[0])
	Label("loop")
	ADDQ(I32(crcStride), p)
	SUBQ(I32(crcStride), n)
	JZ(LabelRef("folded"))
	readsAhead(p, crcLanes)
	acc.each(func(i int, a reg.VecVirtual) {
		low := ZMM()
		VPCLMULQDQ(Imm(0x00), k, a, low)
		VPCLMULQDQ(Imm(0x11), k, a, a)
		VPTERNLOGQ(Imm(0x96), Mem{Base: p, Disp: 64 * i}, low, a) // exclusive or of three
	})
	JMP(LabelRef("loop"))
	Label("folded")
	crcFinish(acc, k, left)
	VZEROUPPER()
	RET()
}

// crcFinish stores 128 bits that have the remainder of the message in the registers. The first register holds the
// oldest bytes.
func crcFinish(acc vectors, k reg.VecVirtual, left reg.Register) {
	near, last := crcFactors("near", 8*64), crcFactors("last", 8*16)
	VMOVDQU64(near, k)
	acc[:len(acc)-1].each(func(i int, a reg.VecVirtual) {
		low := ZMM()
		VPCLMULQDQ(Imm(0x00), k, a, low)
		VPCLMULQDQ(Imm(0x11), k, a, a)
		VPTERNLOGQ(Imm(0x96), a, low, acc[i+1])
	})
	// The same for the four lanes of 128 bits that are left.
	VMOVDQU64(last, k.AsX())
	rest, sum := acc[len(acc)-1], XMM()
	VMOVDQA64(rest.AsX(), sum)
	for lane := range uint64(3) {
		low, next := XMM(), XMM()
		VEXTRACTI32X4(Imm(lane+1), rest, next)
		VPCLMULQDQ(Imm(0x00), k.AsX(), sum, low)
		VPCLMULQDQ(Imm(0x11), k.AsX(), sum, sum)
		VPXORQ(low, sum, sum)
		VPXORQ(next, sum, sum)
	}
	VMOVDQU64(sum, Mem{Base: left})
}

// crcPair returns the pair of factors that move 128 bits of a message d bits further. The checksum reads bits from the
// lowest: in 128 bits bit i is the coefficient of x^(127-i), so the powers of the low half are greater by 64 than those
// of the high half. A carry-less product of two reflected words is off by one power of x, and the exponents of the
// factors are less by one to make up for it.
func crcPair(d int) (low, high uint64) {
	return bits.Reverse64(uint64(crcPower(d + 63))), bits.Reverse64(uint64(crcPower(d - 1)))
}

// crcFactors returns memory with crcPair in every 128 bits.
func crcFactors(name string, d int) Mem {
	low, high := crcPair(d)
	return shared(name, func() {
		for lane := range 4 {
			DATA(16*lane, U64(low))
			DATA(16*lane+8, U64(high))
		}
	})
}

// crcPower returns x^n modulo the polynomial.
func crcPower(n int) uint32 {
	r := uint32(1)
	for range n {
		carry := r >> 31
		r <<= 1
		if carry == 1 {
			r ^= ieeePolynomial
		}
	}
	return r
}
