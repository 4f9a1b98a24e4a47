package main

import (
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/ir"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// hexToInt writes one kernel for each width, and one for tokens of any length.
func hexToInt() {
	hexAny()
	hexKernel("hex512", z512)
	hexKernel("hex256", y256)
}

// hexKernel writes a loop over blocks of tokens that have eight digits and lie one behind the other. A block has as
// many tokens as a vector holds. The loop stops before a block that differs.
func hexKernel(name string, w vector) {
	tokens := w.lanes64()
	TEXT(name, NOSPLIT, "func(dst *int64, offsets *uint32, data *byte, size int, valid *byte, n int) (done int)")
	describe(name + " parses n tokens until one token of the next vector is null or does not have eight digits. " +
		"offsets has one element more than there are tokens, size is the number of bytes of data, and valid may be " +
		"nil. It returns the number of tokens that it parsed, which fill whole vectors.")
	Pragma("noescape")
	dst, offsets, data := Load(Param("dst"), GP64()), Load(Param("offsets"), GP64()), Load(Param("data"), GP64())
	size, valid := Load(Param("size"), GP64()), Load(Param("valid"), GP64())
	n, total := Load(Param("n"), GP64()).(reg.GPVirtual), GP64()
	MOVQ(n, total)
	bytes := func(x uint64) reg.VecVirtual { return w.all(x * 0x0101010101010101) }
	zero, a, lower, ten := bytes('0'), bytes('a'), bytes(0x20), bytes(10)
	nine, five, weights := bytes(9), bytes(5), w.all(0x0110011001100110)
	// The values of a token's four pairs of digits are its words; the first is the most significant byte.
	order := w.reg()
	if w.bits == 512 {
		VBROADCASTI32X4(hexOrder(), order)
	} else {
		VBROADCASTI128(hexOrder(), order)
	}

	loop{n: n, lanes: tokens,
		body: func(_ int, _ reg.Register) {
			from, to := GP64(), GP64()
			MOVL(Mem{Base: offsets}, from.As32())
			MOVL(Mem{Base: offsets, Disp: 4 * tokens}, to.As32())
			// Each token must have eight bytes, and the offsets must not wrap around.
			if w.bits == 512 {
				lengths, odd := YMM(), K()
				VMOVDQU(Mem{Base: offsets, Disp: 4}, lengths)
				VPSUBD(Mem{Base: offsets}, lengths, lengths)
				VPCMPD_BCST(Imm(4), word(8), lengths, odd)
				KORTESTB(odd, odd)
			} else {
				lengths := XMM()
				VMOVDQU(Mem{Base: offsets, Disp: 4}, lengths)
				VPSUBD(Mem{Base: offsets}, lengths, lengths)
				VPXOR(repeated(y256, 8<<32|8), lengths, lengths)
				VPTEST(lengths, lengths)
			}
			JNZ(LabelRef("end"))
			CMPQ(from, to)
			JA(LabelRef("end"))
			CMPQ(to, size)
			JA(LabelRef("end"))
			TESTQ(valid, valid)
			JZ(LabelRef("valid"))
			w.noZeroByte(valid)
			Label("valid")

			digit, letter := w.reg(), w.reg()
			if w.bits == 512 {
				VMOVDQU64(Mem{Base: data, Index: from, Scale: 1}, digit)
				VPORQ(lower, digit, letter)
			} else {
				VMOVDQU(Mem{Base: data, Index: from, Scale: 1}, digit)
				VPOR(lower, digit, letter)
			}
			VPSUBB(zero, digit, digit)
			VPSUBB(a, letter, letter)
			if w.bits == 512 {
				isDigit, isLetter := K(), K()
				VPCMPUB(Imm(2), nine, digit, isDigit)
				VPCMPUB(Imm(2), five, letter, isLetter)
				VPADDB(ten, letter, isLetter, digit)
				KORTESTQ(isDigit, isLetter)
				JCC(LabelRef("end")) // not all ones
			} else {
				isDigit, isLetter := YMM(), YMM()
				VPMINUB(nine, digit, isDigit)
				VPCMPEQB(digit, isDigit, isDigit)
				VPMINUB(five, letter, isLetter)
				VPCMPEQB(letter, isLetter, isLetter)
				VPADDB(ten, letter, letter)
				VPBLENDVB(isLetter, letter, digit, digit)
				VPOR(isDigit, isLetter, isLetter)
				all := GP32()
				VPMOVMSKB(isLetter, all)
				CMPL(all, I8(-1))
				JNE(LabelRef("end"))
			}
			VPMADDUBSW(weights, digit, digit)
			VPSHUFB(order, digit, digit)
			store64(digit, nil, Mem{Base: dst})
			TESTQ(valid, valid)
			JZ(LabelRef("next"))
			ADDQ(I32(tokens), valid)
			Label("next")
		},
		advance: func(elements int) {
			ADDQ(I32(4*elements), offsets)
			ADDQ(I32(8*elements), dst)
		},
		end: func() {
			SUBQ(n, total)
			Store(total, ReturnIndex(0))
		}}.emit()
}

// lowerHalf emits an instruction of 256 bits and declares to the allocator that the instruction sets the whole
// register, since it clears the upper half.
func lowerHalf(to reg.VecVirtual, opcode string, from ...Op) {
	Instruction(&ir.Instruction{Opcode: opcode, Operands: append(from[:len(from):len(from)], to.AsY()), Inputs: from, Outputs: []Op{to}})
}

// hexAny writes a loop over blocks of eight tokens, one behind the other, with permutations of bytes: one moves each token to the end of
// a 64-bit lane of its own, another turns digits into their values.
func hexAny() {
	TEXT("hexAny512", NOSPLIT, "func(dst *int64, offsets *uint32, data *byte, size int, valid *byte, n int) (done int)")
	describe("hexAny512 parses n tokens, and makes nulls of empty tokens, until one of the next eight is " +
		"malformed, or is empty while valid is nil. The parameters are those of hex512. It returns the number of " +
		"tokens that it parsed, a multiple of eight.")
	Pragma("noescape")
	dst, offsets, data := Load(Param("dst"), GP64()), Load(Param("offsets"), GP64()), Load(Param("data"), GP64())
	size, valid := Load(Param("size"), GP64()), Load(Param("valid"), GP64())
	n, total := Load(Param("n"), GP64()).(reg.GPVirtual), GP64()
	MOVQ(n, total)
	spread := constant("spread", func(i int) byte { return byte(i / 8 * 4) })
	longer := constant("longer", lane(func(j int) byte { return byte(7 - j) }))
	offset := constant("offset", lane(func(j int) byte { return byte(j - 8) }))
	low := constant("digitsLow", func(i int) byte { return hexDigit(byte(i)) })
	high := constant("digitsHigh", func(i int) byte { return hexDigit(byte(64 + i)) })
	order, weights := ZMM(), z512.all(0x0110011001100110)
	VBROADCASTI32X4(hexOrder(), order)

	loop{n: n, lanes: 8,
		body: func(int, reg.Register) {
			from, to := GP64(), GP64()
			MOVL(Mem{Base: offsets}, from.As32())
			MOVL(Mem{Base: offsets, Disp: 32}, to.As32())
			ends, lengths, odd := ZMM(), ZMM(), K()
			lowerHalf(ends, "VMOVDQU64", Mem{Base: offsets, Disp: 4})
			lowerHalf(lengths, "VPSUBD", Mem{Base: offsets}, ends.AsY())
			VPCMPUD_BCST(Imm(6), word(8), lengths.AsY(), odd)
			KORTESTB(odd, odd)
			JNZ(LabelRef("end"))
			CMPQ(from, to)
			JA(LabelRef("end"))
			CMPQ(to, size)
			JA(LabelRef("end"))

			// Nulls have no bytes. A token without bytes is null afterwards.
			filled, all := K(), GP32()
			TESTQ(valid, valid)
			JZ(LabelRef("all"))
			flags, wide := XMM(), YMM()
			VPMOVZXBD(Mem{Base: valid}, wide)
			VPTESTMD(wide, wide, filled)
			VMOVDQA32_Z(lengths.AsY(), filled, lengths.AsY())
			VPTESTMD(lengths.AsY(), lengths.AsY(), filled)
			VMOVDQU8_Z(Mem{Base: valid}, filled, flags)
			JMP(LabelRef("some"))
			Label("all")
			VPTESTMD(lengths.AsY(), lengths.AsY(), filled)
			KMOVB(filled, all)
			CMPL(all, U32(255))
			JNE(LabelRef("end"))
			Label("some")

			mine, index := K(), ZMM()
			VPERMB(lengths, spread, lengths)
			VPCMPUB(Imm(6), longer, lengths, mine)
			start := YMM()
			VPBROADCASTD(from.As32(), start)
			VPSUBD(start, ends.AsY(), ends.AsY())
			VPERMB(ends, spread, index)
			VPADDB(offset, index, index)
			SUBQ(from, to)
			token, x := firstLanes(to), ZMM()
			VMOVDQU8_Z(Mem{Base: data, Index: from, Scale: 1}, token, x)
			VPERMB_Z(x, index, mine, x)
			digit := ZMM()
			VMOVDQA64(x, digit)
			VPERMI2B_Z(high, low, mine, digit)
			VPORQ(digit, x, x)
			VPMOVB2M(x, mine)
			KORTESTQ(mine, mine)
			JNZ(LabelRef("end"))
			VPMADDUBSW(weights, digit, digit)
			VPSHUFB(order, digit, digit)
			store64(digit, nil, Mem{Base: dst})
			TESTQ(valid, valid)
			JZ(LabelRef("next"))
			VMOVQ(flags, Mem{Base: valid})
			ADDQ(I32(8), valid)
			Label("next")
		},
		advance: func(elements int) {
			ADDQ(I32(4*elements), offsets)
			ADDQ(I32(8*elements), dst)
		},
		end: func() {
			SUBQ(n, total)
			Store(total, ReturnIndex(0))
		}}.emit()
}

// noZeroByte jumps to end if one of the bytes at p, one for each 64-bit lane, is zero.
func (v vector) noZeroByte(p reg.Register) {
	x, y := GP64(), GP64()
	if v.bits == 512 {
		ones, tops := GP64(), GP64()
		MOVQ(Mem{Base: p}, x)
		MOVQ(U64(0x0101010101010101), ones)
		MOVQ(U64(0x8080808080808080), tops)
		ANDNQ(tops, x, y)
		SUBQ(ones, x)
		TESTQ(x, y)
	} else {
		MOVL(Mem{Base: p}, x.As32())
		MOVL(U32(0x80808080), y.As32())
		ANDNL(y.As32(), x.As32(), y.As32())
		SUBL(U32(0x01010101), x.As32())
		TESTL(x.As32(), y.As32())
	}
	JNZ(LabelRef("end"))
}

func hexOrder() Mem {
	if hexOrderAt == nil {
		m := GLOBL("hexOrder", RODATA|NOPTR)
		DATA(0, U64(0x8080808000020406))
		DATA(8, U64(0x80808080080a0c0e))
		hexOrderAt = &m
	}
	return *hexOrderAt
}

var hexOrderAt *Mem
