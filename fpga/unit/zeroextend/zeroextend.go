package zeroextend

// Int64 keeps the low 32 bits of every value, in place.
func Int64(v []int64) { extend.Pick()(v) }

// Narrow writes src to dst as little-endian int32, four bytes a value, as many as fit an int32 before the first that
// does not, and returns how many: len(src) if all do. dst must have room for all; what lies behind those written is
// undefined.
func Narrow(dst []byte, src []int64) (fit int) {
	return narrow.Pick()(dst[:4*len(src)], src)
}
