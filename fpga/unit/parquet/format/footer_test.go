package format_test

import (
	"bytes"
	"encoding/binary"
	"math/rand"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/unit/parquet/format"
	"github.com/millrace/millrace/fpga/unit/parquet/internal/parquettest"
)

func TestFooterEnds(t *testing.T) {
	good := parquettest.SmallColumn().File(rand.New(rand.NewSource(1)))
	n := int(binary.LittleEndian.Uint32(good[len(good)-8:]))
	with := func(change func(b []byte)) []byte {
		b := bytes.Clone(good)
		change(b)
		return b
	}
	setLength := func(n uint32) func(b []byte) {
		return func(b []byte) { binary.LittleEndian.PutUint32(b[len(b)-8:], n) }
	}
	cases := []struct {
		name string
		file []byte
		want error
		says string
	}{
		{"empty", nil, format.ErrCorrupt, "too short"},
		{"eleven bytes", good[:11], format.ErrCorrupt, "too short"},
		{"no magic at the end", with(func(b []byte) { b[len(b)-1] = '2' }), format.ErrCorrupt, "does not end"},
		{"no magic at the beginning", with(func(b []byte) { b[0] = 'Q' }), format.ErrCorrupt, "does not begin"},
		{"encrypted", with(func(b []byte) { b[len(b)-1] = 'E' }), format.ErrUnsupported, "encrypted footer"},
		{"length of the file less eleven", with(setLength(uint32(len(good) - 11))), format.ErrCorrupt,
			"bytes of footer"},
		{"length of 4 GiB", with(setLength(1<<32 - 1)), format.ErrCorrupt, "bytes of footer"},
		{"length 0", with(setLength(0)), format.ErrCorrupt, "inside its metadata"},
		{"one byte short", with(setLength(uint32(n - 1))), format.ErrCorrupt, ""},
		{"one byte long", with(setLength(uint32(n + 1))), format.ErrCorrupt, ""},
		{"good", good, nil, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			f, err := format.ReadFooter(bytes.NewReader(c.file), int64(len(c.file)))
			if c.want == nil {
				require.NoError(t, err)
				require.Equal(t, int64(len(good)-8-n), f.FooterOffset)
				require.Equal(t, int64(30), f.Rows)
				return
			}
			require.ErrorIs(t, err, c.want)
			require.ErrorContains(t, err, c.says)
		})
	}
}

// TestFooterLargerThanTheFirstRead has names that make the footer longer than one read.
func TestFooterLargerThanTheFirstRead(t *testing.T) {
	c := parquettest.SmallColumn()
	body := []byte(parquettest.FileMagic)
	file := c.Footer(body, 0, 4, 0, 0, 0)
	long := bytes.Repeat([]byte("n"), 256<<10)
	file = bytes.Replace(file, append(binary.AppendUvarint(nil, 1), 'c'),
		append(binary.AppendUvarint(nil, uint64(len(long))), long...), 1)
	binary.LittleEndian.PutUint32(file[len(file)-8:], uint32(len(file)-12))
	f, err := format.ReadFooter(bytes.NewReader(file), int64(len(file)))
	require.NoError(t, err)
	require.Equal(t, string(long), f.Leaves[0].Path)
	require.Zero(t, f.Rows)
}
