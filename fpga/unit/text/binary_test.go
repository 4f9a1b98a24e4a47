package text_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace/millrace/fpga/unit/text"
)

func TestDecodeBinary(t *testing.T) {
	row := make([]byte, 0, text.BinaryRow)
	for f := range 40 {
		row = append(row, byte(f), 0, 0, 0x80) // a negative number, or an id above 2^31
	}
	c := text.NewColumns(3)
	res, err := text.DecodeBinary(c, 1, 2, row, text.Position{}, true)
	require.NoError(t, err)
	require.Equal(t, text.Result{Rows: 1, Consumed: 160}, res)
	got := collect(c, 2)
	require.Equal(t, text.Row{}, got[0])
	require.Equal(t, text.Cell{Value: -1 << 31, Valid: true}, got[1][0])
	require.Equal(t, text.Cell{Value: -1<<31 + 13, Valid: true}, got[1][13])
	require.Equal(t, text.Cell{Value: 1<<31 + 14, Valid: true}, got[1][14])
	require.Equal(t, text.Cell{Value: 1<<31 + 39, Valid: true}, got[1][39])
}

func TestDecodeBinaryEnds(t *testing.T) {
	c := text.NewColumns(10)
	at := text.Position{Offset: 1600, Line: 10}
	for _, x := range []struct {
		name     string
		bytes, n int
		final    bool
		want     text.Result
		partial  bool
	}{
		{"nothing", 0, 4, true, text.Result{}, false},
		{"nothing yet", 0, 4, false, text.Result{More: true}, false},
		{"a byte less", 319, 4, false, text.Result{Rows: 1, Consumed: 160, More: true}, false},
		{"exact", 320, 2, false, text.Result{Rows: 2, Consumed: 320}, false},
		{"a byte more than asked", 321, 2, true, text.Result{Rows: 2, Consumed: 320}, false},
		{"all and a byte", 321, 3, true, text.Result{Rows: 2, Consumed: 320}, true},
		{"the last row is short", 319, 3, true, text.Result{Rows: 1, Consumed: 160}, true},
	} {
		t.Run(x.name, func(t *testing.T) {
			res, err := text.DecodeBinary(c, 0, x.n, make([]byte, x.bytes), at, x.final)
			require.Equal(t, x.want, res)
			if !x.partial {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, text.ErrPartialRow)
			require.Equal(t, &text.RowError{
				Line: 11 + int64(res.Rows), Offset: 1600 + int64(res.Consumed), Field: -1, Err: text.ErrPartialRow,
			}, err)
		})
	}
}

func TestDecodeBinaryEqualsReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 150).Draw(t, "rows")
		seed := rapid.Uint64().Draw(t, "seed")
		data := make([]byte, n*text.BinaryRow+rapid.IntRange(0, 1).Draw(t, "short")*77)
		for i := range data {
			seed = seed*6364136223846793005 + 1442695040888963407
			data[i] = byte(seed >> 56)
		}
		want, wantErr := text.ReferenceBinary(data)
		c := text.NewColumns(n + 1)
		res, err := text.DecodeBinary(c, 0, n+1, data, text.Position{}, true)
		require.ErrorIs(t, err, wantErr)
		require.Equal(t, len(want), res.Rows)
		for r, row := range collect(c, res.Rows) {
			require.Equal(t, want[r], row)
		}
	})
}
