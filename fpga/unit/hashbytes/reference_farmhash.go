package hashbytes

// pairOfWords is what FarmHash keeps for 32 bytes of a block.
type pairOfWords struct{ first, second uint64 }

func referenceFarmHash(value []byte) uint64 {
	const zero, one, two uint64 = 14097894508562428199, 13011662864482103923, 11160318154034397263
	n := len(value)
	size := uint64(n)
	word := func(at int) uint64 { return wordAt(value, at, 8) }
	right := func(x uint64, by int) uint64 { return turnLeft(x, 64-by, 64) }
	shifted := func(x uint64) uint64 { return x ^ x>>47 }
	join := func(u, v, factor uint64) uint64 {
		a := shifted((u ^ v) * factor)
		b := shifted((v ^ a) * factor)
		return b * factor
	}
	factor := two + 2*size
	switch {
	case n == 0:
		return two
	case n <= 3:
		y := uint64(value[0]) + 256*uint64(value[n/2])
		z := size + 4*uint64(value[n-1])
		return shifted(y*two^z*zero) * two
	case n <= 7:
		return join(size+8*wordAt(value, 0, 4), wordAt(value, n-4, 4), factor)
	case n <= 16:
		a, b := word(0)+two, word(n-8)
		return join(right(b, 37)*factor+a, (right(a, 25)+b)*factor, factor)
	case n <= 32:
		a, b, c, d := word(0)*one, word(8), word(n-8)*factor, word(n-16)*two
		return join(right(a+b, 43)+right(c, 30)+d, a+right(b+two, 18)+c, factor)
	case n <= 64:
		a, b, c, d := word(0)*two, word(8), word(n-8)*factor, word(n-16)*two
		y := right(a+b, 43) + right(c, 30) + d
		z := join(y, a+right(b+two, 18)+c, factor)
		e, f, g, h := word(16)*factor, word(24), (y+word(n-32))*factor, (z+word(n-24))*factor
		return join(right(e+f, 43)+right(g, 30)+h, e+right(f+a, 18)+g, factor)
	}
	weak := func(at int, a, b uint64) pairOfWords {
		a += word(at)
		b = right(b+a+word(at+24), 21)
		c := a + word(at+8) + word(at+16)
		return pairOfWords{c + word(at+24), b + right(c, 44) + a}
	}
	var v, w pairOfWords
	seed := uint64(81)
	x, y := seed*two+word(0), seed*one+113
	z := shifted(y*two+113) * two
	round := func(at int, factor, more uint64) {
		x = right(x+y+v.first+word(at+8), 37) * factor
		y = right(y+v.second+word(at+48), 42) * factor
		x ^= w.second * more
		y += v.first*more + word(at+40)
		z = right(z+w.first, 33) * factor
		v = weak(at, v.second*factor, x+w.first)
		w = weak(at+32, z+w.second, y+word(at+16))
		x, z = z, x
	}
	at := 0
	for ; n-at > 64; at += 64 {
		round(at, one, 1)
	}
	factor = one + 2*(z%256)
	w.first += (size - 1) % 64
	v.first += w.first
	w.first += v.first
	round(n-64, factor, 9)
	return join(join(v.first, w.first, factor)+shifted(y)*zero+z, join(v.second, w.second, factor)+x, factor)
}
