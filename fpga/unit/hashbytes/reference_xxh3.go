package hashbytes

import "slices"

// The specification's secret as numbers, the least byte of each first, and its primes, which the reference has for
// itself.
func referenceSecret() []byte {
	var secret []byte
	for _, word := range []uint64{
		0xbe4ba423396cfeb8, 0x1cad21f72c81017c, 0xdb979083e96dd4de, 0x1f67b3b7a4a44072, 0x78e5c0cc4ee679cb,
		0x2172ffcc7dd05a82, 0x8e2443f7744608b8, 0x4c263a81e69035e0, 0xcb00c391bb52283c, 0xa32e531b8b65d088,
		0x4ef90da297486471, 0xd8acdea946ef1938, 0x3f349ce33f76faa8, 0x1d4f0bc7c7bbdcf9, 0x3159b4cd4be0518a,
		0x647378d9c97e9fc8, 0xc3ebd33483acc5ea, 0xeb6313faffa081c5, 0x49daf0b751dd0d17, 0x9e68d429265516d3,
		0xfca1477d58be162b, 0xce31d07ad1b8f88f, 0x280416958f3acb45, 0x7e404bbbcafbd7af,
	} {
		for shift := 0; shift < 64; shift += 8 {
			secret = append(secret, byte(word>>shift))
		}
	}
	return secret
}

func referenceXXH3(value []byte) uint64 {
	const (
		p32First, p32Second, p32Third        = 2654435761, 2246822519, 3266489917
		p64First, p64Second, p64Third        = 11400714785074694791, 14029467366897019727, 1609587929392839161
		p64Fourth, p64Fifth           uint64 = 9650029242287828579, 2870177450012600261
	)
	n, secret := len(value), referenceSecret()
	size := uint64(n)
	key := func(at int) uint64 { return wordAt(secret, at, 8) }
	finish := func(h uint64) uint64 {
		h = (h ^ h>>37) * 1609587791953885689
		return h ^ h>>32
	}
	finishShort := func(h uint64) uint64 {
		h = (h ^ h>>33) * p64Second
		h = (h ^ h>>29) * p64Third
		return h ^ h>>32
	}
	mix := func(at, keyAt int) uint64 {
		return crossProduct(wordAt(value, at, 8)^key(keyAt), wordAt(value, at+8, 8)^key(keyAt+8))
	}
	switch {
	case n == 0:
		return finishShort(key(56) ^ key(64))
	case n <= 3:
		word := wordAt([]byte{value[n-1], byte(n), value[0], value[n/2]}, 0, 4)
		return finishShort(word ^ wordAt(secret, 0, 4) ^ wordAt(secret, 4, 4))
	case n <= 8:
		h := wordAt(value, n-4, 4) + wordAt(value, 0, 4)*(1<<32) ^ key(8) ^ key(16)
		h = (h ^ turnLeft(h, 49, 64) ^ turnLeft(h, 24, 64)) * 11507291218515648293
		h = (h ^ (h>>35 + size)) * 11507291218515648293
		return h ^ h>>28
	case n <= 16:
		low, high := wordAt(value, 0, 8)^key(24)^key(32), wordAt(value, n-8, 8)^key(40)^key(48)
		turned := make([]byte, 8)
		for i := range turned {
			turned[i] = byte(low >> (56 - 8*i))
		}
		return finish(size + wordAt(turned, 0, 8) + high + crossProduct(low, high))
	case n <= 128:
		h := size * p64First
		h += mix(0, 0) + mix(n-16, 16)
		if n > 32 {
			h += mix(16, 32) + mix(n-32, 48)
		}
		if n > 64 {
			h += mix(32, 64) + mix(n-48, 80)
		}
		if n > 96 {
			h += mix(48, 96) + mix(n-64, 112)
		}
		return finish(h)
	case n <= 240:
		h := size * p64First
		for at := 0; at < 128; at += 16 {
			h += mix(at, at)
		}
		h = finish(h)
		for at := 128; at+16 <= n; at += 16 {
			h += mix(at, at-125)
		}
		return finish(h + mix(n-16, 136-17))
	}
	lanes := []uint64{p32Third, p64First, p64Second, p64Third, p64Fourth, p32Second, p64Fifth, p32First}
	accumulate := func(at, keyAt int) {
		before := slices.Clone(lanes)
		for i := range lanes {
			mixed := wordAt(value, at+8*i, 8) ^ key(keyAt+8*i)
			other := i + 1 - 2*(i%2)
			lanes[i] = before[i] + wordAt(value, at+8*other, 8) + mixed%(1<<32)*(mixed/(1<<32))
		}
	}
	at := 0
	for ; at+1024 < n; at += 1024 { // whole blocks, but for one that ends the value
		for stripe := range 16 {
			accumulate(at+64*stripe, 8*stripe)
		}
		for i := range lanes {
			lanes[i] = (lanes[i] ^ lanes[i]>>47 ^ key(128+8*i)) * p32First
		}
	}
	for keyAt := 0; at+64 < n; at, keyAt = at+64, keyAt+8 {
		accumulate(at, keyAt)
	}
	accumulate(n-64, 192-64-7)
	h := size * p64First
	for i := 0; i < 8; i += 2 {
		h += crossProduct(lanes[i]^key(11+8*i), lanes[i+1]^key(11+8*i+8))
	}
	return finish(h)
}
