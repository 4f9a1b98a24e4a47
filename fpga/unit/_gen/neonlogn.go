package main

import (
	"fmt"
	"math"
)

// neonLogN writes the logarithm.
func neonLogN(a *arm64File) {
	params := []param{{"dst", "*float32"}, {"src", "*float32"}, {"n", "int"}, {"add", "float32"}, {"lo", "float32"},
		{"hi", "float32"}, {"table", "*[1 << tableBits]struct{ inverse, log float64 }"}}
	a.function("log4NEON", "log4NEON works on the first n/4*4 of n clamped values, 4 at a time. It ends before values "+
		"of which some are not positive and finite, or need more than the vectors' precision. It returns the number "+
		"of values that it has worked on.", params, "done")
	for i, p := range params[:3] {
		a.load(p, fmt.Sprintf("R%d", i))
	}
	add, lo, hi := a.loadEvery(params[3], s4), a.loadEvery(params[4], s4), a.loadEvery(params[5], s4)
	a.load(params[6], "R3")
	float := func(x float64) vreg { return a.everyLane(d2, math.Float64bits(x)) }
	// logn.go has the constants and says what they are for.
	const dropped, ziv = 29, 1 << 7
	one, least := a.everyLane(s4, 1), a.everyLane(s4, 0x7f800000-1)
	begin, exponent := a.everyLane(d2, 0x3fe6<<48), a.everyLane(d2, 0xfff<<52)
	unit, ln2 := float(1), float(math.Ln2)
	fifth, quarter, sixth, third, half := float(1./5), float(1./4), float(1./6), float(1./3), float(1./2)
	rest, nearHalf, near := a.everyLane(d2, 1<<dropped-1), a.everyLane(d2, 1<<(dropped-1)-ziv), a.everyLane(d2, 2*ziv)
	a.line("MOVD R2, R4")

	a.label("loop")
	a.line("CMP $4, R2")
	a.line("BLT end")
	y, odd := a.vec(), a.vec()
	a.line("FMOVQ (R1), F%d", y)
	a.i("fmax", s4, y, y, lo)
	a.i("fmin", s4, y, y, hi)
	a.i("fadd", s4, y, y, add)
	a.i("sub", s4, odd, y, one)
	a.i("cmhs", s4, odd, odd, least)
	zs := a.vecs(2)
	a.i("fcvtl", s2, zs[0], y)
	a.i("fcvtl", s4, zs[1], y)

	// y = 2^k z, and the table's entry for z.
	ks, ts := a.vecs(2), a.vecs(2)
	a.each("sub", d2, ks, func(i int) []any { return []any{zs[i], begin} })
	inverses, logs := a.vecs(2), a.vecs(2)
	for i, from := range ks {
		for lane, r := range []vreg{inverses[i], logs[i]} {
			a.line("VMOV V%d.D[%d], R%d", from, lane, 5+2*i+lane)
			a.line("UBFX $44, R%d, $8, R%d", 5+2*i+lane, 5+2*i+lane)
			a.entry(r, 3, 5+2*i+lane)
		}
	}
	a.each("and", b16, ts, func(i int) []any { return []any{ks[i], exponent} })
	a.each("sub", d2, zs, func(i int) []any { return []any{zs[i], ts[i]} })
	a.each("sshr", d2, ks, func(i int) []any { return []any{ks[i], 52} })
	a.each("scvtf", d2, ks, func(i int) []any { return []any{ks[i]} })
	a.each("zip2", d2, ts, func(i int) []any { return []any{inverses[i], logs[i]} })
	a.each("zip1", d2, inverses, func(i int) []any { return []any{inverses[i], logs[i]} })
	a.free(logs...)
	logs, rs := ts, zs

	// Each product and each sum is rounded as in plain Go, in the same order, so that the bits are the same.
	a.each("fmul", d2, rs, func(i int) []any { return []any{zs[i], inverses[i]} })
	a.each("fsub", d2, rs, func(i int) []any { return []any{rs[i], unit} })
	a.each("fmul", d2, ks, func(i int) []any { return []any{ks[i], ln2} })
	a.each("fadd", d2, logs, func(i int) []any { return []any{ks[i], logs[i]} })
	squares, ps, qs := inverses, ks, a.vecs(2)
	a.each("fmul", d2, squares, func(i int) []any { return []any{rs[i], rs[i]} })
	a.each("fmul", d2, ps, func(i int) []any { return []any{rs[i], fifth} })
	a.each("fsub", d2, ps, func(i int) []any { return []any{ps[i], quarter} })
	a.each("fmul", d2, qs, func(i int) []any { return []any{squares[i], sixth} })
	a.each("fsub", d2, ps, func(i int) []any { return []any{ps[i], qs[i]} })
	a.each("fmul", d2, qs, func(i int) []any { return []any{rs[i], third} })
	a.each("fsub", d2, qs, func(i int) []any { return []any{qs[i], half} })
	a.each("fmul", d2, ps, func(i int) []any { return []any{squares[i], ps[i]} })
	a.each("fadd", d2, qs, func(i int) []any { return []any{qs[i], ps[i]} })
	a.each("fmul", d2, qs, func(i int) []any { return []any{squares[i], qs[i]} })
	a.each("fadd", d2, qs, func(i int) []any { return []any{rs[i], qs[i]} })
	a.each("fadd", d2, qs, func(i int) []any { return []any{logs[i], qs[i]} })

	// Ziv's test.
	a.each("and", b16, ps, func(i int) []any { return []any{qs[i], rest} })
	a.each("sub", d2, ps, func(i int) []any { return []any{ps[i], nearHalf} })
	a.each("cmhs", d2, ps, func(i int) []any { return []any{near, ps[i]} })
	a.i("orr", b16, odd, odd, ps[0])
	a.i("orr", b16, odd, odd, ps[1])
	a.i("umaxv", s4, odd, odd)
	a.line("FMOVS F%d, R5", odd)
	a.line("CBNZW R5, end")
	a.i("fcvtn", s2, y, qs[0])
	a.i("fcvtn", s4, y, qs[1])
	a.line("FMOVQ.P F%d, 16(R0)", y)
	a.line("ADD $16, R1")
	a.line("SUB $4, R2")
	a.line("B loop")
	a.label("end")
	a.line("SUB R2, R4")
	a.result("done", "R4")
	a.line("RET")
}
