package text

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/unit/internal/proving"
)

// decimalLine is a line whose fields have as many characters as rng says: what the kernels take, with empty fields and
// signs.
func decimalLine(rng *rand.Rand, labelAbsent bool, end string) string {
	var cells []string
	if !labelAbsent {
		cells = append(cells, fmt.Sprint(rng.IntN(2)))
	}
	for range Dense {
		digits := rng.IntN(9)
		cell := strings.Repeat("9", digits)[:digits]
		if digits > 1 && rng.IntN(3) == 0 {
			cell = "-" + cell[1:]
		}
		cells = append(cells, cell)
	}
	for range Sparse {
		cells = append(cells, fmt.Sprintf("%08x", rng.Uint32())[:[]int{0, 8, 8, 8, 1 + rng.IntN(8)}[rng.IntN(5)]])
	}
	return strings.Join(cells, "\t") + end
}

// fenced are columns for rows rows that end at a fence.
func fenced(t *testing.T, rows int) (c *Columns) {
	values := proving.NewFence(t, 8*rows)
	valid := proving.NewFence(t, rows)
	c = NewColumns(rows)
	// One of each kind at the fence at a time: each test run has other columns there.
	c.Dense[rows%Dense], c.Sparse[rows%Sparse] = proving.End[int64](values,
		rows), proving.End[int64](proving.NewFence(t, 8*rows), rows)
	c.DenseValid[rows%Dense], c.SparseValid[rows%Sparse] = proving.End[byte](valid,
		rows), proving.End[byte](proving.NewFence(t, rows), rows)
	return c
}

func row(c *Columns, r int) (row Row) {
	for f := range fields {
		values, valid := c.column(f)
		row[f] = Cell{values[r], valid[r] == 1}
	}
	return row
}

// Partitions of every number of lines up to four blocks, in memory that ends at a fence, into columns that also do.
func TestEveryPathOfText(t *testing.T) {
	for _, labelAbsent := range []bool{false, true} {
		for _, end := range []string{"\n", "\r\n"} {
			rng := rand.New(rand.NewPCG(3, uint64(len(end))))
			const most = 257
			var data []byte
			starts := []int{0}
			for range most {
				data = append(data, decimalLine(rng, labelAbsent, end)...)
				starts = append(starts, len(data))
			}
			want, _, _, err := Reference(data, Options{LabelAbsent: labelAbsent})
			require.NoError(t, err)
			proving.EachLevel(t, func(t *testing.T) {
				fence := proving.NewFence(t, len(data)+64)
				d, err := NewDecoder(Options{LabelAbsent: labelAbsent})
				require.NoError(t, err)
				try := func(first, n int, window []byte, c *Columns) {
					copy(window, data[starts[first]:])
					d.Reset(Position{Offset: 1, Line: 1})
					res, err := d.Decode(c, 0, n, window, true)
					require.NoError(t, err)
					require.Equal(t, Result{Rows: n, Consumed: len(window)}, res)
					for r := range n {
						if want[first+r] != row(c, r) {
							require.Equal(t, want[first+r], row(c, r), "row %d of %d", r, n)
						}
					}
				}
				for n := 1; n < most; n += 1 + n/24 {
					first := most - n
					try(first, n, proving.End[byte](fence, starts[most]-starts[first]), fenced(t, n))
				}
				c := NewColumns(most)
				for skip := range 64 {
					try(0, 70, proving.Start[byte](fence, skip, starts[70]), c)
				}
			})
		}
	}
}

// An odd field in one line of many, at every place of a block, has the same effect as in the reference.
func TestEveryPathOfOddLines(t *testing.T) {
	odd := []string{
		"\n", "\r\n", "1\t2\n", strings.Repeat("\t", 40) + "\n", strings.Repeat("\t", 39) + "\n",
		"x" + strings.Repeat("\t", 39) + "\n",
		"1\t1234567890" + strings.Repeat("\t", 38) + "\n", "1\t-2147483648" + strings.Repeat("\t", 38) + "\n",
		"1\t-" + strings.Repeat("\t", 38) + "\n", "1\t" + strings.Repeat("\t", 37) + "-1\t\n",
		"1" + strings.Repeat("\t", 39) + "123456789\n",
		"1" + strings.Repeat("\t", 39) + "\r\n", "1\t" + strings.Repeat("9", 30_000) + strings.Repeat("\t", 38) + "\n",
		"1" + strings.Repeat("\t", 39) + "\r\r\n", "1\t\xb1" + strings.Repeat("\t", 38) + "\n",
	}
	rng := rand.New(rand.NewPCG(8, 8))
	var lines []string
	for range 150 {
		lines = append(lines, decimalLine(rng, false, []string{"\n", "\r\n"}[rng.IntN(40)/39]))
	}
	for i, l := range odd {
		at := []int{i, 63, 64, 65, 149 - i}
		some := append([]string{}, lines...)
		for _, k := range at {
			some[k] = l
		}
		data := []byte(strings.Join(some, ""))
		for _, policy := range []Policy{Fail, Drop, Null} {
			want, _, counts, bad := Reference(data, Options{Policy: policy})
			proving.EachLevel(t, func(t *testing.T) {
				d, err := NewDecoder(Options{Policy: policy})
				require.NoError(t, err)
				c := NewColumns(len(lines))
				res, err := d.Decode(c, 0, len(lines), data, true)
				require.ErrorIs(t, err, errors.Unwrap(bad), "%.60q", l)
				require.Equal(t, len(want), res.Rows, "%.60q", l)
				require.Equal(t, counts, res.Counts)
				for r := range want {
					require.Equal(t, want[r], row(c, r), "row %d, %.60q", r, l)
				}
				require.Equal(t, bad == nil, res.Consumed == len(data))
			})
		}
	}
}

// Packed rows of every number up to four blocks, in memory that ends at a fence, into columns that also do.
func TestEveryPathOfBinary(t *testing.T) {
	proving.EachLevel(t, func(t *testing.T) {
		const most = 257
		fence := proving.NewFence(t, most*BinaryRow+64)
		rng := rand.New(rand.NewPCG(5, 5))
		try := func(window []byte, c *Columns) {
			for i := range window {
				window[i] = byte(rng.Uint32())
			}
			want, err := ReferenceBinary(window)
			require.NoError(t, err)
			res, err := DecodeBinary(c, 0, len(want), window, Position{}, true)
			require.NoError(t, err)
			require.Equal(t, Result{Rows: len(want), Consumed: len(window)}, res)
			for r := range want {
				if want[r] != row(c, r) {
					require.Equal(t, want[r], row(c, r), "row %d of %d", r, len(want))
				}
			}
		}
		for n := 1; n < most; n += 1 + n/24 {
			try(proving.End[byte](fence, n*BinaryRow), fenced(t, n))
		}
		c := NewColumns(30)
		for skip := range 64 {
			try(proving.Start[byte](fence, skip, 30*BinaryRow), c)
		}
		// Columns that are not wanted.
		none, some := &Columns{}, &Columns{}
		some.Dense[7], some.Sparse[2] = c.Dense[7], c.Sparse[2]
		data := make([]byte, 30*BinaryRow)
		for _, c := range []*Columns{none, some} {
			res, err := DecodeBinary(c, 0, 30, data, Position{}, true)
			require.NoError(t, err)
			require.Equal(t, 30, res.Rows)
		}
		require.Zero(t, some.Dense[7][29]+some.Sparse[2][29])
	})
}

func TestPathsAllocateNothing(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	var data []byte
	for range 100 {
		data = append(data, decimalLine(rng, false, "\n")...)
	}
	packed := make([]byte, 100*BinaryRow)
	c := NewColumns(100)
	d, err := NewDecoder(Options{})
	require.NoError(t, err)
	proving.EachLevel(t, func(t *testing.T) {
		require.Zero(t, testing.AllocsPerRun(10, func() {
			d.Reset(Position{})
			_, _ = d.Decode(c, 0, 100, data, true)
			_, _ = DecodeBinary(c, 0, 100, packed, Position{}, true)
		}))
	})
}
