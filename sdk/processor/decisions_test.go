package processor_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	pq "github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/internal/goldenfile"
	"github.com/millrace/millrace/sdk/partition"
	"github.com/millrace/millrace/sdk/processor"
	"github.com/millrace/millrace/sdk/processor/processortest"
	"github.com/millrace/millrace/sdk/target"
	"github.com/millrace/millrace/sdk/tensor"
)

// observed is a target that digests every execution.
type observed struct {
	target.Target
	sum hash.Hash
}

// Execute implements target.Target.
func (o *observed) Execute(ctx context.Context, x *target.Execution) (target.Outcome, error) {
	for _, m := range x.Moves {
		_ = binary.Write(o.sum, binary.LittleEndian, []uint64{m.From, m.Len, m.To})
	}
	for _, r := range x.Ranges[:target.RangeTables] { // there are no lookup tables
		_ = binary.Write(o.sum, binary.LittleEndian, []uint64{r.Addr, r.Len})
	}
	o.sum.Write(x.Args)
	return o.Target.Execute(ctx, x)
}

// decided is a configuration whose slices testdata/decisions.txt holds.
type decided struct {
	data   []byte
	source program.Source
	build  func() (*program.Program, *tensor.Schema)
	memory uint64
	batch  int
	first  int64
}

// decide runs a configuration from its first row and then from the beginning, and describes the executions.
func decide(t *testing.T, d decided) string {
	f := processortest.NewFlash(d.memory, 512)
	o := &observed{f, sha256.New()}
	options := partition.Options{Extents: f.Put(rand.New(rand.NewPCG(1, 1)), d.data, 0, 3), Every: 100}
	part, err := partition.Open(t.Context(), "part", bytes.NewReader(d.data), int64(len(d.data)), d.source, options)
	require.NoError(t, err)
	prog, schema := d.build()
	p, err := processor.Start(t.Context(), o, prog, schema, processor.Options{Streams: 1, Sync: true})
	require.NoError(t, err)
	defer p.Close()
	batches := 0
	for _, first := range []int64{d.first, 0} {
		s, err := p.Open(t.Context(), processor.Run{Partition: part, First: first, Rows: part.Rows - first, Batch: d.batch})
		require.NoError(t, err)
		for {
			m, err := s.Next(t.Context())
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err)
			batches++
			m.Release()
		}
		require.NoError(t, s.Close())
	}
	s := p.Stats()
	return fmt.Sprintf("%d mini-batches, %d slices, %d reissued, %d bytes moved, %d needed, %d again, "+
		"file %x, slices %x",
		batches, s.Slices, s.Reissued, s.BytesPlanned, s.BytesNeeded, s.BytesReread,
		sha256.Sum256(d.data), o.sum.Sum(nil))
}

// TestDecisions compares the slices and moves of some configurations with testdata/decisions.txt. A change of that file
// is a change of the work of drives, unless the digest of the data differs too: then the writer of the data changed.
// MILLRACE_UPDATE=1 writes the file.
func TestDecisions(t *testing.T) {
	var got strings.Builder
	for _, name := range []string{"unpacked", "packed"} {
		codec := map[string]pq.WriterOption{
			"unpacked": pq.Compression(&pq.Uncompressed),
			"packed":   pq.Compression(&pq.Snappy),
		}[name]
		data, prog, schema := processortest.Wide(t, 40, 6000, 4<<10, codec)
		build := func() (*program.Program, *tensor.Schema) { return prog, schema }
		for _, memory := range []uint64{250 << 10, 320 << 10, 2 << 20} {
			for _, batch := range []int{32, 500} {
				d := decided{data: data, source: program.Parquet, build: build, memory: memory, batch: batch, first: 4444}
				fmt.Fprintf(&got, "%s, memory %d, batch %d: %s\n", name, memory, batch, decide(t, d))
			}
		}
	}
	for _, source := range []program.Source{program.CriteoTSV, program.CriteoBinary} {
		data := processortest.TextRows(1000, 0)
		if source == program.CriteoBinary {
			data = processortest.BinaryRows(1000)
		}
		build := func() (*program.Program, *tensor.Schema) { return processortest.Criteo(source, program.MalformedFail) }
		for _, memory := range []uint64{120 << 10, 2 << 20} {
			d := decided{data: data, source: source, build: build, memory: memory, batch: 64, first: 834}
			fmt.Fprintf(&got, "%v, memory %d: %s\n", source, memory, decide(t, d))
		}
	}
	goldenfile.Text(t, "testdata/decisions.txt", got.String())
}
