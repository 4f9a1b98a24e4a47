package bytecolumn

import (
	"bytes"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCheck(t *testing.T) {
	for name, c := range map[string]struct {
		n       int
		offsets []uint32
		size    int
		valid   []byte
		fits    bool
	}{
		"nothing":                {0, []uint32{0}, 0, nil, true},
		"two values":             {2, []uint32{0, 3, 5}, 5, nil, true},
		"an empty value":         {2, []uint32{0, 0, 5}, 5, []byte{0, 1}, true},
		"more bytes than used":   {1, []uint32{2, 3}, 9, []byte{1, 1}, true},
		"no offsets":             {0, nil, 0, nil, false},
		"too few offsets":        {2, []uint32{0, 3}, 5, nil, false},
		"too many offsets":       {1, []uint32{0, 3, 5}, 5, nil, false},
		"validity that is short": {2, []uint32{0, 3, 5}, 5, []byte{1}, false},
		"offsets that decrease":  {2, []uint32{0, 3, 2}, 5, nil, false},
		"offsets past the end":   {2, []uint32{0, 3, 6}, 5, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			err := Check(c.n, c.offsets, c.size, c.valid)
			if c.fits {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, ErrShape)
		})
	}
}

func TestIntegers(t *testing.T) {
	length := func(text []byte) (int64, error) {
		if string(text) == "bad" {
			return 0, errBad
		}
		return int64(len(text)), nil
	}
	dst, valid := []int64{9, 9, 9}, []byte{1, 1, 0}
	require.NoError(t, Integers("unit", dst, []uint32{0, 2, 2, 5}, []byte("okbad"), valid, length))
	require.Equal(t, []int64{2, 0, 0}, dst)
	require.Equal(t, []byte{1, 0, 0}, valid)
	for _, c := range []struct {
		offsets []uint32
		valid   []byte
		is      error
		want    string
	}{
		{[]uint32{0, 2, 5}, []byte{1, 1}, errBad, `unit: "bad": bad`},
		{[]uint32{0, 2, 2}, nil, ErrNull, `unit: "": empty text in a column without validity`},
		{[]uint32{0, 2}, nil, ErrShape, "unit: 2 offsets for 2 values: offsets do not describe the bytes"},
	} {
		err := Integers("unit", make([]int64, 2), c.offsets, []byte("okbad"), c.valid, length)
		require.ErrorIs(t, err, c.is)
		require.EqualError(t, err, c.want)
	}
	long := bytes.Repeat([]byte("x"), maxShown+1)
	err := Integers(
		"unit",
		dst[:1],
		[]uint32{0, maxShown + 1},
		long,
		nil,
		func([]byte) (int64, error) { return 0, errBad },
	)
	var at *TextError
	require.ErrorAs(t, err, &at)
	require.Len(t, at.Text, maxShown)
	require.Zero(t, at.ValueIndex())
}

var errBad = errors.New("bad")
