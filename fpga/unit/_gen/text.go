package main

import (
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/ir"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// textKernels writes the kernels of package text for AVX-512 with byte permutations (VBMI, VBMI2): separators are
// found 64 bytes at a time, fields are parsed eight at a time, and rows are turned into columns eight by eight.
func textKernels() {
	textIndex()
	textRows()
	textColumns("columns512", true)
	textColumns("unsigned512", false)
	textValidity()
	text256Kernels()
}

const (
	textFields = 40 // of a row
	textGroups = textFields / 8
	// mixedDecimals is how many fields of the second group are decimals: those before are the label and 7 dense features.
	mixedDecimals = 1 + 13 - 8
	textBlock     = 64       // rows of a block: bytes of a plane
	textAhead     = 16 << 10 // bytes that a block of lines has, about
)

// table returns 64 bytes of memory.
func table(name string, at func(i int) byte) Mem {
	m := GLOBL(name, RODATA|NOPTR)
	for i := range 8 {
		var x uint64
		for j := range 8 {
			x |= uint64(at(8*i+j)) << (8 * j)
		}
		DATA(8*i, U64(x))
	}
	return m
}

// constant returns a register that holds a table.
func constant(name string, at func(i int) byte) reg.VecVirtual {
	r := ZMM()
	VMOVDQU64(table(name, at), r)
	return r
}

// lane returns a function that applies f to a byte's place in its 64-bit lane.
func lane(f func(j int) byte) func(i int) byte {
	return func(i int) byte { return f(i % 8) }
}

// compress emits VPCOMPRESSB, which avo does not know: the bytes of x that k picks, one behind the other.
func compress(x, k, to reg.Register) {
	Instruction(&ir.Instruction{
		Opcode: "VPCOMPRESSB", Operands: []Op{x, k, to}, Inputs: []Op{x, k, to}, Outputs: []Op{to},
	})
}

// subtractWords emits VPSUBW of 128 bits, y = x - m, and declares to the allocator that the instruction sets all of
// y, since it clears the rest.
func subtractWords(m Op, x, y reg.VecVirtual) {
	Instruction(&ir.Instruction{
		Opcode: "VPSUBW", Operands: []Op{m, x, y.AsX()}, Inputs: []Op{m, x}, Outputs: []Op{y},
	})
}

// textIndex writes the search for separators. The search checks the number of fields of lines without a branch for
// each line: the number of separators so far determines which of a block's separators must be line ends.
func textIndex() {
	TEXT("index512", NOSPLIT, "func(data *byte, blocks int, starts *uint16, fields, want int) (seps int)")
	describe("index512 looks for tabs and line ends in blocks of 64 bytes, and writes to starts the place of the " +
		"byte behind each. It ends when it has found want of them, or when a line has another number of fields. It " +
		"writes up to 64 places more than it returns.")
	Pragma("noescape")
	data, blocks := Load(Param("data"), GP64()), Load(Param("blocks"), GP64())
	starts, fields, want := Load(Param("starts"), GP64()), Load(Param("fields"), GP64()), Load(Param("want"), GP64())
	tab, end := z512.all(0x0909090909090909), z512.all(0x0a0a0a0a0a0a0a0a)
	iota := constant("iota", func(i int) byte { return byte(i) })
	base, step := ZMM(), ZMM()
	one := GP32()
	MOVL(U32(1), one)
	VPBROADCASTW(one, base)
	MOVL(U32(64), one)
	VPBROADCASTW(one, step)
	// The next line end follows after left separators, and each further line end after fields separators.
	left, pattern, count := GP64(), GP64(), GP64()
	LEAQ(Mem{Base: fields, Disp: -1}, left)
	MOVQ(I32(1), pattern)
	SHLXQ(fields, pattern, pattern)
	ORQ(I8(1), pattern)
	XORQ(count, count)

	Label("block")
	CMPQ(count, want)
	JGE(LabelRef("done"))
	TESTQ(blocks, blocks)
	JZ(LabelRef("done"))
	x, ends, all := ZMM(), K(), K()
	VMOVDQU64(Mem{Base: data}, x)
	VPCMPEQB(end, x, ends)
	VPCMPEQB(tab, x, all)
	KORQ(ends, all, all)
	e, s, n, expected := GP64(), GP64(), GP64(), GP64()
	KMOVQ(all, s)
	KMOVQ(ends, e)
	POPCNTQ(s, n)
	PEXTQ(s, e, e)
	SHLXQ(left, pattern, expected)
	BZHIQ(n, expected, expected)
	CMPQ(e, expected)
	JNE(LabelRef("done"))

	places, words := ZMM(), ZMM()
	VPXORQ(places, places, places)
	compress(iota, all, places)
	VPMOVZXBW(places.AsY(), words)
	VPADDW(base, words, words)
	VMOVDQU64(words, Mem{Base: starts})
	CMPQ(n, I8(32))
	JLE(LabelRef("few"))
	VEXTRACTI64X4(Imm(1), places, places.AsY())
	VPMOVZXBW(places.AsY(), words)
	VPADDW(base, words, words)
	VMOVDQU64(words, Mem{Base: starts, Disp: 64})
	Label("few")

	LEAQ(Mem{Base: starts, Index: n, Scale: 2}, starts)
	ADDQ(n, count)
	VPADDW(step, base, base)
	ADDQ(I8(64), data)
	DECQ(blocks)
	SUBQ(n, left)
	for range 2 {
		LEAQ(Mem{Base: left, Index: fields, Scale: 1}, e)
		TESTQ(left, left)
		CMOVQLT(e, left)
	}
	JMP(LabelRef("block"))
	Label("done")
	Store(count, ReturnIndex(0))
	VZEROUPPER()
	RET()
}

// textRows writes the parser. A group is eight fields. Each field's last eight bytes are put into a 64-bit lane by
// one permutation of the 128 bytes that the group begins at, bytes that do not belong to the field are masked to
// zeros, and digits become numbers by multiplications of neighbours. Label and dense features are fields 0 to 13, so
// the second group is mixed.
func textRows() {
	TEXT("rows512", NOSPLIT,
		"func(data *byte, starts *uint16, fields, rows int, label, cr uint8, cells *uint32, planes *byte) (done int)")
	describe("rows512 parses rows until a row is malformed or has a field of more than eight bytes. starts holds " +
		"the place of each field, counted from data; a line has as many as fields says. label is 1 if lines have a " +
		"label, and cr is 1 if they end in CR LF. A row has 40 cells. planes holds a byte for each row and group of " +
		"eight fields, with a bit for each field that is not empty; the bytes of a group begin 64 bytes behind those " +
		"of the group before.")
	Pragma("noescape")
	data, p := Load(Param("data"), GP64()), Load(Param("starts"), GP64())
	step, n := Load(Param("fields"), GP64()), Load(Param("rows"), GP64())
	cells, planes := Load(Param("cells"), GP64()), Load(Param("planes"), GP64())
	total := GP64()
	MOVQ(n, total)
	ADDQ(step, step) // bytes of a line's starts

	r := &rowParser{data: data, p: p, cells: cells, planes: planes}
	r.loadConstants()

	// Without a label the first lane has no field, and the start in its place belongs to the line before.
	label, labelLanes := GP32(), GP32()
	Load(Param("label"), label.As8())
	MOVBLZX(label.As8(), label)
	MOVL(label, labelLanes)
	ORL(U32(0xfe), labelLanes)
	r.lanes, r.bytes = K(), K()
	KMOVB(labelLanes, r.lanes)
	flags := ZMM()
	VPMOVM2Q(r.lanes, flags)
	VPMOVB2M(flags, r.bytes)
	first := GP64()
	MOVL(label, first.As32())
	XORQ(I8(1), first)
	ADDQ(first, first)
	SUBQ(first, p)

	cr := GP32()
	Load(Param("cr"), cr.As8())
	MOVBLZX(cr.As8(), cr)
	r.trim = XMM()
	VMOVD(cr, r.trim)
	VPSLLDQ(Imm(14), r.trim, r.trim)
	NEGL(cr)

	Label("row")
	TESTQ(n, n)
	JZ(LabelRef("done"))
	r.bad, r.longest = ZMM(), XMM()
	VPXORQ(r.bad, r.bad, r.bad)
	VPXORQ(r.longest, r.longest, r.longest)
	valid := GP32()
	// The bytes that are parsed a block of lines later are prefetched meanwhile: for each line, the length of a line.
	soon := GP64()
	MOVWQZX(Mem{Base: p}, soon)
	ADDQ(data, soon)
	for i := range 4 {
		PREFETCHT1(Mem{Base: soon, Disp: textAhead + 64*i})
	}
	for g := range textGroups {
		r.group(g, valid)
		if g == 0 {
			NOTL(valid)
			ANDL(label, valid) // an empty label
		}
	}
	r.checkRow(valid, cr)
	ADDQ(step, p)
	ADDQ(I32(4*textFields), cells)
	INCQ(planes)
	DECQ(n)
	JMP(LabelRef("row"))
	Label("done")
	SUBQ(n, total)
	Store(total, ReturnIndex(0))
	VZEROUPPER()
	RET()
}

// loadConstants loads the constants that parse fields.
func (r *rowParser) loadConstants() {
	r.spread = constant("spread", func(i int) byte { return byte(i / 8 * 2) })
	r.longer = constant("longer", lane(func(j int) byte { return byte(8 - j) }))
	front := lane(func(j int) byte {
		if j == 7 {
			return 255 // a sign alone is not a number
		}
		return byte(9 - j)
	})
	decimals := func(decimal, other func(i int) byte) func(i int) byte {
		return func(i int) byte {
			if i < 8*mixedDecimals {
				return decimal(i)
			}
			return other(i)
		}
	}
	always := func(x byte) func(i int) byte { return func(int) byte { return x } }
	pairs := func(weight byte) func(i int) byte {
		return func(i int) byte {
			if i%2 == 0 {
				return weight
			}
			return 1
		}
	}
	r.exactly[0], r.exactly[1] = constant("front", front), constant("frontMixed", decimals(front, always(255)))
	r.offset = constant("offset", lane(func(j int) byte { return byte(j - 9) }))
	r.digits[0] = constant("digitsLow", func(i int) byte { return hexDigit(byte(i)) })
	r.digits[1] = constant("digitsHigh", func(i int) byte { return hexDigit(byte(64 + i)) })
	r.pack = constant("pack", func(i int) byte { return byte(8*(i/4%8) + 6 - i%4*2) })
	r.order = constant("order", func(i int) byte {
		if i%8 < 4 {
			return byte(i%16/8*8 + 6 - i%4*2)
		}
		return 0x80
	})
	r.even = constant("even", func(i int) byte { return byte(i / 4 % 8 * 2 * (1 - min(i%4, 1))) })
	r.minus, r.zero = z512.all(0x2d2d2d2d2d2d2d2d), z512.all(0x3030303030303030)
	r.nine = z512.all(0x7676767676767676)
	r.byHex, r.by100, r.by10000 = constant("byHex", pairs(16)), z512.all(0x0001006400010064), z512.all(10000)
	r.by10[0], r.by10[1] = constant("byDecimal", pairs(10)), constant("byMixed", decimals(pairs(10), pairs(16)))
	r.nineMixed = constant("nineMixed", decimals(always(0x76), always(0)))
	r.one = XMM()
	VPBROADCASTW(word(1), r.one)
	r.none = ZMM()
	VPXORQ(r.none, r.none, r.none)
	hexBytes := GP64()
	MOVQ(I32(-1), hexBytes)
	r.hexBytes = K()
	SHLQ(Imm(8*mixedDecimals), hexBytes)
	KMOVQ(hexBytes, r.hexBytes)
}

// checkRow ends the kernel at a row that is malformed or has a field of more than eight bytes. valid has a bit if the
// label is empty, and cr is -1 if lines end in CR LF, else 0.
func (r *rowParser) checkRow(valid, cr reg.GPVirtual) {
	last := GP64()
	MOVWQZX(Mem{Base: r.p, Disp: 2 * textFields}, last)
	MOVBLZX(Mem{Base: r.data, Index: last, Scale: 1, Disp: -2}, last.As32())
	XORL(I8('\r'), last.As32())
	ANDL(cr, last.As32())
	ORL(valid, last.As32())
	JNZ(LabelRef("done"))
	bad, long := K(), K()
	VPMOVB2M(r.bad, bad)
	nine := XMM()
	VPBROADCASTW(word(9), nine)
	VPCMPUW(Imm(6), nine, r.longest, long)
	KORTESTQ(bad, long)
	JNZ(LabelRef("done"))
}

// hexDigit is a digit's value, or 128.
func hexDigit(c byte) byte {
	switch {
	case '0' <= c && c <= '9':
		return c - '0'
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10
	}
	return 0x80
}

// rowParser holds the registers that the groups of a row share.
type rowParser struct {
	data, p, cells, planes reg.Register

	spread  reg.VecVirtual    // a 16-bit word's lower byte to all of a lane
	longer  reg.VecVirtual    // a byte is the field's if its length and 1 is larger than this
	exactly [2]reg.VecVirtual // and its first, if equal to this
	offset  reg.VecVirtual    // from the next field's start to a byte of this field
	digits  [2]reg.VecVirtual
	minus   reg.VecVirtual
	zero    reg.VecVirtual
	none    reg.VecVirtual // zero bits

	nine, nineMixed reg.VecVirtual    // added with saturation to a digit, gives less than 128
	by10            [2]reg.VecVirtual // a digit's weight; in the mixed group also that of hexadecimal ones
	by100, by10000  reg.VecVirtual
	byHex           reg.VecVirtual
	pack            reg.VecVirtual // the bytes of every lane's number, turned round, to 32 bits
	order           reg.VecVirtual // the same, each in its lane
	even            reg.VecVirtual // the lower halves of lanes
	trim            reg.VecVirtual // what a CR adds to the last field
	one             reg.VecVirtual
	lanes, bytes    reg.OpmaskVirtual // of the first group that stand for a field
	hexBytes        reg.OpmaskVirtual // of the mixed group, hexadecimal fields'
	bad, longest    reg.VecVirtual
}

// group parses fields 8g to 8g+7.
func (r *rowParser) group(g int, valid reg.GPVirtual) {
	at := Mem{Base: r.p, Disp: 16 * g}
	next, length := XMM(), ZMM()
	VMOVDQU32(at.Offset(2), next)
	if g == textGroups-1 {
		VPSUBW(r.trim, next, next)
	}
	subtractWords(at, next, length)
	filled := K()
	if g == 0 {
		VPMAXUW(length.AsX(), r.longest, r.lanes, r.longest)
		VPCMPUW(Imm(6), r.one, length.AsX(), r.lanes, filled)
		KMOVB(filled, valid)
		MOVB(valid.As8(), Mem{Base: r.planes})
	} else {
		VPMAXUW(length.AsX(), r.longest, r.longest)
		VPCMPUW(Imm(6), r.one, length.AsX(), filled)
		KMOVB(filled, Mem{Base: r.planes, Disp: textBlock * g})
	}

	VPERMB(length, r.spread, length)
	mine := K()
	if g == 0 {
		VPCMPUB(Imm(6), r.longer, length, r.bytes, mine)
	} else {
		VPCMPUB(Imm(6), r.longer, length, mine)
	}
	from, index := GP64(), ZMM()
	base := XMM()
	VPBROADCASTW(at, base)
	subtractWords(base, next, index)
	VPERMB(index, r.spread, index)
	VPADDB(r.offset, index, index)
	MOVWQZX(at, from)
	low := ZMM()
	text := Mem{Base: r.data, Index: from, Scale: 1}
	VMOVDQU64(text, low)
	VPERMI2B_Z(text.Offset(64), low, mine, index)

	x := index
	signs, sign := ZMM(), K()
	if g < 2 {
		// A minus at the front is not a digit, and is handled at the end.
		front := K()
		VPCMPEQB(r.exactly[g], length, mine, front)
		VPCMPEQB(r.minus, x, front, sign)
		KANDNQ(mine, sign, mine)
		VPMOVM2B(sign, signs)
	}
	check := ZMM()
	if g == 0 {
		VPSUBB_Z(r.zero, x, mine, x)
		VPADDUSB(r.nine, x, check)
	} else {
		VPORQ(x, r.bad, r.bad)
		VPERMI2B_Z(r.digits[1], r.digits[0], mine, x)
		check = x
		if g == 1 {
			check = ZMM()
			VPADDUSB(r.nineMixed, x, check)
		}
	}
	VPORQ(check, r.bad, r.bad)

	to := Mem{Base: r.cells, Disp: 32 * g}
	if g > 1 {
		VPMADDUBSW(r.byHex, x, x)
		VPERMB(x, r.pack, x)
		VMOVDQU32(x.AsY(), to)
		return
	}
	number, low4 := ZMM(), ZMM()
	VPMADDUBSW(r.by10[g], x, x)
	VPMADDWD(r.by100, x, number)
	VPSRLQ(Imm(32), number, low4)
	VPMULUDQ(r.by10000, number, number)
	VPADDQ(low4, number, number)
	negative := K()
	VPTESTMQ(signs, signs, negative)
	VPSUBQ(number, r.none, negative, number)
	if g == 1 {
		VPSHUFB(r.order, x, r.hexBytes, number)
	}
	VPERMD(number, r.even, number)
	VMOVDQU32(number.AsY(), to)
}
