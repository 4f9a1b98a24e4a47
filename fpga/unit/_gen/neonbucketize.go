package main

import "fmt"

// neonBucketize writes the kernels that compare as float32, for sources of three types.
func neonBucketize(a *arm64File) {
	neonBucket(a, "bucketFloat32NEON", "float32", 4)
	neonBucket(a, "bucketFloat64NEON", "float64", 8)
	neonBucket(a, "bucketInt64NEON", "int64", 8)
}

// neonBuckets holds the constants of a kernel.
type neonBuckets struct {
	a                           *arm64File
	zero, top, low, high, shift vreg // shift is negative: it shifts to the right
	within, most                vreg // of regions: a key's bits below the region, and 31
}

// neonBucket writes a kernel that looks four values up at a time. NEON gathers nothing: places go to general
// registers, and words are loaded one by one.
func neonBucket(a *arm64File, name, kind string, size int) {
	params := []param{{"dst", "*int64"}, {"src", "*" + kind}, {"n", "int"}, {"regions", "*uint32"},
		{"cells", "*uint64"}, {"thresholds", "*uint32"}, {"low", "uint32"}, {"high", "uint32"}, {"shift", "uint32"},
		{"more", "int"}}
	a.function(name, name+" sets the buckets of the first n/4*4 of n values, 4 at a time. It ends before values of "+
		"which some are NaN. It looks at the threshold of a cell, and at more behind it. It returns the number of "+
		"values that it has worked on.", params, "done")
	for i, p := range params[:6] {
		a.load(p, fmt.Sprintf("R%d", i))
	}
	b := neonBuckets{a: a, zero: a.everyLane(s4, 0), top: a.everyLane(s4, 1<<31), most: a.everyLane(s4, 31)}
	b.low, b.high = a.loadEvery(params[6], s4), a.loadEvery(params[7], s4)
	a.load(params[8], "R7")
	b.shift, b.within = a.vec(), a.vec()
	a.line("MOVD $1, R15")
	a.line("LSL R7, R15, R15")
	a.line("SUB $1, R15")
	a.line("VDUP R15, V%d.S4", b.within)
	a.line("NEG R7, R7")
	a.line("VDUP R7, V%d.S4", b.shift)
	a.load(params[9], "R6")
	a.line("MOVD R2, R16")

	a.label("loop")
	a.line("CMP $4, R2")
	a.line("BLT end")
	key, odd := b.values(kind), a.vec()
	if kind != "int64" { // integers are no NaNs
		a.i("fcmeq", s4, odd, key, key)
		a.i("uminv", s4, odd, odd)
		a.line("FMOVS F%d, R7", odd)
		a.line("CBZW R7, end")
	}
	a.i("fadd", s4, key, key, b.zero)
	a.i("sshr", s4, odd, key, 31)
	a.i("orr", b16, odd, odd, b.top)
	a.i("eor", b16, key, key, odd)
	at, within := a.vec(), a.vec()
	a.i("umax", s4, within, key, b.low)
	a.i("umin", s4, within, within, b.high)
	a.i("sub", s4, at, within, b.low)
	a.i("ushl", s4, at, at, b.shift)
	a.line("CBZ R3, cells")
	region := b.words(3, at)
	a.i("and", b16, within, within, b.within)
	a.i("ushr", s4, at, region, 5)
	a.i("and", b16, region, region, b.most)
	a.i("sub", s4, region, b.zero, region)
	a.i("ushl", s4, within, within, region)
	a.i("add", s4, at, at, within)
	a.free(region)
	a.label("cells")
	n := b.lookUp(at, key)
	a.line("CBZ R6, store")
	a.line("MOVD R6, R7")
	a.label("more")
	threshold := b.words(5, n)
	a.i("cmhs", s4, threshold, key, threshold)
	a.i("sub", s4, n, n, threshold)
	a.line("SUBS $1, R7")
	a.line("BNE more")
	a.label("store")
	a.i("ushll", s4, threshold, n, 0)
	a.i("ushll", s2, n, n, 0)
	a.line("FSTPQ (F%d, F%d), (R0)", n, threshold)
	a.line("ADD $32, R0")
	a.line("ADD $%d, R1", 4*size)
	a.line("SUB $4, R2")
	a.line("B loop")
	a.label("end")
	a.line("SUB R2, R16")
	a.result("done", "R16")
	a.line("RET")
}

// values returns the next four values as float32. Each is rounded once.
func (b *neonBuckets) values(kind string) vreg {
	a := b.a
	v := a.vec()
	switch kind {
	case "float32":
		a.line("FMOVQ (R1), F%d", v)
	case "float64":
		low, up := a.vec(), a.vec()
		a.line("FLDPQ (R1), (F%d, F%d)", low, up)
		a.i("fcvtn", s2, v, low)
		a.i("fcvtn", s4, v, up)
		a.free(low, up)
	case "int64":
		xs := a.vecs(4)
		a.line("LDP (R1), (R8, R9)")
		a.line("LDP 16(R1), (R10, R11)")
		for i, x := range xs {
			a.line("SCVTFS R%d, F%d", 8+i, x)
		}
		a.i("zip1", s4, xs[0], xs[0], xs[1])
		a.i("zip1", s4, xs[2], xs[2], xs[3])
		a.i("zip1", d2, v, xs[0], xs[2])
		a.free(xs...)
	}
	return v
}

// words returns the 32-bit words at the places of a table that the lanes hold.
func (b *neonBuckets) words(table int, at vreg) vreg {
	a := b.a
	xs := a.vecs(4)
	for i, x := range xs {
		a.line("VMOV V%d.S[%d], R%d", at, i, 8+i)
		a.line("FMOVS (R%d)(R%d<<2), F%d", table, 8+i, x)
	}
	a.i("zip1", s4, xs[0], xs[0], xs[1])
	a.i("zip1", s4, xs[2], xs[2], xs[3])
	a.i("zip1", d2, xs[0], xs[0], xs[2])
	a.free(xs[1:]...)
	return xs[0]
}

// lookUp returns the counts that the cells at the places of the lanes give for keys.
func (b *neonBuckets) lookUp(at, key vreg) vreg {
	a := b.a
	xs := a.vecs(4)
	for i, x := range xs {
		a.line("VMOV V%d.S[%d], R%d", at, i, 8+i)
		a.line("FMOVD (R4)(R%d<<3), F%d", 8+i, x)
	}
	a.i("zip1", d2, xs[0], xs[0], xs[1])
	a.i("zip1", d2, xs[2], xs[2], xs[3])
	a.i("uaddw", s2, xs[0], xs[0], key)
	a.i("uaddw", s4, xs[2], xs[2], key)
	a.i("uzp2", s4, xs[0], xs[0], xs[2])
	a.free(xs[1:]...)
	return xs[0]
}
