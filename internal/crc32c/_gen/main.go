// Command _gen writes the assembly of package crc32c, with avo. It is a module of its own, so that a build of
// Millrace needs nothing of avo: the assembly is kept in the repository, and `make lint` compares it with the output
// of this command. `make asm` writes it again.
package main

import (
	"math/bits"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// polynomial is Castagnoli's without x^32, bit i being the coefficient of x^i.
const polynomial = 0x1edc6f41

// power returns x^n modulo the polynomial.
func power(n int) uint32 {
	r := uint32(1)
	for range n {
		carry := r >> 31
		r <<= 1
		if carry == 1 {
			r ^= polynomial
		}
	}
	return r
}

// fold returns the pair of factors that move 128 bits of a message d bits further. CRC32C reads bits from the lowest:
// in 128 bits bit i is the coefficient of x^(127-i), so the low half carries x^64 more than the high one. A carry-less
// product of two reflected words is short of one x, which the factors leave out.
func fold(name string, d int) Mem {
	low, high := bits.Reverse64(uint64(power(d+63))), bits.Reverse64(uint64(power(d-1)))
	m := GLOBL(name, RODATA|NOPTR)
	for lane := range 4 {
		DATA(16*lane, U64(low))
		DATA(16*lane+8, U64(high))
	}
	return m
}

const (
	register = 64 // bytes
	lanes    = 4  // registers that are folded side by side
	stride   = lanes * register
)

func main() {
	ConstraintExpr("!purego")
	far, near := fold("far", 8*stride), fold("near", 8*register)
	TEXT("fold512", NOSPLIT, "func(state uint32, p *byte, n int) uint32")
	Doc("fold512 advances the register of CRC32C over n bytes, a multiple of 256 above 0.")
	Pragma("noescape")
	state, p, n := Load(Param("state"), GP32()), Load(Param("p"), GP64()), Load(Param("n"), GP64())
	k := ZMM()
	VMOVDQU64(far, k)
	acc := make([]reg.VecVirtual, lanes)
	for i := range acc {
		acc[i] = ZMM()
		VMOVDQU64(Mem{Base: p, Disp: register * i}, acc[i])
	}
	first := ZMM()
	VMOVD(state, first.AsX()) // clears the rest
	VPXORQ(first, acc[0], acc[0])
	Label("loop")
	ADDQ(I32(stride), p)
	SUBQ(I32(stride), n)
	JZ(LabelRef("folded"))
	for i, a := range acc {
		low := ZMM()
		VPCLMULQDQ(Imm(0x00), k, a, low)
		VPCLMULQDQ(Imm(0x11), k, a, a)
		VPTERNLOGQ(Imm(0x96), Mem{Base: p, Disp: register * i}, low, a) // of three, the exclusive or
	}
	JMP(LabelRef("loop"))
	Label("folded")
	VMOVDQU64(near, k)
	for i, a := range acc[:lanes-1] {
		low, next := ZMM(), acc[i+1]
		VPCLMULQDQ(Imm(0x00), k, a, low)
		VPCLMULQDQ(Imm(0x11), k, a, a)
		VPTERNLOGQ(Imm(0x96), a, low, next)
	}
	// The last register is a message of 64 bytes with the same remainder.
	left := AllocLocal(register)
	VMOVDQU64(acc[lanes-1], left)
	VZEROUPPER()
	crc := GP64()
	XORQ(crc, crc)
	for i := range register / 8 {
		CRC32Q(left.Offset(8*i), crc)
	}
	Store(crc.As32(), ReturnIndex(0))
	RET()
	Generate()
}
