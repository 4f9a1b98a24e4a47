package decoder

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/unit/parquet/format"
	"github.com/millrace/millrace/fpga/unit/parquet/internal/parquettest"
)

// texts are rows of strings of several lengths, with nulls if the column may have some.
func texts(rng *rand.Rand, rows int, optional bool) (list []any) {
	for i := range rows {
		switch {
		case optional && rng.IntN(4) == 0:
			list = append(list, nil)
		case rng.IntN(40) == 0:
			list = append(list, []byte(fmt.Sprint("longer ", i)))
		default:
			list = append(list, fmt.Appendf(nil, "%08x", i))
		}
	}
	return list
}

// rest decodes the rows that are left.
func rest(t *testing.T, d *Decoder, ct *format.ColumnType) []any {
	b := Block{}
	b.Reset(ct.Kind())
	_, err := d.Next(&b, d.Rows())
	require.NoError(t, err)
	return rowsOf(&b, ct)
}

// TestSkipTo goes on from every row of a page of strings, by the place of its value and by reading those before it.
func TestSkipTo(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, optional := range []bool{false, true} {
		for _, v2 := range []bool{false, true} {
			c := &parquettest.Column{Physical: format.ByteArray, V2: v2, Rows: texts(rng, 300, optional)}
			if optional {
				c.Shape = parquettest.ShapeOptional
			}
			ct, h, page := flat(t, c)
			var whole, jumping Decoder
			require.NoError(t, whole.Reset(&ct, &h, page, nil))
			for row := range len(c.Rows) {
				at := whole.ValueAt()
				require.NoError(t, jumping.Reset(&ct, &h, page, nil))
				require.NoError(t, jumping.SkipTo(row, at))
				require.Equal(t, at, jumping.ValueAt())
				require.Equal(t, c.Rows[row:], rest(t, &jumping, &ct))
				require.NoError(t, whole.Skip(1))
			}
			require.Zero(t, whole.ValueAt(), "behind the last row")

			require.NoError(t, jumping.Reset(&ct, &h, page, nil))
			require.NoError(t, jumping.Skip(10))
			at := jumping.ValueAt()
			for _, wrong := range []int{0, at - 1, len(page) + 1} {
				require.ErrorContains(t, jumping.SkipTo(1, wrong), fmt.Sprintf("a value at byte %d of the page: want %d to %d",
					wrong, at, len(page)))
			}
			require.Error(t, jumping.SkipTo(-1, at))
			require.Error(t, jumping.SkipTo(291, at))
			require.NoError(t, jumping.SkipTo(5, len(page)), "a place that the caller got wrong")
			b := Block{}
			b.Reset(format.KindBytes)
			_, err := jumping.Next(&b, 200)
			require.Error(t, err)
		}
	}
}

// TestSkipToWithoutPlaces has pages in which any value is found at once, and lists.
func TestSkipToWithoutPlaces(t *testing.T) {
	for _, c := range []*parquettest.Column{
		{Physical: format.Int64, Rows: []any{int64(1), int64(2), int64(3)}},
		{Physical: format.ByteArray, Encoding: format.DeltaLengthByteArray,
			Rows: []any{[]byte("a"), []byte("bc"), []byte("d")}},
		{Physical: format.ByteArray, Shape: parquettest.ShapeList,
			Rows: []any{[]any{[]byte("a")}, []any{}, []any{[]byte("b")}}},
	} {
		ct, h, page := flat(t, c)
		var d Decoder
		require.NoError(t, d.Reset(&ct, &h, page, nil))
		require.Zero(t, d.ValueAt())
		require.NoError(t, d.SkipTo(2, len(page)+1))
		require.Equal(t, c.Rows[2:], rest(t, &d, &ct))
	}
	var d Decoder
	require.Error(t, d.Reset(&format.ColumnType{}, &format.PageHeader{Type: format.IndexPage}, nil, nil))
	require.Zero(t, d.ValueAt())
	require.Error(t, d.SkipTo(0, 0), "no page")
}
