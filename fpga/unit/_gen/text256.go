package main

import (
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/ir"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// text256Kernels writes the kernels of package text for AVX2: the same three steps, four fields at a time. There are
// 16 registers, so the constants are in memory.
func text256Kernels() {
	text256Index()
	text256Rows()
	text256Columns()
	text256Validity()
}

// text256Index writes the search for separators: the bits of 64 bytes are turned into positions one by one, a dozen without a branch.
func text256Index() {
	TEXT("index256", NOSPLIT, "func(data *byte, blocks int, starts *uint16, fields, want int) (seps int)")
	describe("index256 does what index512 does, with AVX2 and BMI2.")
	Pragma("noescape")
	data, blocks := Load(Param("data"), GP64()), Load(Param("blocks"), GP64())
	starts, fields, want := Load(Param("starts"), GP64()), Load(Param("fields"), GP64()), Load(Param("want"), GP64())
	tab, end := y256.all(0x0909090909090909), y256.all(0x0a0a0a0a0a0a0a0a)
	left, pattern, count, base := GP64(), GP64(), GP64(), GP64()
	LEAQ(Mem{Base: fields, Disp: -1}, left)
	MOVQ(I32(1), pattern)
	SHLXQ(fields, pattern, pattern)
	ORQ(I8(1), pattern)
	XORQ(count, count)
	MOVQ(I32(1), base)

	Label("block")
	CMPQ(count, want)
	JGE(LabelRef("done"))
	TESTQ(blocks, blocks)
	JZ(LabelRef("done"))
	e, s := GP64(), GP64()
	for half, to := range [][2]reg.GPVirtual{{e, s}, {GP64(), GP64()}} {
		x, ends, all := YMM(), YMM(), YMM()
		VMOVDQU(Mem{Base: data, Disp: 32 * half}, x)
		VPCMPEQB(end, x, ends)
		VPCMPEQB(tab, x, all)
		VPOR(ends, all, all)
		VPMOVMSKB(ends, to[0].As32())
		VPMOVMSKB(all, to[1].As32())
		if half == 1 {
			SHLQ(Imm(32), to[0])
			SHLQ(Imm(32), to[1])
			ORQ(to[0], e)
			ORQ(to[1], s)
		}
	}
	n, expected := GP64(), GP64()
	POPCNTQ(s, n)
	PEXTQ(s, e, e)
	SHLXQ(left, pattern, expected)
	BZHIQ(n, expected, expected)
	CMPQ(e, expected)
	JNE(LabelRef("done"))

	next := func(at Mem) {
		place := GP64()
		TZCNTQ(s, place)
		ADDQ(base, place)
		MOVW(place.As16(), at)
		BLSRQ(s, s)
	}
	const most = 12
	for i := range most {
		next(Mem{Base: starts, Disp: 2 * i})
	}
	TESTQ(s, s)
	JZ(LabelRef("few"))
	rest := GP64()
	LEAQ(Mem{Base: starts, Disp: 2 * most}, rest)
	Label("more")
	for i := range 4 {
		next(Mem{Base: rest, Disp: 2 * i})
	}
	ADDQ(I8(8), rest)
	TESTQ(s, s)
	JNZ(LabelRef("more"))
	Label("few")

	LEAQ(Mem{Base: starts, Index: n, Scale: 2}, starts)
	ADDQ(n, count)
	ADDQ(I8(64), base)
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

// table256 returns 32 bytes of memory, whose 64-bit words at gives.
func table256(name string, at func(i int) uint64) Mem {
	m := GLOBL(name, RODATA|NOPTR)
	for i := range 4 {
		DATA(8*i, U64(at(i)))
	}
	return m
}

// text256Rows writes the parser. A field's last eight bytes are loaded into a 64-bit lane of their own; two shifts
// clear the bytes that do not belong to the field.
func text256Rows() {
	TEXT("rows256", NOSPLIT, "func(data *byte, starts *uint16, fields, rows int, label, cr uint8, cells *uint32, planes *byte) (done int)")
	describe("rows256 does what rows512 does, with AVX2. It reads up to eight bytes before data.")
	Pragma("noescape")
	r := &rows256{data: Load(Param("data"), GP64()), p: Load(Param("starts"), GP64())}
	step, n := Load(Param("fields"), GP64()), Load(Param("rows"), GP64())
	r.cells, r.planes = Load(Param("cells"), GP64()), Load(Param("planes"), GP64())
	total := GP64()
	MOVQ(n, total)
	ADDQ(step, step)

	label, first := GP32(), GP64()
	Load(Param("label"), label.As8())
	MOVBLZX(label.As8(), label)
	MOVL(label, first.As32())
	XORQ(I8(1), first)
	r.absent = YMM() // 1 in the first lane, where there is no label
	VMOVQ(first, r.absent.AsX())
	ADDQ(first, first)
	SUBQ(first, r.p)
	r.cr = GP64()
	Load(Param("cr"), r.cr.As8())
	MOVBQZX(r.cr.As8(), r.cr)
	r.trim = YMM()
	VMOVQ(r.cr, r.trim.AsX())
	VPERMQ(Imm(0x15), r.trim, r.trim) // to the last lane
	NEGQ(r.cr)
	hexWords := func(i int) uint64 {
		if i < 2 {
			return 0
		}
		return 1<<64 - 1
	}
	r.hexLanes = table256("hexLanes", hexWords)
	r.decimalLanes = table256("decimalLanes", func(i int) uint64 { return ^hexWords(i) })
	r.order = table256("order256", func(i int) uint64 { return []uint64{0x8080808000020406, 0x80808080080a0c0e}[i%2] })
	r.even = table256("even256", func(i int) uint64 { return []uint64{2 << 32, 6<<32 | 4, 0, 0}[i] })

	Label("row")
	TESTQ(n, n)
	JZ(LabelRef("done"))
	r.bad, r.longest = YMM(), YMM()
	VPXOR(r.bad, r.bad, r.bad)
	VPXOR(r.longest, r.longest, r.longest)
	empty, soon := GP32(), GP64()
	MOVWQZX(Mem{Base: r.p}, soon)
	ADDQ(r.data, soon)
	for i := range 4 {
		PREFETCHT1(Mem{Base: soon, Disp: textAhead + 64*i})
	}
	for g := range textFields / 4 {
		r.group(g)
		if g == 1 {
			MOVL(r.filled, empty)
			NOTL(empty)
			ANDL(label, empty) // an empty label
		}
	}
	last := GP64()
	MOVWQZX(Mem{Base: r.p, Disp: 2 * textFields}, last)
	MOVBLZX(Mem{Base: r.data, Index: last, Scale: 1, Disp: -2}, last.As32())
	XORL(I8('\r'), last.As32())
	ANDL(r.cr.As32(), last.As32())
	ORL(empty, last.As32())
	JNZ(LabelRef("done"))
	VPCMPGTD(repeated(y256, 9), r.longest, r.longest)
	VPOR(r.longest, r.bad, r.bad)
	VPTEST(r.bad, r.bad)
	JNZ(LabelRef("done"))
	ADDQ(step, r.p)
	ADDQ(I32(4*textFields), r.cells)
	INCQ(r.planes)
	DECQ(n)
	JMP(LabelRef("row"))
	Label("done")
	SUBQ(n, total)
	Store(total, ReturnIndex(0))
	VZEROUPPER()
	RET()
}

// rows256 holds the registers and constants that the groups of four fields share.
type rows256 struct {
	data, p, cells, planes reg.Register
	absent, trim           reg.VecVirtual
	bad, longest           reg.VecVirtual
	filled                 reg.GPVirtual // of eight fields, a bit each
	cr                     reg.GPVirtual // 0, or -1 where lines end in CR LF
	hexLanes, decimalLanes Mem           // of the mixed group
	order, even            Mem
}

// mixed256 is the group whose first two fields are decimals.
const mixed256 = (1 + 13) / 4

func (r *rows256) group(g int) {
	at := Mem{Base: r.p, Disp: 8 * g}
	next, length := YMM(), YMM()
	VPMOVZXWQ(at.Offset(2), next)
	VPMOVZXWQ(at, length)
	if g == textFields/4-1 {
		VPSUBQ(r.trim, next, next)
	}
	VPSUBQ(length, next, length) // and 1
	if g == 0 {
		// Without a label the first lane is empty.
		none := YMM()
		VPXOR(none, none, none)
		VPCMPGTQ(none, r.absent, none)
		VPANDN(length, none, length)
		VPOR(r.absent, length, length)
	}
	VPMAXUD(length, r.longest, r.longest)
	some, bits := YMM(), GP32()
	VPCMPGTQ(repeated(y256, 1), length, some)
	VMOVMSKPD(some, bits)
	if g%2 == 0 {
		r.filled = bits
	} else {
		SHLL(Imm(4), bits)
		ORL(bits, r.filled)
		MOVB(r.filled.As8(), Mem{Base: r.planes, Disp: textBlock * (g / 2)})
	}

	// The last eight bytes of each.
	halves := [2]reg.VecVirtual{XMM(), XMM()}
	for i, x := range halves {
		for j, load := range []func(m Mem){func(m Mem) { VMOVQ(m, x) }, func(m Mem) { VMOVHPS(m, x, x) }} {
			end := GP64()
			MOVWQZX(at.Offset(2*(2*i+j)+2), end)
			m := Mem{Base: r.data, Index: end, Scale: 1, Disp: -9}
			if g == textFields/4-1 && i == 1 && j == 1 {
				ADDQ(r.cr, end)
			}
			load(m)
		}
	}
	x, shift := YMM(), YMM()
	Instruction(&ir.Instruction{ // whose input, for the allocator, is the lower half
		Opcode: "VINSERTI128", Operands: []Op{Imm(1), halves[1], halves[0].AsY(), x},
		Inputs: []Op{halves[1], halves[0]}, Outputs: []Op{x},
	})
	VPSLLQ(Imm(3), length, shift)
	VMOVDQU(repeated(y256, 72), next)
	VPSUBQ(shift, next, shift)

	to := Mem{Base: r.cells, Disp: 16 * g}
	var number reg.VecVirtual
	if g <= mixed256 {
		number = r.decimals(g, x, length, shift)
	}
	if g >= mixed256 {
		value := r.hexadecimals(g, x, shift)
		if g == mixed256 {
			VPBLENDD(Imm(0xf0), value, number, number)
		} else {
			number = value
		}
	}
	even := YMM()
	VMOVDQU(r.even, even)
	VPERMD(number, even, number)
	VMOVDQU(number.AsX(), to)
}

// flag marks the row as odd where a bit of x is set in a lane that the group's kind is for.
func (r *rows256) flag(g int, x reg.VecVirtual, lanes Mem) {
	if g == mixed256 {
		VPAND(lanes, x, x)
	}
	VPOR(x, r.bad, r.bad)
}

// decimals turns fields with or without a minus into numbers.
func (r *rows256) decimals(g int, x, length, shift reg.VecVirtual) reg.VecVirtual {
	y, negative, t := YMM(), YMM(), YMM()
	VPSRLVQ(shift, x, y) // the first character in the lowest byte
	VPAND(repeated(y256, 0xff), y, negative)
	VPCMPEQQ(repeated(y256, '-'), negative, negative)
	VPCMPEQQ(repeated(y256, 2), length, t)
	VPAND(negative, t, t) // a sign alone
	r.flag(g, t, r.decimalLanes)
	VPAND(repeated(y256, '-'^'0'), negative, t)
	VPXOR(t, y, y)
	VPXOR(repeated(y256, 0x3030303030303030), y, y)
	VPSLLVQ(shift, y, y)
	nine := YMM()
	VPSUBUSB(repeated(y256, 0x0909090909090909), y, nine)
	r.flag(g, nine, r.decimalLanes)
	VPMADDUBSW(repeated(y256, 0x010a010a010a010a), y, y)
	VPMADDWD(repeated(y256, 0x0001006400010064), y, y)
	VPSRLQ(Imm(32), y, t)
	VPMULUDQ(repeated(y256, 10000), y, y)
	VPADDQ(t, y, y)
	VPXOR(negative, y, y)
	VPSUBQ(negative, y, y)
	return y
}

// hexadecimals turns fields of hexadecimal digits into numbers.
func (r *rows256) hexadecimals(g int, x, shift reg.VecVirtual) reg.VecVirtual {
	digit, letter, isDigit, isLetter := YMM(), YMM(), YMM(), YMM()
	VPXOR(repeated(y256, 0x3030303030303030), x, digit)
	VPOR(repeated(y256, 0x2020202020202020), x, letter)
	VPADDB(repeated(y256, 0x9f9f9f9f9f9f9f9f), letter, letter) // less 'a'
	VPMINUB(repeated(y256, 0x0909090909090909), digit, isDigit)
	VPCMPEQB(digit, isDigit, isDigit)
	VPMINUB(repeated(y256, 0x0505050505050505), letter, isLetter)
	VPCMPEQB(letter, isLetter, isLetter)
	VPADDB(repeated(y256, 0x0a0a0a0a0a0a0a0a), letter, letter)
	VPBLENDVB(isLetter, letter, digit, digit)
	VPOR(isDigit, isLetter, isLetter)
	VPXOR(repeated(y256, 1<<64-1), isLetter, isLetter)
	VPSRLVQ(shift, isLetter, isLetter)
	r.flag(g, isLetter, r.hexLanes)
	VPSRLVQ(shift, digit, digit)
	VPSLLVQ(shift, digit, digit)
	VPMADDUBSW(repeated(y256, 0x0110011001100110), digit, digit)
	VPSHUFB(r.order, digit, digit)
	return digit
}
