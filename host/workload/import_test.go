package workload

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/unit/text"
	"github.com/millrace/millrace/internal/shared"
)

// lines returns rows of text in Criteo's form, and their cells as read shows them.
func lines(rows int, label bool) (string, [][]string) {
	r := rand.New(rand.NewPCG(1, 2))
	var b strings.Builder
	cells := make([][]string, 40)
	for range rows {
		for c := range 40 {
			if c == 0 && !label {
				continue
			}
			if c > 1 || c == 1 && label {
				b.WriteByte('\t')
			}
			switch {
			case c > 0 && r.IntN(4) == 0:
				cells[c] = append(cells[c], "null")
			case c == 0:
				v := r.IntN(2)
				fmt.Fprint(&b, v)
				cells[c] = append(cells[c], fmt.Sprint(v))
			case c <= 13:
				v := int32(r.Uint32()) >> r.IntN(32)
				fmt.Fprint(&b, v)
				cells[c] = append(cells[c], fmt.Sprint(v))
			default:
				v := r.Uint32()
				fmt.Fprintf(&b, "%08x", v)
				cells[c] = append(cells[c], fmt.Sprint(v))
			}
		}
		b.WriteByte('\n')
	}
	if !label {
		cells = cells[1:]
	}
	return b.String(), cells
}

func TestImportText(t *testing.T) {
	const rows = 10_000
	in, cells := lines(rows, true)
	for _, o := range []ImportOptions{
		{},
		{PartitionRows: 4096},
		{PartitionRows: 3333, RowGroupRows: 1000, Codec: "zstd", Encoding: "dictionary", PageVersion: 2},
		{PartitionRows: 10_000, RowGroupRows: 5000, PageBytes: 4096},
	} {
		o.Out = t.TempDir()
		var seen int64
		o.Progress = func(rows, bytes int64) {
			assert.Greater(t, rows, seen)
			seen = rows
			assert.LessOrEqual(t, bytes, int64(len(in)))
		}
		files, counts, err := Import(t.Context(), strings.NewReader(in), o)
		require.NoError(t, err)
		assert.Zero(t, counts)
		assert.EqualValues(t, rows, seen)
		var sum int64
		for _, f := range files {
			sum += f.Rows
			var groups int64
			for _, g := range f.RowGroups {
				groups += g
			}
			assert.Equal(t, f.Rows, groups)
		}
		assert.EqualValues(t, rows, sum)
		if o.PartitionRows == 3333 {
			assert.Len(t, files, 4)
			assert.Equal(t, []int64{1000, 1000, 1000, 333}, files[0].RowGroups)
		}
		require.Equal(t, cells, read(t, files))
	}
}

// The window's refills must not change the bytes that are read.
func TestImportReadsInPieces(t *testing.T) {
	in, cells := lines(500, true)
	files, _, err := Import(t.Context(), iotest.OneByteReader(strings.NewReader(strings.TrimSuffix(in, "\n"))),
		ImportOptions{Out: t.TempDir()})
	require.NoError(t, err)
	assert.Equal(t, cells, read(t, files))
}

func TestImportWithoutLabel(t *testing.T) {
	in, cells := lines(100, false)
	files, _, err := Import(t.Context(), strings.NewReader(in), ImportOptions{Out: t.TempDir(), LabelAbsent: true})
	require.NoError(t, err)
	assert.Equal(t, cells, read(t, files))
}

func TestImportBinary(t *testing.T) {
	const rows = 5000
	r := rand.New(rand.NewPCG(3, 4))
	var in bytes.Buffer
	cells := make([][]string, 40)
	for range rows {
		for c := range 40 {
			v := r.Uint32()
			in.Write(binary.LittleEndian.AppendUint32(nil, v))
			if c < 14 {
				cells[c] = append(cells[c], fmt.Sprint(int32(v)))
			} else {
				cells[c] = append(cells[c], fmt.Sprint(v))
			}
		}
	}
	whole := in.Bytes()
	files, _, err := Import(t.Context(), bytes.NewReader(whole),
		ImportOptions{Out: t.TempDir(), Binary: true, PartitionRows: 4500})
	require.NoError(t, err)
	assert.Len(t, files, 2)
	assert.Equal(t, cells, read(t, files))

	_, _, err = Import(t.Context(), bytes.NewReader(whole[:len(whole)-1]),
		ImportOptions{Out: t.TempDir(), Binary: true})
	require.ErrorIs(t, err, text.ErrPartialRow)
	_, _, err = Import(t.Context(), bytes.NewReader(whole),
		ImportOptions{Out: t.TempDir(), Binary: true, LabelAbsent: true})
	require.ErrorIs(t, err, ErrOptions)
}

func TestImportOfNothing(t *testing.T) {
	files, _, err := Import(t.Context(), strings.NewReader(""), ImportOptions{Out: t.TempDir()})
	require.NoError(t, err)
	require.Len(t, files, 1)
	assert.Zero(t, files[0].Rows)
	read(t, files)
}

func TestImportPolicies(t *testing.T) {
	in, cells := lines(10, true)
	bad := strings.Replace(in, "\n", "\nx\t1\n\n", 1)
	_, _, err := Import(t.Context(), strings.NewReader(bad), ImportOptions{Out: t.TempDir()})
	var row *text.RowError
	require.ErrorAs(t, err, &row)
	assert.EqualValues(t, 2, row.Line)

	files, counts, err := Import(t.Context(), strings.NewReader(bad),
		ImportOptions{Out: t.TempDir(), Policy: text.Drop})
	require.NoError(t, err)
	assert.Equal(t, Counts{Dropped: 1, Blank: 1}, counts)
	assert.Equal(t, cells, read(t, files))

	files, counts, err = Import(t.Context(), strings.NewReader(bad), ImportOptions{Out: t.TempDir(), Policy: text.Null})
	require.NoError(t, err)
	assert.Equal(t, Counts{Nulled: 1, Blank: 1}, counts)
	for _, c := range read(t, files) {
		require.Len(t, c, 11)
		assert.Equal(t, "null", c[1])
	}
}

func TestImportRefuses(t *testing.T) {
	for _, o := range []ImportOptions{
		{}, {Out: t.TempDir(), PartitionRows: -1}, {Out: t.TempDir(), Codec: "x"}, {Out: t.TempDir(), Policy: 9},
		{Out: t.TempDir(), RowGroupRows: -1},
	} {
		_, _, err := Import(t.Context(), strings.NewReader(""), o)
		require.ErrorIs(t, err, ErrOptions)
	}
	disk := errors.New("disk")
	in, _ := lines(5000, true)
	out := t.TempDir()
	files, _, err := Import(t.Context(), io.MultiReader(strings.NewReader(in), iotest.ErrReader(disk)),
		ImportOptions{Out: out, PartitionRows: 1000})
	require.ErrorIs(t, err, disk)
	entries, err := os.ReadDir(out)
	require.NoError(t, err)
	assert.Empty(t, files)
	assert.Empty(t, entries, "a part of the partitions would look like a data set")

	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(disk)
	_, _, err = Import(ctx, strings.NewReader(in), ImportOptions{Out: t.TempDir()})
	require.ErrorIs(t, err, disk)
}

// Real rows against the unit's reference, when they are there.
func TestImportRealRows(t *testing.T) {
	data, err := os.ReadFile(shared.Path(t, "data/criteo/td_day_11_first_3k_rows_original.tsv"))
	require.NoError(t, err)
	files, counts, err := Import(t.Context(), bytes.NewReader(data),
		ImportOptions{Out: t.TempDir(), PartitionRows: 1111})
	require.NoError(t, err)
	assert.Zero(t, counts)
	rows, _, _, err := text.Reference(data, text.Options{})
	require.NoError(t, err)
	require.Len(t, rows, 3000)
	cells := read(t, files)
	for c := range cells {
		nulls := 0
		for r, have := range cells[c] {
			want := "null"
			if rows[r][c].Valid {
				want = fmt.Sprint(rows[r][c].Value)
			} else {
				nulls++
			}
			require.Equal(t, want, have)
		}
		if c > 0 {
			assert.Equal(t, criteoNulls[c-1], nulls, "the rates in models.go were counted here")
		}
	}
}
