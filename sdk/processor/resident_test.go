package processor_test

import (
	"math/rand/v2"
	"testing"

	pq "github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/program/wire"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
	"github.com/millrace/millrace/sdk/partition"
	"github.com/millrace/millrace/sdk/processor"
	"github.com/millrace/millrace/sdk/processor/processortest"
	"github.com/millrace/millrace/sdk/target"
)

// TestPackedPagesAreMovedOnce has memory for the unpacked pages of all columns and for a few packed pages. The packed
// form of a page is not needed once the page lies unpacked.
func TestPackedPagesAreMovedOnce(t *testing.T) {
	const columns, rows, page, memory = 40, 10000, 4 << 10, 320 << 10
	data, prog, schema := processortest.Wide(t, columns, rows, page, pq.Compression(&pq.Snappy))
	for _, batch := range []int{32, 200} {
		f := processortest.NewFlash(memory, 512)
		part := processortest.Place(t, data, f.Put(rand.New(rand.NewPCG(1, 1)), data, 0, 1))
		run := processor.Run{Partition: part, Rows: rows, Batch: batch}
		p := f.Start(t, prog, schema, processor.Options{Streams: 1})
		processortest.RequireSame(t, processortest.Reference(t, prog, schema, run), processortest.MiniBatches(t, p, run))
		s := p.Stats()
		// An eighth is blocks that two pages share.
		assert.Less(t, s.BytesReread, s.BytesPlanned/5, "%d rows a mini-batch", batch)
		assert.Less(t, s.BytesPlanned, int64(len(data))*5/4)
	}
}

// size returns the number of bytes of the page at a task's cursor.
func size(data []byte, p *partition.Partition, task program.Task) uint64 {
	c := p.File.RowGroups[0].Columns[task.Column]
	h, n, err := format.ParsePageHeader(data[uint64(c.Offset)+task.Cursor.Page:])
	if err != nil {
		return 0
	}
	return uint64(n) + uint64(h.Compressed)
}

// TestChecksumsFollowMoves watches which pages a slice marks as checked: pages that an earlier slice checked in the
// same place, and over which nothing has been moved since.
func TestChecksumsFollowMoves(t *testing.T) {
	const columns, rows, page = 6, 4000, 4 << 10
	data, prog, schema := processortest.Wide(t, columns, rows, page, pq.Compression(&pq.Uncompressed))
	for _, memory := range []uint64{24 << 10, 64 << 10, 1 << 20} {
		f := processortest.NewFlash(memory, 512)
		part := processortest.Place(t, data, f.Put(rand.New(rand.NewPCG(1, 1)), data, 0, 1))
		type seen struct {
			chunk uint64
			exec  int
		}
		last := map[uint32]seen{}
		looked := map[[2]uint64]seen{} // by column and page
		movedAt := map[uint64]int{}    // by block of memory, the execution that last moved it
		checked, again := 0, 0
		f.After = func(_ target.Target, x *target.Execution, n int) {
			for _, m := range x.Moves {
				for at := m.To / 64; at < (m.To+m.Len)/64; at++ {
					movedAt[at] = n
				}
			}
			s, err := wire.UnmarshalSlice(x.Args)
			if !assert.NoError(t, err) {
				return
			}
			for _, task := range s.Tasks {
				key := [2]uint64{uint64(task.Column), task.Cursor.Page}
				chunk := x.Ranges[target.RangeInput].Addr + task.Window.Off - task.WindowAt // where its first byte would lie
				before, was := looked[key]
				if !was && task.Cursor.Checked {
					// The column's last slice reached the page.
					before, was = last[task.Column], true
				}
				now := seen{chunk, n}
				last[task.Column] = now
				if task.Cursor.Checked {
					checked++
					assert.Equal(t, before.chunk, chunk, "page at %d of column %d lies in another place", key[1], key[0])
					for at := (chunk + key[1]) / 64; at <= (chunk+key[1]+size(data, part, task)-1)/64; at++ {
						assert.LessOrEqual(t, movedAt[at], before.exec, "page at %d of column %d was moved again", key[1], key[0])
					}
					now = before
				} else if was {
					again++
				}
				looked[key] = now
			}
		}
		run := processor.Run{Partition: part, Rows: rows, Batch: 50}
		p := f.Start(t, prog, schema, processor.Options{Streams: 1})
		processortest.RequireSame(t, processortest.Reference(t, prog, schema, run), processortest.MiniBatches(t, p, run))
		require.Positive(t, checked)
		t.Logf("%d bytes: %d pages were checked before, %d looked at again", memory, checked, again)
		if memory < 32<<10 {
			require.Positive(t, again, "the memory is so small that pages come and go")
		}
	}
}
