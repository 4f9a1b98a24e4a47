package program

import "fmt"

// HashFunction names a function that hashes bytes to an id.
type HashFunction uint8

// The hash functions. The numbers are part of the wire form.
const (
	HashXXH3     HashFunction = 0 // XXH3 of 64 bits
	HashMurmur3  HashFunction = 1 // Murmur3 of 32 bits, sign-extended, as Spark's hash has it
	HashFarmHash HashFunction = 2 // FarmHash's Fingerprint64
)

// HashBytes hashes the bytes of a value to an id. Takes Bytes and yields Int64; an empty value has a hash.
type HashBytes struct{ Function HashFunction }

// Unit implements [Op].
func (HashBytes) Unit() Unit { return UnitHashBytes }

// Out implements [Op].
func (HashBytes) Out(in Kind) Kind { return kindIf(in, Bytes, Int64) }

// String returns the function's name as pipelines write it.
func (f HashFunction) String() string {
	switch f {
	case HashXXH3:
		return "xxh3"
	case HashMurmur3:
		return "murmur3_32"
	case HashFarmHash:
		return "farmhash64"
	}
	return fmt.Sprintf("function(%d)", uint8(f))
}
