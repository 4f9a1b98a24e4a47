package hashbytes

import "math/big"

// Reference returns the hash of one value as the function's definition has it. Numbers are read byte by byte, and
// products are those of integers without bounds.
func Reference(value []byte, function Function) int64 {
	switch function {
	case Murmur3:
		return int64(int32(referenceMurmur3(value)))
	case FarmHash:
		return int64(referenceFarmHash(value))
	default:
		return int64(referenceXXH3(value))
	}
}

// wordAt returns the number of a size in bytes that begins at a place, the least byte first.
func wordAt(b []byte, at, size int) uint64 {
	var x uint64
	for i := size - 1; i >= 0; i-- {
		x = x<<8 + uint64(b[at+i])
	}
	return x
}

// turnLeft moves the bits of a number to the left. The bits that leave the number come back at its right end.
func turnLeft(x uint64, by, width int) uint64 {
	for range by {
		x = x<<1 + x>>(width-1)&1
		if width < 64 {
			x %= 1 << width
		}
	}
	return x
}

// crossProduct returns the exclusive or of the halves of a product.
func crossProduct(a, b uint64) uint64 {
	product := new(big.Int).Mul(new(big.Int).SetUint64(a), new(big.Int).SetUint64(b))
	high := new(big.Int).Rsh(product, 64).Uint64()
	return high ^ product.And(product, new(big.Int).SetUint64(1<<64-1)).Uint64()
}

func referenceMurmur3(value []byte) uint32 {
	const modulus = 1 << 32
	hash := uint64(42)
	take := func(word uint64) {
		word = turnLeft(word*0xcc9e2d51%modulus, 15, 32) * 0x1b873593 % modulus
		hash = (turnLeft(hash^word, 13, 32)*5 + 0xe6546b64) % modulus
	}
	whole := len(value) / 4 * 4
	for at := 0; at < whole; at += 4 {
		take(wordAt(value, at, 4))
	}
	for _, c := range value[whole:] {
		word := uint64(c)
		if c >= 128 {
			word += modulus - 256
		}
		take(word)
	}
	hash ^= uint64(len(value))
	hash = (hash ^ hash/65536) * 0x85ebca6b % modulus
	hash = (hash ^ hash/8192) * 0xc2b2ae35 % modulus
	return uint32(hash ^ hash/65536)
}
