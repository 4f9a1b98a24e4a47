package unit_test

import (
	"encoding/hex"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/unit/unpack"
)

// packedArrays unpacks the bytes of an array.
func packedArrays(t *testing.T, c goldenCase) {
	var v struct {
		Bytes  string
		Output []string
	}
	c.into(t, &v)
	value, err := hex.DecodeString(v.Bytes)
	require.NoError(t, err)
	bits := func(numbers []float32) []string {
		all := []string{}
		for _, x := range numbers {
			all = append(all, fmt.Sprintf("0x%08x", math.Float32bits(x)))
		}
		return all
	}
	var lists unpack.Lists
	require.NoError(t, lists.Float32s([]uint32{0, uint32(len(value))}, value, nil))
	require.Equal(t, []int32{int32(len(v.Output))}, lists.Lengths)
	require.Equal(t, v.Output, bits(lists.Values))
	numbers, ok := unpack.Reference(value)
	require.True(t, ok)
	require.Equal(t, v.Output, bits(numbers))
}
