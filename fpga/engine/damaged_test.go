package engine_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
	"github.com/millrace/millrace/internal/foreignparquettest"
)

// damages returns how many times each column is damaged: n times, or 100 n times if MILLRACE_SWEEP is set.
func damages(n int) int {
	if os.Getenv("MILLRACE_SWEEP") != "" {
		return 100 * n
	}
	return n
}

// TestDamagedChunks damages column chunks: pages are lost, repeated, exchanged, changed and cut off, and pages of
// nothing are put between them. The engine reads what the reference reads, and refuses what the reference refuses.
func TestDamagedChunks(t *testing.T) {
	files := map[string][]byte{"twin": foreignparquettest.Twin()}
	for i, codec := range []string{"", "snappy", "gzip", "zstd", "lz4"} {
		rng := rand.New(rand.NewPCG(uint64(i), 9))
		cols := randomColumns(rng, 6, 40)
		for j := range cols {
			cols[j].codec = codec
		}
		files["library "+codec] = writeFile(t, cols, layout{groupRows: 25, batchRows: 7, pageBytes: 60,
			version: 1 + i%2})
	}
	for name, data := range files {
		t.Run(name, func(t *testing.T) {
			f := readFooter(t, data)
			damageChunks(t, f, data, readableColumns(f))
		})
	}
	for i, codec := range []string{"", "snappy"} {
		t.Run("pages by hand "+codec, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(uint64(i), 10))
			cols := randomColumns(rng, 8, 40)
			for j := range cols {
				c := &cols[j]
				c.unsigned, c.codec, c.noCRC = 0, codec, true
				if c.physical == format.Boolean {
					c.physical = format.Int64
				}
			}
			data, f := assembleFile(rng, cols, 40, 6)
			damageChunks(t, f, data, readableColumns(f))
		})
	}
}

// damageChunks damages the chunks of each column and compares the engine with the reference.
func damageChunks(t *testing.T, f *format.File, data []byte, whole *program.Program) {
	read, refused := 0, 0
	for i := range whole.Columns {
		p := &program.Program{Source: program.Parquet, Columns: []program.Column{whole.Columns[i]}}
		if sink := &p.Columns[0].Sinks[0]; sink.To == program.ToSparse {
			sink.Index, p.Output.Keys = 0, 1
		} else {
			sink.Index, p.Output.Dense = 0, 1
		}
		leaf, ok := f.Leaf(p.Columns[0].Name)
		require.True(t, ok)
		for seed := range damages(12) {
			rng := rand.New(rand.NewPCG(uint64(seed), uint64(i)))
			file, bytes := damageChunk(rng, f, data, leaf.Index)
			passed := t.Run(fmt.Sprintf("%s/%d", leaf.Path, seed), func(t *testing.T) {
				if compareWithReference(t, p, file, bytes, int(file.Rows), seed, true) {
					read++
				} else {
					refused++
				}
			})
			if !passed && os.Getenv("MILLRACE_SWEEP") == "" {
				return
			}
		}
	}
	t.Logf("%d read, %d refused", read, refused)
}

// damageChunk returns the file with one of a leaf's chunks damaged.
func damageChunk(rng *rand.Rand, f *format.File, data []byte, leaf int) (*format.File, []byte) {
	out := *f
	out.RowGroups = slices.Clone(f.RowGroups)
	g := rng.IntN(len(out.RowGroups))
	group := &out.RowGroups[g]
	group.Columns = slices.Clone(group.Columns)
	c := &group.Columns[leaf]
	pages := pagesOf(data[c.Offset : c.Offset+c.Compressed])
	for range 1 + rng.IntN(2) {
		pages = damagePages(rng, pages)
	}
	// The footer's reader refuses a wrong number of values for a column that is not a list.
	if f.Leaves[leaf].List && rng.IntN(12) == 0 {
		c.NumValues = max(group.Rows, c.NumValues+int64(rng.IntN(3)-1))
	}
	chunk := bytes.Join(pages, nil)
	c.Offset, c.DataOffset, c.Compressed = int64(len(data)), int64(len(data)), int64(len(chunk))
	damaged := append(bytes.Clone(data), chunk...)
	out.Size = int64(len(damaged))
	return &out, damaged
}

// pagesOf cuts a chunk into its pages, with their headers.
func pagesOf(chunk []byte) (pages [][]byte) {
	for len(chunk) > 0 {
		h, n, err := format.ParsePageHeader(chunk)
		if err != nil {
			return append(pages, chunk)
		}
		n += int(h.Compressed)
		pages, chunk = append(pages, chunk[:n]), chunk[n:]
	}
	return pages
}

// damagePages damages the pages of a chunk.
func damagePages(rng *rand.Rand, pages [][]byte) [][]byte {
	pages = slices.Clone(pages)
	if len(pages) == 0 {
		return pages
	}
	i, j := rng.IntN(len(pages)), rng.IntN(len(pages))
	if len(pages[i]) == 0 {
		return pages
	}
	page := bytes.Clone(pages[i])
	pages[i] = page
	switch rng.IntN(9) {
	case 0:
		return slices.Delete(pages, i, i+1)
	case 1:
		return slices.Insert(pages, j, page)
	case 2:
		pages[i], pages[j] = pages[j], pages[i]
	case 3: // The page is cut off, and the pages behind it are lost.
		return append(pages[:i], page[:rng.IntN(len(page)+1)])
	case 4: // A page without values, or of an unknown type, is inserted.
		kind := []int{0, 1, 2, 3, 4, 7}[rng.IntN(6)]
		empty := pageHeaderBytes(kind, rng.IntN(3), make([]byte, rng.IntN(3)), rng.IntN(2) == 0, func(w *thrift) {
			switch kind {
			case 0:
				w.open(5)
				for id := range 4 {
					w.i32(id+1, []int{0, 0, 3, 3}[id])
				}
				w.end()
			case 2:
				w.open(7)
				w.i32(1, rng.IntN(2))
				w.i32(2, 0)
				w.end()
			case 3:
				w.open(8)
				for id := range 6 {
					w.i32(id+1, 0)
				}
				w.end()
			}
		})
		return slices.Insert(pages, j, empty)
	default: // Bytes of the page are changed, mostly in its header.
		for range 1 + rng.IntN(2) {
			at := rng.IntN(len(page))
			if rng.IntN(2) == 0 {
				at = rng.IntN(min(len(page), 24))
			}
			if rng.IntN(2) == 0 {
				page[at] ^= 1 << rng.IntN(8)
			} else {
				page[at] = byte(rng.IntN(256))
			}
		}
	}
	return pages
}
