package engine_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/engine"
	"github.com/millrace/millrace/fpga/engine/reference"
	"github.com/millrace/millrace/internal/foreignparquettest"
)

// TestForeignFiles reads files of other writers, faults included, with several kinds of hosts and with the
// reference. The mini-batches must be those of the same file without faults.
func TestForeignFiles(t *testing.T) {
	twin := foreignparquettest.Twin()
	f := readFooter(t, twin)
	p := readableColumns(f)
	require.Len(t, p.Columns, 4)
	ref, err := reference.NewParquet(p, f, bytes.NewReader(twin))
	require.NoError(t, err)
	for _, file := range foreignparquettest.Files() {
		f := readFooter(t, file.Bytes)
		p := readableColumns(f)
		require.Len(t, p.Columns, 4, file.Name)
		mine, err := reference.NewParquet(p, f, bytes.NewReader(file.Bytes))
		require.NoError(t, err)
		for habit, set := range map[string]func(h *host){
			"any":   func(*host) {},
			"tiny":  func(h *host) { h.smallestWindows = true },
			"creep": func(h *host) { h.smallestWindows, h.growByByte = true, true },
			"big":   func(h *host) { h.wholeChunks = true },
		} {
			t.Run(fmt.Sprintf("%s/%s", file.Name, habit), func(t *testing.T) {
				h := newHost(engine.New(engine.Options{}), p, f, file.Bytes, uint64(len(habit)))
				set(h)
				rows := int64(foreignparquettest.Rows)
				if len(f.RowGroups) > 1 && habit != "big" {
					rows = 150 // one task for each row takes long
				}
				for first := int64(0); first < rows; first += 150 {
					want, err := ref.MiniBatch(first, 150)
					require.NoError(t, err)
					slow, err := mine.MiniBatch(first, 150)
					require.NoError(t, err)
					requireSame(t, want, slow)
					got, err := h.miniBatch(first, 150)
					require.NoError(t, err)
					requireSame(t, want, got)
				}
			})
		}
	}
}
