package unpack_test

import (
	"bytes"
	"errors"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace/millrace/fpga/unit/internal/bytecolumn"
	"github.com/millrace/millrace/fpga/unit/unpack"
)

// column returns values as a column.
func column(values ...[]byte) (offsets []uint32, data []byte) {
	offsets = []uint32{0}
	for _, value := range values {
		data = append(data, value...)
		offsets = append(offsets, uint32(len(data)))
	}
	return offsets, data
}

func TestValuesThatAreNotArrays(t *testing.T) {
	for name, c := range map[string]struct {
		value []byte
		err   error
	}{
		"no bytes":               {[]byte{}, nil},
		"a byte":                 {[]byte{1}, unpack.ErrLength},
		"three bytes":            {[]byte{1, 2, 3}, unpack.ErrLength},
		"a number":               {[]byte{1, 2, 3, 4}, nil},
		"a number and a byte":    {[]byte{1, 2, 3, 4, 5}, unpack.ErrLength},
		"a number and two bytes": {[]byte{1, 2, 3, 4, 5, 6}, unpack.ErrLength},
		"a file of NumPy":        {[]byte("\x93NUMPY\x01\x00"), unpack.ErrHeader},
		"the beginning of one":   {[]byte("\x93NUM"), nil},
		"another file":           {[]byte("\x93NUMPX\x01\x00"), nil},
		"a header further along": {[]byte("....\x93NUMPY.."), nil},
	} {
		offsets, data := column([]byte("good"), c.value)
		var lists unpack.Lists
		err := lists.Float32s(offsets, data, nil)
		_, ok := unpack.Reference(c.value)
		require.Equal(t, c.err == nil, ok, name)
		if c.err == nil {
			require.NoError(t, err, name)
			continue
		}
		require.ErrorIs(t, err, c.err, name)
		var of *unpack.ValueError
		require.True(t, errors.As(err, &of))
		require.Equal(t, 1, of.Index)
		require.NoError(t, lists.Float32s(offsets, data, []byte{1, 0}), "a null is not read")
		require.Equal(t, []int32{1, 0}, lists.Lengths)
	}
}

func TestArgumentsThatDoNotFit(t *testing.T) {
	var lists unpack.Lists
	require.ErrorIs(t, lists.Float32s([]uint32{0, 8}, []byte("four"), nil), bytecolumn.ErrShape)
	require.ErrorIs(t, lists.Float32s([]uint32{4, 0}, []byte("four"), nil), bytecolumn.ErrShape)
	require.ErrorIs(t, lists.Float32s([]uint32{0, 4}, []byte("four"), []byte{}), bytecolumn.ErrShape)
	require.NoError(t, lists.Float32s(nil, nil, nil), "no values")
	require.Empty(t, lists.Lengths)
}

// compare compares the kernel and the reference.
func compare(t require.TestingT, values [][]byte, valid []byte) {
	offsets, data := column(values...)
	lists := unpack.Lists{Lengths: []int32{9}, Values: []float32{9}}
	err := lists.Float32s(offsets, data, valid)
	var want []float32
	for i, value := range values {
		if valid[i] == 0 {
			value = nil
		}
		numbers, ok := unpack.Reference(value)
		if !ok {
			var of *unpack.ValueError
			require.ErrorAs(t, err, &of)
			require.Equal(t, i, of.Index)
			return
		}
		want = append(want, numbers...)
		if err == nil {
			require.Len(t, numbers, int(lists.Lengths[i]), "value %d", i)
		}
	}
	require.NoError(t, err)
	require.Len(t, lists.Lengths, len(values))
	require.Len(t, lists.Values, len(want))
	for i, x := range want {
		require.Equal(t, math.Float32bits(x), math.Float32bits(lists.Values[i]))
	}
}

func TestKernelEqualsReference(t *testing.T) {
	value := rapid.Custom(func(t *rapid.T) []byte {
		n := rapid.IntRange(0, 20).Draw(t, "numbers") * 4
		if rapid.IntRange(0, 30).Draw(t, "other") == 0 {
			n++
		}
		return rapid.SliceOfN(rapid.Byte(), n, n).Draw(t, "bytes")
	})
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOf(value).Draw(t, "values")
		compare(t, values, rapid.SliceOfN(rapid.ByteRange(0, 1), len(values), len(values)).Draw(t, "valid"))
	})
}

func FuzzFloat32s(f *testing.F) {
	f.Add([]byte("\x00\x00\x80\x3f,\x93NUMPY..,"), byte(1))
	f.Add([]byte("abcd,abc"), byte(0))
	f.Fuzz(func(t *testing.T, data []byte, nulls byte) {
		values := bytes.Split(data, []byte(","))
		valid := make([]byte, len(values))
		for i := range valid {
			valid[i] = 1 &^ (nulls >> (i % 8))
		}
		compare(t, values, valid)
	})
}

func BenchmarkFloat32s(b *testing.B) {
	values := make([][]byte, 128)
	for i := range values {
		values[i] = bytes.Repeat([]byte{byte(i), 2, 3, 60}, 64)
	}
	offsets, data := column(values...)
	var lists unpack.Lists
	for b.Loop() {
		if err := lists.Float32s(offsets, data, nil); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(lists.Values)), "ns/number")
}
