package int96

import (
	"encoding/binary"
	"math/big"
)

// Reference returns the seconds or days of an INT96 of 12 bytes.
func Reference(value []byte, unit Unit) int64 {
	nanoseconds := big.NewInt(int64(binary.LittleEndian.Uint64(value)))
	day := big.NewInt(int64(int32(binary.LittleEndian.Uint32(value[8:]))))
	perDay := big.NewInt(86_400_000_000_000)
	since := new(big.Int).Sub(day, big.NewInt(2440588))
	since.Mul(since, perDay).Add(since, nanoseconds)
	per := big.NewInt(1_000_000_000)
	if unit == Days {
		per = perDay
	}
	return new(big.Int).Div(since, per).Int64() // Div rounds down where the divisor is positive
}
