package rm_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/text"
	"github.com/millrace/millrace/host/workload"
	"github.com/millrace/millrace/sdk/cpu"
	"github.com/millrace/millrace/sdk/partition"
	"github.com/millrace/millrace/sdk/partition/schema"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/pipeline/lowering"
	"github.com/millrace/millrace/sdk/pipeline/resolve"
	"github.com/millrace/millrace/sdk/processor"
	"github.com/millrace/millrace/sdk/tensor"
)

// digests is the file of every case's digest: the same for every architecture, level of the instruction set and build
// tag.
const digests = "testdata/digests.txt"

// digestCases name a pipeline and make a partition for it, the same bytes' worth of rows everywhere.
var digestCases = []struct {
	name, pipeline string
	source         program.Source
	batch          int
	make           func(t *testing.T) []byte
}{
	{
		"rm1 plain", "rm1", program.Parquet, 1024,
		generated("rm1", workload.Options{Rows: 2500, RowGroupRows: 1700, PageBytes: 4000}),
	},
	{
		"rm1 snappy dictionary", "rm1", program.Parquet, 1024,
		generated("rm1", workload.Options{Rows: 2500, Codec: "snappy", Encoding: "dictionary", PageVersion: 2}),
	},
	{
		"rm1 zstd, none null", "rm1", program.Parquet, 900,
		generated("rm1", workload.Options{Rows: 2500, Codec: "zstd", Coverage: 1}),
	},
	{
		"rm5 plain", "rm5", program.Parquet, 128,
		generated("rm5", workload.Options{Rows: 300, RowGroupRows: 170, PageBytes: 1000, Coverage: 1}),
	},
	{
		"rm5 snappy dictionary", "rm5", program.Parquet, 128,
		generated("rm5", workload.Options{Rows: 300, Codec: "snappy", Encoding: "dictionary"}),
	},
	{"criteo text", "criteo", program.CriteoTSV, 1000, criteoText},
	{"criteo binary", "criteo", program.CriteoBinary, 1000, criteoBinary},
}

// TestDigests: mini-batches are byte for byte those whose digests are kept, on this machine as on every other.
// .ci/cross runs it as GOAMD64=v1 and v3, with -tags purego, with less of the processor, and for arm64 under QEMU.
// MILLRACE_UPDATE=1 writes the file again if the reference makes the same mini-batches; only a changed definition of an
// operator or a workload excuses it.
func TestDigests(t *testing.T) {
	var found strings.Builder
	for _, c := range digestCases {
		data := c.make(t)
		kernels := digest(t, c.pipeline, c.source, c.batch, data,
			func(ctx context.Context, p *program.Program, s *tensor.Schema) (processor.Processor, error) {
				return cpu.New(ctx, p, s, cpu.Options{Threads: 1})
			})
		if os.Getenv("MILLRACE_UPDATE") != "" { // it takes a minute
			reference := digest(t, c.pipeline, c.source, c.batch, data,
				func(_ context.Context, p *program.Program, s *tensor.Schema) (processor.Processor, error) {
					return cpu.NewReference(p, s)
				})
			require.Equal(t, reference, kernels, "%s: the kernels differ from the reference", c.name)
		}
		fmt.Fprintf(&found, "%x %s\n", kernels, c.name)
	}
	if os.Getenv("MILLRACE_UPDATE") != "" {
		require.NoError(t, os.MkdirAll("testdata", 0o777))
		require.NoError(t, os.WriteFile(digests, []byte(found.String()), 0o666))
	}
	kept, err := os.ReadFile(digests)
	require.NoError(t, err)
	require.Equal(t, string(kept), found.String())
	t.Logf("%s/%s, %q: digest of the digests %x", runtime.GOOS, runtime.GOARCH, os.Getenv("MILLRACE_CPU"),
		sha256.Sum256([]byte(found.String())))
}

// digest is the SHA-256 of the frames of all mini-batches of a partition.
func digest(t *testing.T, name string, source program.Source, batch int, data []byte,
	open func(context.Context, *program.Program, *tensor.Schema) (processor.Processor, error)) []byte {
	t.Helper()
	p, err := partition.Open(t.Context(), name, bytes.NewReader(data), int64(len(data)), source,
		partition.Options{Bytes: data})
	require.NoError(t, err)
	spec, err := pipeline.Named(name)
	require.NoError(t, err)
	columns, _ := schema.Columns(p, text.Options{})
	resolved, err := resolve.Pipeline(spec, columns)
	require.NoError(t, err)
	prog, schema, err := lowering.Lower(resolved)
	require.NoError(t, err)
	runner, err := open(t.Context(), prog, schema)
	require.NoError(t, err)
	s, err := runner.Open(t.Context(), processor.Run{Partition: p, Rows: p.Rows, Batch: batch})
	require.NoError(t, err)
	h := sha256.New()
	var rows int64
	for number := uint64(0); ; number++ {
		m, err := s.Next(t.Context())
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		m.Name.Number = number
		frame, err := tensor.EncodeFrame(m)
		require.NoError(t, err)
		_, err = frame.WriteTo(h)
		require.NoError(t, err)
		rows += int64(m.Rows)
		m.Release()
	}
	require.NoError(t, s.Close())
	require.NoError(t, runner.Close())
	require.Equal(t, p.Rows, rows)
	return h.Sum(nil)[:16]
}

// generated makes a workload's only partition.
func generated(model string, o workload.Options) func(t *testing.T) []byte {
	return func(t *testing.T) []byte {
		m, err := workload.Find(model)
		require.NoError(t, err)
		o.Model, o.Out = m, t.TempDir()
		files, err := workload.Generate(t.Context(), o)
		require.NoError(t, err)
		b, err := os.ReadFile(files[0].Path)
		require.NoError(t, err)
		return b
	}
}

const (
	criteoRows   = 2500
	criteoFields = 40 // label, 13 integers, 26 ids
	criteoInts   = 13
)

// criteoText makes lines with empty fields, negative integers and numbers of every length.
func criteoText(*testing.T) []byte {
	r := rand.New(rand.NewPCG(1, 2))
	var b []byte
	for range criteoRows {
		b = fmt.Appendf(b, "%d", r.IntN(2))
		for f := 1; f < criteoFields; f++ {
			b = append(b, '\t')
			switch {
			case r.IntN(6) == 0: // empty
			case f > criteoInts:
				b = fmt.Appendf(b, "%08x", r.Uint32())
			default:
				b = fmt.Appendf(b, "%d", int32(r.Uint32())>>r.IntN(32))
			}
		}
		b = append(b, '\n')
	}
	return b
}

// criteoBinary makes rows of 32-bit numbers.
func criteoBinary(*testing.T) []byte {
	r := rand.New(rand.NewPCG(3, 4))
	var b []byte
	for range criteoRows {
		b = binary.LittleEndian.AppendUint32(b, r.Uint32()&1)
		for f := 1; f < criteoFields; f++ {
			v := r.Uint32()
			if f <= criteoInts {
				v = uint32(int32(v) >> r.IntN(32))
			}
			b = binary.LittleEndian.AppendUint32(b, v)
		}
	}
	return b
}
