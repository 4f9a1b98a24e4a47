package reference

import (
	"encoding/binary"
	"fmt"
	"math/big"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/decimal"
	"github.com/millrace/millrace/fpga/unit/float16"
	"github.com/millrace/millrace/fpga/unit/int96"
)

// timeOfInt96 returns the time of an INT96.
func timeOfInt96(value []byte, unit program.TimeUnit) (any, error) {
	if len(value) != int96.Size {
		return nil, fmt.Errorf("%w: an INT96 of %d bytes", ErrData, len(value))
	}
	return int96.Reference(value, int96.Unit(unit)), nil
}

// decimalValue returns the number that a decimal stands for.
func decimalValue(o program.Decimal, v any) (any, error) {
	var n *big.Int
	switch x := v.(type) {
	case int64:
		n = big.NewInt(x)
	case []byte:
		if len(x) == 0 || len(x) > decimal.MaxBytes {
			return nil, fmt.Errorf("%w: a decimal of %d bytes", ErrData, len(x))
		}
		n = decimal.Unscaled(x)
	}
	switch o.To {
	case program.Float32:
		return decimal.ReferenceFloat32(n, o.Scale), nil
	case program.Float64:
		return decimal.ReferenceFloat64(n, o.Scale), nil
	}
	if !n.IsInt64() {
		return nil, fmt.Errorf("%w: the decimal %v does not fit int64", ErrData, n)
	}
	return n.Int64(), nil
}

// widenHalf returns the float32 of a FLOAT16.
func widenHalf(value []byte) (any, error) {
	if len(value) != float16.Size {
		return nil, fmt.Errorf("%w: a FLOAT16 of %d bytes", ErrData, len(value))
	}
	return float16.Reference(binary.LittleEndian.Uint16(value)), nil
}

// fixLength returns a list as values of a fixed length. A null, or a list that holds a null, has no values.
func fixLength(row any, o program.FixedLength) (any, error) {
	var values []float32
	if list, ok := row.([]any); ok && !holdsNull(list) {
		for _, v := range list {
			values = append(values, v.(float32))
		}
	}
	got := len(values)
	for o.Pads && len(values) < int(o.Length) {
		values = append(values, o.Pad)
	}
	if len(values) != int(o.Length) {
		return nil, fmt.Errorf("%w: a list of length %d, want %d", ErrData, got, o.Length)
	}
	return values, nil
}
