package chunk

import (
	"math"

	"github.com/millrace/millrace/fpga/block"
	"github.com/millrace/millrace/fpga/engine/failure"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/program/parquetcolumn"
	"github.com/millrace/millrace/fpga/unit/convert"
	"github.com/millrace/millrace/fpga/unit/decimal"
	"github.com/millrace/millrace/fpga/unit/int96"
	"github.com/millrace/millrace/fpga/unit/parquet/decoder"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
	"github.com/millrace/millrace/fpga/unit/rescale"
)

// endOfWholeReals is the bound below which float64 holds every whole number. A larger id that was kept as a real number
// may have been rounded.
const endOfWholeReals = 1 << 53

// chunkReading converts the values of a chunk to those of its column.
type chunkReading struct {
	to         program.Kind
	reading    program.Reading
	physical   format.Type
	annotation program.Annotation
	unsigned64 bool // the chunk holds unsigned integers of 64 bits
}

// needed reports whether the decoder's values differ in form from those of the column.
func (r *chunkReading) needed() bool {
	kind := parquetcolumn.KindOf(r.physical.Kind())
	_, isDecimal := r.annotation.Decimal()
	switch {
	case r.reading == program.ReadStored:
		return kind != r.to
	case r.annotation == program.AnnotatedNull:
		return true
	case r.to == program.Bytes:
		return false
	}
	return r.reading == program.ReadSeconds || isDecimal || kind != r.to
}

// mayLend reports whether the decoder may return values in place, as bytes of the page.
func (r *chunkReading) mayLend() bool { return r.reading == program.ReadStored }

// bring converts a block that the decoder has made to the column's kind. FirstRow is the row of the mini-batch that the
// block begins with; errors name it.
func (r *chunkReading) bring(b *decoder.Block, firstRow uint64) error {
	if r.reading == program.ReadStored {
		b.WidenToFloat64()
		return nil
	}
	valid := b.Valid
	if b.Nulls == 0 {
		valid = nil
	}
	n, from := b.Values(), b.Kind
	b.Kind = blockKind(r.to)
	switch r.to {
	case program.Int64:
		b.I64 = block.Resize(&b.I64, n)
	case program.Float32:
		b.F32 = block.Resize(&b.F32, n)
	case program.Float64:
		b.F64 = block.Resize(&b.F64, n)
	}
	if n == 0 {
		return nil
	}
	defer func() {
		for i := range valid { // Operators rely on zeros under nulls.
			if valid[i] == 0 {
				r.clearValue(b, i)
			}
		}
	}()
	if r.annotation == program.AnnotatedNull {
		r.bringNulls(b, n)
		return nil
	}
	if r.reading == program.ReadSeconds {
		if multiplier, divisor, ok := r.annotation.Unit(); ok {
			return rescale.Rescale(b.I64, b.I64, valid, multiplier, divisor)
		}
		return int96.ToTime(b.I64, b.Offsets, b.Data, valid, int96.Seconds)
	}
	if scale, ok := r.annotation.Decimal(); ok {
		return r.bringDecimals(b, from, valid, scale)
	}
	switch {
	case r.to == program.Int64 && from == format.KindFloat64:
		return wholeNumbers(b, b.F64, valid, firstRow)
	case r.to == program.Int64 && from == format.KindFloat32:
		return wholeNumbers(b, b.F32, valid, firstRow)
	case r.to == program.Float64 && from == format.KindInt64:
		convert.Int64ToFloat64(b.F64, b.I64)
	case r.to == program.Float32 && from == format.KindInt64:
		convert.Int64ToFloat32(b.F32, b.I64)
	case r.to == program.Float64 && from == format.KindFloat32:
		convert.Float32ToFloat64(b.F64, b.F32)
	case r.to == program.Float32 && from == format.KindFloat64:
		convert.Float64ToFloat32(b.F32, b.F64)
	}
	if r.unsigned64 && from == format.KindInt64 && r.to != program.Int64 {
		for i, x := range b.I64 {
			if x < 0 { // The decoder keeps the bits of an unsigned value.
				if r.to == program.Float64 {
					b.F64[i] = float64(uint64(x))
				} else {
					b.F32[i] = float32(uint64(x))
				}
			}
		}
	}
	return nil
}

// bringNulls sets all n values of a block to null.
func (r *chunkReading) bringNulls(b *decoder.Block, n int) {
	switch r.to {
	case program.Int64:
		clear(b.I64)
	case program.Float32:
		clear(b.F32)
	case program.Float64:
		clear(b.F64)
	default:
		b.Offsets, b.Data = block.Resize(&b.Offsets, n+1), b.Data[:0]
		clear(b.Offsets)
	}
	b.Valid = block.Resize(&b.Valid, n)
	clear(b.Valid)
	b.Nulls = n
}

// clearValue sets a value to 0.
func (r *chunkReading) clearValue(b *decoder.Block, i int) {
	switch r.to {
	case program.Int64:
		b.I64[i] = 0
	case program.Float32:
		b.F32[i] = 0
	case program.Float64:
		b.F64[i] = 0
	}
}

// bringDecimals converts decimals to real numbers, or to their unscaled integers.
func (r *chunkReading) bringDecimals(b *decoder.Block, from format.Kind, valid []byte, scale uint8) error {
	switch whole := from == format.KindInt64; {
	case r.to == program.Int64 && whole:
		return nil
	case r.to == program.Int64:
		return decimal.BytesToInt64(b.I64, b.Offsets, b.Data, valid)
	case r.to == program.Float32 && whole:
		return decimal.Int64ToFloat32(b.F32, b.I64, scale)
	case r.to == program.Float32:
		return decimal.BytesToFloat32(b.F32, b.Offsets, b.Data, valid, scale)
	case whole:
		return decimal.Int64ToFloat64(b.F64, b.I64, scale)
	}
	return decimal.BytesToFloat64(b.F64, b.Offsets, b.Data, valid, scale)
}

// wholeNumbers converts real numbers to integers. A number that is not whole is an error.
func wholeNumbers[T float32 | float64](b *decoder.Block, values []T, valid []byte, firstRow uint64) error {
	for i, x := range values {
		y := float64(x)
		if valid != nil && valid[i] == 0 {
			b.I64[i] = 0
			continue
		}
		if y != math.Trunc(y) || math.Abs(y) >= endOfWholeReals || y != y {
			return failure.Data("row %d of the mini-batch has the real number %v, which is not an id: ids kept as real "+
				"numbers are whole and below 2^53; write the column as int64, or make ids of it with bucketize",
				firstRow+uint64(rowOfElement(b, i)), y)
		}
		b.I64[i] = int64(y)
	}
	return nil
}

// rowOfElement returns the row of a block that holds an element.
func rowOfElement(b *decoder.Block, element int) int {
	if len(b.Lengths) == 0 {
		return element
	}
	row := 0
	for element >= int(b.Lengths[row]) {
		element -= int(b.Lengths[row])
		row++
	}
	return row
}

// blockKind returns the decoder's kind for a program's kind.
func blockKind(k program.Kind) format.Kind { return physicalOf(k).Kind() }
