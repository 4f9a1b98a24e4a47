package main

import "fmt"

// neonRowMajor writes the kernels that write rows, as float32 and as bfloat16.
func neonRowMajor(a *arm64File) {
	neonRows(a, "rowsNEON", 4)
	neonRows(a, "rowsBFloatNEON", 2)
}

// neonRows writes a kernel that transposes four rows of four columns at a time. Where the number of columns is no
// multiple of four, the last four columns of a row are written again with those that are left.
func neonRows(a *arm64File, name string, size int) {
	const strideBytes = 4 * (8192 + 16) // from one column of a tile to the next
	params := []param{{"dst", "*byte"}, {"stride", "int"}, {"tile", "*float32"}, {"rows", "int"}, {"columns", "int"}}
	as := map[int]string{4: "float32", 2: "bfloat16"}[size]
	a.function(name, fmt.Sprintf("%s writes rows of 4 to 16 columns as %s, each stride bytes behind the one before. "+
		"rows is a multiple of 4 above 0.", name, as), params, "")
	for i, p := range params {
		a.load(p, fmt.Sprintf("R%d", i))
	}
	a.line("MOVD $%d, R5", strideBytes)
	a.line("LSL $2, R5, R6")
	var round bfloatRounding
	if size == 2 {
		round = newBFloatRounding(a)
	}
	a.label("rows")
	a.line("MOVD R2, R8")
	a.line("MOVD R0, R12")
	for i := 1; i < 4; i++ {
		a.line("ADD R5, R%d, R%d", 7+i, 8+i)
		a.line("ADD R1, R%d, R%d", 11+i, 12+i)
	}
	a.line("LSR $2, R4, R7")  // groups of four columns
	a.line("AND $3, R4, R16") // columns behind them
	a.label("columns")
	xs := a.vecs(4)
	for i, x := range xs {
		a.line("VLD1.P (R%d)(R6), [V%d.S4]", 8+i, x)
	}
	ts := a.vecs(4)
	if size == 4 {
		a.i("zip1", s4, ts[0], xs[0], xs[2])
		a.i("zip1", s4, ts[1], xs[1], xs[3])
		a.i("zip2", s4, ts[2], xs[0], xs[2])
		a.i("zip2", s4, ts[3], xs[1], xs[3])
		for i := range 4 {
			a.i(fmt.Sprintf("zip%d", 1+i%2), s4, xs[i], ts[i&2], ts[i|1])
			a.line("FMOVQ.P F%d, 16(R%d)", xs[i], 12+i)
		}
	} else {
		round.round(xs, ts)
		for i := 0; i < 4; i += 2 {
			a.i("sri", s4, xs[i+1], xs[i], 16) // the upper halves of both
		}
		a.i("zip1", s4, ts[0], xs[1], xs[3])
		a.i("zip2", s4, ts[1], xs[1], xs[3])
		for i := range 4 {
			a.line("VST1.P V%d.D[%d], 8(R%d)", ts[i/2], i%2, 12+i)
		}
	}
	a.line("SUBS $1, R7")
	a.line("BNE columns")
	a.line("CBZ R16, next")
	a.line("MOVD $4, R7")
	a.line("SUB R16, R7")
	a.line("MUL R5, R7, R16")
	a.line("LSL $%d, R7, R7", size/2)
	for i := range 4 {
		a.line("SUB R16, R%d", 8+i)
		a.line("SUB R7, R%d", 12+i)
	}
	a.line("MOVD $1, R7")
	a.line("MOVD $0, R16")
	a.line("B columns")
	a.label("next")
	a.line("ADD $16, R2")
	a.line("ADD R1<<2, R0, R0")
	a.line("SUBS $4, R3")
	a.line("BNE rows")
	a.line("RET")
}

// bfloatRounding holds the constants of package bfloat16's Round.
type bfloatRounding struct {
	a              *arm64File
	one, half, nan vreg
}

func newBFloatRounding(a *arm64File) bfloatRounding {
	return bfloatRounding{a, a.everyLane(s4, 1), a.everyLane(s4, 0x7fff), a.everyLane(s4, 0x7fc00000)}
}

// round leaves the rounded value in the upper half of each lane, and anything in the lower half.
func (b *bfloatRounding) round(xs, ts []vreg) {
	numbers := b.a.vecs(len(xs))
	b.a.each("fcmeq", s4, numbers, func(i int) []any { return []any{xs[i], xs[i]} })
	b.a.each("ushr", s4, ts, func(i int) []any { return []any{xs[i], 16} })
	b.a.each("and", b16, ts, func(i int) []any { return []any{ts[i], b.one} })
	b.a.each("add", s4, xs, func(i int) []any { return []any{xs[i], b.half} })
	b.a.each("add", s4, xs, func(i int) []any { return []any{xs[i], ts[i]} })
	b.a.each("bif", b16, xs, func(i int) []any { return []any{b.nan, numbers[i]} })
	b.a.free(numbers...)
}
