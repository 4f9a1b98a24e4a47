package decoder

import (
	"github.com/millrace/millrace/fpga/unit/encoding"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
)

// appendNullElements puts n nulls at the end of b.
func (b *Block) appendNullElements(n int) {
	switch b.Kind {
	case format.KindInt64:
		b.I64 = appendZeros(b.I64, n)
	case format.KindFloat32:
		b.F32 = appendZeros(b.F32, n)
	case format.KindFloat64:
		b.F64 = appendZeros(b.F64, n)
	case format.KindBytes:
		if len(b.Offsets) == 0 {
			b.Offsets = append(b.Offsets, 0)
		}
		at := len(b.Offsets)
		b.Offsets = growSlice(b.Offsets, n)
		fillSlice(b.Offsets[at:], uint32(len(b.Data)))
	}
}

// appendZeros lengthens s by n zeros.
func appendZeros[T any](s []T, n int) []T {
	at := len(s)
	s = growSlice(s, n)
	clear(s[at:])
	return s
}

// spreadValues moves the last there values of b apart so that they stand where valid has ones, and puts nulls between
// them. It makes b len(valid) - there elements longer.
func (b *Block) spreadValues(valid []byte, there int) {
	b.copyLent()
	if there == 0 {
		b.appendNullElements(len(valid))
		return
	}
	more := len(valid) - there
	switch b.Kind {
	case format.KindInt64:
		b.I64 = growSlice(b.I64, more)
		encoding.Spread(b.I64[len(b.I64)-len(valid):], valid, there)
	case format.KindFloat32:
		b.F32 = growSlice(b.F32, more)
		encoding.Spread(b.F32[len(b.F32)-len(valid):], valid, there)
	case format.KindFloat64:
		b.F64 = growSlice(b.F64, more)
		encoding.Spread(b.F64[len(b.F64)-len(valid):], valid, there)
	case format.KindBytes:
		b.Offsets = growSlice(b.Offsets, more)
		spreadOffsets(b.Offsets[len(b.Offsets)-len(valid)-1:], valid, there)
	}
}

// spreadOffsets does for the ends of byte arrays what encoding.Spread does for values: a null ends where the value
// before it ends. off has one more entry than valid; the first is where the first value begins.
func spreadOffsets(off []uint32, valid []byte, there int) {
	for i := len(valid) - 1; i >= 0; i-- {
		off[i+1] = off[there]
		there -= int(valid[i])
	}
}
