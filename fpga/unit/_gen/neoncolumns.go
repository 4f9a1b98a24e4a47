package main

import "fmt"

// neonFillNull writes kernels that work in place, for values of 64 and of 32 bits.
func neonFillNull(a *arm64File) {
	neonFill(a, 8)
	neonFill(a, 4)
}

// neonFill writes a kernel that takes 64 bytes of values at a time. A table lookup spreads the comparison of each byte
// of validity over the bytes of its value.
func neonFill(a *arm64File, size int) {
	bits, each := 8*size, 64/size
	name := fmt.Sprintf("fill%dxNEON", bits)
	params := []param{{"v", fmt.Sprintf("*uint%d", bits)}, {"valid", "*byte"}, {"n", "int"},
		{"fill", fmt.Sprintf("uint%d", bits)}}
	doc := fmt.Sprintf("%s fills the nulls among n values, a multiple of %d above 0.", name, each)
	a.function(name, doc, params, "")
	for i, p := range params[:3] {
		a.load(p, fmt.Sprintf("R%d", i))
	}
	l, bytes := d2, "B8"
	low, up := uint64(0), uint64(0x0101010101010101)
	if size == 4 {
		l, bytes = s4, "B16"
		low, up = 0x0101010100000000, 0x0303030302020202
	}
	fill, zero, places := a.loadEvery(params[3], l), a.everyLane(d2, 0), a.vecs(4)
	for i, p := range places {
		first := uint64(i*16/size) * 0x0101010101010101
		a.line("MOVD $0x%x, R4", low+first)
		a.line("MOVD $0x%x, R5", up+first)
		a.line("VMOV R4, V%d.D[0]", p)
		a.line("VMOV R5, V%d.D[1]", p)
	}
	a.label("loop")
	valid, masks, xs := a.vec(), a.vecs(4), a.vecs(4)
	a.line("VLD1.P %d(R1), [V%d.%s]", each, valid, bytes)
	for i := 0; i < 4; i += 2 {
		a.line("FLDPQ %d(R0), (F%d, F%d)", 16*i, xs[i], xs[i+1])
	}
	a.i("cmeq", b16, valid, valid, zero)
	for i, m := range masks {
		a.line("VTBL V%d.B16, [V%d.B16], V%d.B16", places[i], valid, m)
	}
	a.each("bit", b16, xs, func(i int) []any { return []any{fill, masks[i]} })
	for i := 0; i < 4; i += 2 {
		a.line("FSTPQ (F%d, F%d), %d(R0)", xs[i], xs[i+1], 16*i)
	}
	a.line("ADD $64, R0")
	a.line("SUBS $%d, R2", each)
	a.line("BNE loop")
	a.line("RET")
}

// neonClamp writes kernels that work in place.
func neonClamp(a *arm64File) {
	neonClampOf(a, "clampInt64", "int64", "cmgt", d2)
	neonClampOf(a, "clampFloat32", "float32", "fcmgt", s4)
	neonClampOf(a, "clampFloat64", "float64", "fcmgt", d2)
}

// neonClampOf writes a kernel that takes 64 bytes at a time. Comparisons leave NaN as it is, and zeros their signs.
func neonClampOf(a *arm64File, name, kind, greater string, l arrangement) {
	name += "NEON"
	each := 64 >> l.size
	params := []param{{"v", "*" + kind}, {"n", "int"}, {"lo", kind}, {"hi", kind}}
	a.function(name, fmt.Sprintf("%s clamps n values, a multiple of %d above 0.", name, each), params, "")
	a.load(params[0], "R0")
	a.load(params[1], "R1")
	lo, hi := a.loadEvery(params[2], l), a.loadEvery(params[3], l)
	a.label("loop")
	xs, masks := a.vecs(4), a.vecs(4)
	for i := 0; i < 4; i += 2 {
		a.line("FLDPQ %d(R0), (F%d, F%d)", 16*i, xs[i], xs[i+1])
	}
	a.each(greater, l, masks, func(i int) []any { return []any{lo, xs[i]} })
	a.each("bit", b16, xs, func(i int) []any { return []any{lo, masks[i]} })
	a.each(greater, l, masks, func(i int) []any { return []any{xs[i], hi} })
	a.each("bit", b16, xs, func(i int) []any { return []any{hi, masks[i]} })
	for i := 0; i < 4; i += 2 {
		a.line("FSTPQ (F%d, F%d), %d(R0)", xs[i], xs[i+1], 16*i)
	}
	a.line("ADD $64, R0")
	a.line("SUBS $%d, R1", each)
	a.line("BNE loop")
	a.line("RET")
}
