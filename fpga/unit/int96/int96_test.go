package int96_test

import (
	"encoding/binary"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace/millrace/fpga/unit/int96"
	"github.com/millrace/millrace/fpga/unit/internal/bytecolumn"
)

// encode returns the twelve bytes of an INT96.
func encode(nanoseconds int64, day int32) []byte {
	return binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint64(nil, uint64(nanoseconds)), uint32(day))
}

func convert(t require.TestingT, value []byte, unit int96.Unit) int64 {
	dst := make([]int64, 1)
	require.NoError(t, int96.ToTime(dst, []uint32{0, uint32(len(value))}, value, nil, unit))
	return dst[0]
}

// TestCalendar compares with Go's calendar: the Julian day of 2000-01-01 is 2451545.
func TestCalendar(t *testing.T) {
	at := time.Date(2000, 1, 1, 12, 34, 56, 789, time.UTC)
	value := encode(int64(12*time.Hour+34*time.Minute+56*time.Second+789), 2451545)
	require.Equal(t, at.Unix(), convert(t, value, int96.Seconds))
	require.Equal(t, int64(10957), convert(t, value, int96.Days))
}

func TestEdges(t *testing.T) {
	const day = 86_400_000_000_000
	for _, c := range []struct {
		name          string
		nanoseconds   int64
		julian        int32
		seconds, days int64
	}{
		{"epoch", 0, 2440588, 0, 0},
		{"last nanosecond before it", day - 1, 2440587, -1, -1},
		{"first nanosecond of the day before", 0, 2440587, -86400, -1},
		{"negative nanoseconds", -1, 2440588, -1, -1},
		{"a whole day of nanoseconds", day, 2440588, 86400, 1},
		{"most", math.MaxInt64, math.MaxInt32, (math.MaxInt32-2440588)*86400 + 9223372036, math.MaxInt32 - 2440588 + 106751},
		{"least", math.MinInt64, math.MinInt32, (math.MinInt32-2440588)*86400 - 9223372037,
			math.MinInt32 - 2440588 - 106752},
	} {
		t.Run(c.name, func(t *testing.T) {
			value := encode(c.nanoseconds, c.julian)
			require.Equal(t, int96.Reference(value, int96.Seconds), convert(t, value, int96.Seconds))
			require.Equal(t, int96.Reference(value, int96.Days), convert(t, value, int96.Days))
			require.Equal(t, c.seconds, convert(t, value, int96.Seconds))
			require.Equal(t, c.days, convert(t, value, int96.Days))
		})
	}
}

func TestKernelEqualsReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := encode(rapid.Int64().Draw(t, "nanoseconds"), rapid.Int32().Draw(t, "day"))
		for _, unit := range []int96.Unit{int96.Seconds, int96.Days} {
			require.Equal(t, int96.Reference(value, unit), convert(t, value, unit))
		}
	})
}

func TestColumns(t *testing.T) {
	data := append(encode(0, 2440589), encode(0, 2440590)...)
	dst := []int64{9, 9, 9}
	require.NoError(t, int96.ToTime(dst, []uint32{0, 12, 12, 24}, data, []byte{1, 0, 1}, int96.Days))
	require.Equal(t, []int64{1, 0, 2}, dst, "a null is 0")
	require.ErrorIs(t, int96.ToTime(dst, []uint32{0, 12, 12, 24}, data, nil, int96.Days), int96.ErrLength)
	require.ErrorIs(t, int96.ToTime(dst[:1], []uint32{0, 13}, data, nil, int96.Days), int96.ErrLength)
	require.ErrorIs(t, int96.ToTime(dst, []uint32{0, 12}, data, nil, int96.Days), bytecolumn.ErrShape)
	require.ErrorIs(t, int96.ToTime(nil, []uint32{0}, nil, nil, 2), int96.ErrUnit)
}
