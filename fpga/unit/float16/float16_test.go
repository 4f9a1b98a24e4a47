package float16_test

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/unit/float16"
	"github.com/millrace/millrace/fpga/unit/internal/bytecolumn"
)

// TestEveryHalf compares all values of two bytes with the reference.
func TestEveryHalf(t *testing.T) {
	var data []byte
	offsets := []uint32{0}
	for half := range 1 << 16 {
		data = binary.LittleEndian.AppendUint16(data, uint16(half))
		offsets = append(offsets, uint32(len(data)))
	}
	got := make([]float32, 1<<16)
	require.NoError(t, float16.ToFloat32(got, offsets, data, nil))
	for half := range 1 << 16 {
		want := math.Float32bits(float16.Reference(uint16(half)))
		require.Equal(t, want, math.Float32bits(got[half]), "half %04x", half)
	}
}

// TestKnownHalves pins values of IEEE 754's own tables.
func TestKnownHalves(t *testing.T) {
	for half, want := range map[uint16]uint32{
		0x0000: 0x00000000, 0x8000: 0x80000000, 0x3c00: 0x3f800000, 0xc000: 0xc0000000, 0x3555: 0x3eaaa000,
		0x0001: 0x33800000, 0x03ff: 0x387fc000, 0x0400: 0x38800000, 0x7bff: 0x477fe000, 0x7c00: 0x7f800000,
		0xfc00: 0xff800000, 0x7e00: 0x7fc00000, 0xfe01: 0xffc02000, 0x7c01: 0x7f802000,
	} {
		require.Equal(t, want, math.Float32bits(float16.Reference(half)), "half %04x", half)
	}
}

func TestColumns(t *testing.T) {
	dst := []float32{9, 9, 9}
	data := []byte{0x00, 0x3c, 0x00, 0xc0}
	require.NoError(t, float16.ToFloat32(dst, []uint32{0, 2, 2, 4}, data, []byte{1, 0, 1}))
	require.Equal(t, []float32{1, 0, -2}, dst, "a null is 0")
	require.ErrorIs(t, float16.ToFloat32(dst, []uint32{0, 2, 2, 4}, data, nil), float16.ErrLength)
	require.ErrorIs(t, float16.ToFloat32(dst[:1], []uint32{0, 3}, data, nil), float16.ErrLength)
	require.ErrorIs(t, float16.ToFloat32(dst, []uint32{0, 2}, data, nil), bytecolumn.ErrShape)
}
