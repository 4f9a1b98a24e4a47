package main

import (
	"fmt"
	"go/format"
	"os"
	"slices"
	"strings"
)

// avo writes assembly of amd64 alone, and Go's assembler of arm64 lacks most of NEON's mnemonics. So the kernels of
// arm64 are written with the small assembler in this file: an instruction that Go's assembler knows becomes its
// mnemonic, and any other one the word that encodes it, with Arm's text beside it. A test in fpga/unit compares the
// words with those of LLVM's assembler.

// vreg is one of the 32 vector registers.
type vreg int

// arrangement says into which lanes an instruction divides a register.
type arrangement struct {
	arm, plan9 string // as Arm and as Go's assembler write them
	q, size    uint32 // 1 for a whole register; log2 of a lane's bytes
}

var (
	b16 = arrangement{"16b", "B16", 1, 0}
	h8  = arrangement{"8h", "H8", 1, 1}
	s4  = arrangement{"4s", "S4", 1, 2}
	d2  = arrangement{"2d", "D2", 1, 3}
	b8  = arrangement{"8b", "B8", 0, 0}
	h4  = arrangement{"4h", "H4", 0, 1}
	s2  = arrangement{"2s", "S2", 0, 2}
)

// wide returns lanes of twice the size that fill a register.
func (l arrangement) wide() arrangement { return []arrangement{h8, s4, d2}[l.size] }

// form says what an operation's operands are and where its encoding has them.
type form int

const (
	three          form = iota // three registers, lanes of integers
	threeFloat                 // three registers, lanes of floats
	threeLogic                 // three registers, all bits alike
	threeLong                  // two registers of narrow lanes to one of wide lanes
	threeWide                  // a register of wide lanes and one of narrow lanes to one of wide lanes
	two                        // two registers, lanes of integers
	twoFloat                   // two registers, lanes of floats, or of floats and integers of one size
	twoLongFloat               // a register of narrow floats to one of wide floats
	twoNarrowFloat             // a register of wide floats to one of narrow floats
	twoFullLong                // as twoLongFloat, of integers, shifted left by the narrow lane's bits
	shiftLeft                  // two registers and a number of bits
	shiftRight                 // likewise
	shiftLong                  // shiftLeft to wide lanes
	across                     // all lanes of a register to the lowest lane of another
)

// operation is a row of the table of operations.
type operation struct {
	plan9 string // the mnemonic of Go's assembler, if it has one
	form  form
	code  uint32 // the encoding, without registers and lanes
}

// operations are those of Arm's Architecture Reference Manual that kernels use, by its names. For the lanes of the
// upper half of a register, an operation to or from wide lanes is called with a 2 behind its name.
var operations = map[string]operation{
	"add":    {"VADD", three, 0x0e208400},
	"sub":    {"VSUB", three, 0x2e208400},
	"mul":    {"", three, 0x0e209c00},
	"mla":    {"", three, 0x0e209400},
	"mls":    {"", three, 0x2e209400},
	"umax":   {"VUMAX", three, 0x2e206400},
	"umin":   {"VUMIN", three, 0x2e206c00},
	"uzp1":   {"VUZP1", three, 0x0e001800},
	"uzp2":   {"VUZP2", three, 0x0e005800},
	"zip1":   {"VZIP1", three, 0x0e003800},
	"zip2":   {"VZIP2", three, 0x0e007800},
	"ushl":   {"", three, 0x2e204400},
	"and":    {"VAND", threeLogic, 0x0e201c00},
	"eor":    {"VEOR", threeLogic, 0x2e201c00},
	"bit":    {"VBIT", threeLogic, 0x2ea01c00},
	"bif":    {"VBIF", threeLogic, 0x2ee01c00},
	"orr":    {"VORR", threeLogic, 0x0ea01c00},
	"fmla":   {"VFMLA", threeFloat, 0x0e20cc00},
	"fmul":   {"", threeFloat, 0x2e20dc00},
	"fadd":   {"", threeFloat, 0x0e20d400},
	"fsub":   {"", threeFloat, 0x0ea0d400},
	"fmax":   {"", threeFloat, 0x0e20f400},
	"fmin":   {"", threeFloat, 0x0ea0f400},
	"fcmeq":  {"", threeFloat, 0x0e20e400},
	"fcmgt":  {"", threeFloat, 0x2ea0e400},
	"cmeq":   {"VCMEQ", three, 0x2e208c00},
	"cmgt":   {"", three, 0x0e203400},
	"cmhs":   {"", three, 0x2e203c00},
	"uaddw":  {"VUADDW", threeWide, 0x2e201000},
	"umull":  {"", threeLong, 0x2e20c000},
	"umlal":  {"", threeLong, 0x2e208000},
	"not":    {"", two, 0x2e205800},
	"scvtf":  {"", twoFloat, 0x0e21d800},
	"fcvtns": {"", twoFloat, 0x0e21a800},
	"uminv":  {"", across, 0x2e31a800},
	"umaxv":  {"", across, 0x2e30a800},
	"fcvtl":  {"", twoLongFloat, 0x0e217800},
	"fcvtn":  {"", twoNarrowFloat, 0x0e216800},
	"shll":   {"", twoFullLong, 0x2e213800},
	"shl":    {"VSHL", shiftLeft, 0x0f005400},
	"sri":    {"VSRI", shiftRight, 0x2f004400},
	"sshr":   {"", shiftRight, 0x0f000400},
	"ushr":   {"VUSHR", shiftRight, 0x2f000400},
	"ushll":  {"VUSHLL", shiftLong, 0x2f00a400},
}

// arm64File is the assembly of one unit for arm64, and its declarations.
type arm64File struct {
	text, stubs strings.Builder
	used        [32]bool // vector registers of the function that is being written
	offset      int      // of its next parameter
	labels      int
}

// vec returns a free vector register.
func (a *arm64File) vec() vreg {
	for r, used := range a.used {
		if !used {
			a.used[r] = true
			return vreg(r)
		}
	}
	panic("no free vector register")
}

// vecs returns n free vector registers.
func (a *arm64File) vecs(n int) []vreg {
	rs := make([]vreg, n)
	for i := range rs {
		rs[i] = a.vec()
	}
	return rs
}

// free frees vector registers.
func (a *arm64File) free(rs ...vreg) {
	for _, r := range rs {
		if !a.used[r] {
			panic(fmt.Sprintf("V%d is free already", r))
		}
		a.used[r] = false
	}
}

// line writes a line of Go's assembly.
func (a *arm64File) line(text string, args ...any) { fmt.Fprintf(&a.text, "\t"+text+"\n", args...) }

// label begins a label.
func (a *arm64File) label(name string) { fmt.Fprintf(&a.text, "\n%s:\n", name) }

// param is a parameter of a function.
type param struct{ name, kind string }

// function begins a function without a frame. It loads no parameter.
func (a *arm64File) function(name, doc string, params []param, result string) {
	a.used, a.offset = [32]bool{}, 0
	var list []string
	for i, p := range params {
		if i+1 == len(params) || params[i+1].kind != p.kind {
			list = append(list, p.name+" "+p.kind)
		} else {
			list = append(list, p.name)
		}
		a.offset = align(a.offset, sizeOf(p.kind)) + sizeOf(p.kind)
	}
	frame := a.offset
	signature := "func " + name + "(" + strings.Join(list, ", ") + ")"
	if result != "" {
		signature += " (" + result + " int)"
		frame = align(frame, 8) + 8
	}
	fmt.Fprintf(&a.stubs, "\n// %s\n//\n//go:noescape\n%s\n", strings.Join(wrap(doc), "\n// "), signature)
	fmt.Fprintf(&a.text, "\n// %s\nTEXT ·%s(SB), NOSPLIT, $0-%d\n", signature, name, frame)
	a.offset = 0
}

// load loads the next parameter of the function into a general register or a vector register.
func (a *arm64File) load(p param, to string) {
	a.offset = align(a.offset, sizeOf(p.kind))
	move := map[string]string{"uint32": "MOVWU", "bool": "MOVBU", "float32": "FMOVS", "float64": "FMOVD"}[p.kind]
	if move == "" {
		move = "MOVD"
	}
	a.line("%s %s+%d(FP), %s", move, p.name, a.offset, to)
	a.offset += sizeOf(p.kind)
}

// loadEvery returns a register with the function's next parameter in every lane. It uses R15.
func (a *arm64File) loadEvery(p param, l arrangement) vreg {
	r := a.vec()
	switch p.kind {
	case "float32", "float64":
		a.load(p, fmt.Sprintf("F%d", r))
		a.line("VDUP V%d.%c[0], V%d.%s", r, l.plan9[0], r, l.plan9)
	default:
		a.load(p, "R15")
		a.line("VDUP R15, V%d.%s", r, l.plan9)
	}
	return r
}

// result stores the function's result from a general register.
func (a *arm64File) result(name, from string) {
	a.line("MOVD %s, %s+%d(FP)", from, name, align(a.offset, 8))
}

func sizeOf(kind string) int {
	switch kind {
	case "uint32", "int32", "float32":
		return 4
	case "bool":
		return 1
	}
	return 8
}

func align(offset, size int) int { return (offset + size - 1) / size * size }

// i writes an instruction of the table: destination, sources, and the bits that a shift shifts by. The lanes are the
// narrow ones of an operation that has two kinds of them.
func (a *arm64File) i(name string, l arrangement, d vreg, operands ...any) {
	op, ok := operations[name]
	if !ok {
		panic("no operation " + name)
	}
	to, from := l, l
	switch op.form {
	case threeLong, threeWide, twoLongFloat, twoFullLong, shiftLong:
		to = l.wide()
	case twoNarrowFloat:
		from = l.wide()
	}
	code := op.code | l.q<<30 | uint32(d)
	arm, plan9 := fmt.Sprintf("v%d.%s", d, to.arm), fmt.Sprintf("V%d.%s", d, to.plan9)
	if op.form == across {
		arm = fmt.Sprintf("%c%d", "bhs"[l.size], d)
	}
	sources := 0
	for _, o := range operands {
		r, isRegister := o.(vreg)
		if !isRegister {
			arm, plan9 = arm+fmt.Sprintf(", #%d", o), fmt.Sprintf("$%d, ", o)+plan9
			continue
		}
		of := from
		if op.form == threeWide && sources == 0 {
			of = to
		}
		code |= uint32(r) << []int{5, 16}[sources]
		sources++
		arm, plan9 = arm+fmt.Sprintf(", v%d.%s", r, of.arm), fmt.Sprintf("V%d.%s, ", r, of.plan9)+plan9
	}
	bits := 8 << l.size
	switch op.form {
	case threeFloat, twoFloat:
		code |= l.size & 1 << 22
	case twoLongFloat, twoNarrowFloat:
		code |= max(from.size, to.size) & 1 << 22 // 1 between lanes of 32 and of 64 bits
	case threeLogic:
		if l != b16 {
			panic(name + " takes all bits alike")
		}
	case shiftLeft, shiftLong:
		code |= uint32(bits+operands[1].(int)) << 16
	case shiftRight:
		code |= uint32(2*bits-operands[1].(int)) << 16
	default:
		code |= l.size << 22
	}
	if op.form == twoFullLong {
		arm += fmt.Sprintf(", #%d", bits)
	}
	mnemonic := op.plan9
	switch op.form {
	case threeLong, threeWide, twoLongFloat, twoNarrowFloat, twoFullLong, shiftLong:
		if l.q == 1 {
			name, mnemonic = name+"2", mnemonic+"2"
		}
	}
	if op.plan9 != "" {
		a.line("%s %s", mnemonic, plan9)
		return
	}
	a.line("WORD $0x%08x // %s %s", code, name, arm)
}

// entry loads 16 bytes of a table, whose number a general register holds.
func (a *arm64File) entry(d vreg, table, index int) {
	a.line("WORD $0x%08x // ldr q%d, [x%d, x%d, lsl #4]", 0x3ce07800|index<<16|table<<5|int(d), d, table, index)
}

// each writes an instruction for every destination, with the operands that of returns.
func (a *arm64File) each(name string, l arrangement, ds []vreg, of func(i int) []any) {
	for i, d := range ds {
		a.i(name, l, d, of(i)...)
	}
}

// interleaved writes the lines of two functions in one another, each function's in their order. They use different
// registers, and have no labels.
func (a *arm64File) interleaved(f, g func()) {
	before := a.text.String()
	linesOf := func(f func()) []string {
		a.text.Reset()
		f()
		return slices.Collect(strings.Lines(a.text.String()))
	}
	first, second := linesOf(f), linesOf(g)
	a.text.Reset()
	a.text.WriteString(before)
	done := 0
	for i, line := range first {
		a.text.WriteString(line)
		until := (i + 1) * len(second) / len(first)
		a.text.WriteString(strings.Join(second[done:until], ""))
		done = until
	}
}

// everyLane returns a register with x in every lane. It uses R15.
func (a *arm64File) everyLane(l arrangement, x uint64) vreg {
	r := a.vec()
	a.line("MOVD $0x%x, R15", x)
	a.line("VDUP R15, V%d.%s", r, l.plan9)
	return r
}

// write writes the two files, as avo does on amd64.
func (a *arm64File) write(unit, asm, stubs, pkg string) error {
	header := "// Code generated by fpga/unit/_gen -arch arm64 -unit " + unit + ". DO NOT EDIT.\n\n" +
		"//go:build !purego\n\n"
	text := header + "#include \"textflag.h\"\n" + a.text.String()
	if err := os.WriteFile(asm, []byte(text), 0o644); err != nil {
		return err
	}
	declared, err := format.Source([]byte(header + "package " + pkg + "\n" + a.stubs.String()))
	if err != nil {
		return err
	}
	return os.WriteFile(stubs, declared, 0o644)
}
