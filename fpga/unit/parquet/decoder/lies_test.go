package decoder

import (
	"bytes"
	"math/rand"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/unit/parquet/format"
	"github.com/millrace/millrace/fpga/unit/parquet/internal/parquettest"
)

func TestFooterLies(t *testing.T) {
	c := parquettest.SmallColumn()
	r := rand.New(rand.NewSource(1))
	pages := c.Pages(r)
	body := []byte(parquettest.FileMagic)
	for _, p := range pages {
		body = append(append(body, parquettest.MarshalHeader(&p.Header)...), p.Payload...)
	}
	n := int64(len(body))
	cases := []struct {
		name                   string
		dictAt, dataAt, values int64
		rows                   int64
		want                   error
	}{
		{name: "good", dataAt: 4, values: 30, rows: 30},
		{name: "dictionary at 0 is none", dictAt: -1, dataAt: 4, values: 30, rows: 30},
		{name: "data before the magic's end", dataAt: 3, values: 30, rows: 30, want: format.ErrCorrupt},
		{name: "one byte into the footer", dataAt: 5, values: 30, rows: 30, want: format.ErrCorrupt},
		{name: "data after the pages", dataAt: n, values: 30, rows: 30, want: format.ErrCorrupt},
		{name: "data at a negative offset", dataAt: -1 << 62, values: 30, rows: 30, want: format.ErrCorrupt},
		{name: "data at the last offset", dataAt: 1<<63 - 1, values: 30, rows: 30, want: format.ErrCorrupt},
		{name: "dictionary far before the data", dictAt: 4, dataAt: n + 100, values: 30, rows: 30,
			want: format.ErrCorrupt},
		{name: "more values than rows", dataAt: 4, values: 31, rows: 30, want: format.ErrCorrupt},
		{name: "negative rows", dataAt: 4, values: -1, rows: -1, want: format.ErrCorrupt},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			file := c.Footer(bytes.Clone(body), tc.dictAt, tc.dataAt, n-4, tc.values, tc.rows)
			f, err := format.ReadFooter(bytes.NewReader(file), int64(len(file)))
			if tc.want != nil {
				require.ErrorIs(t, err, tc.want)
				return
			}
			require.NoError(t, err)
			rows, _, err := readKernel(t, bytes.NewReader(file), f, 0, 0)
			require.NoError(t, err)
			requireSameRows(t, c.Rows, rows, "rows")
		})
	}
}
