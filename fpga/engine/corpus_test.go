package engine_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/engine"
	"github.com/millrace/millrace/fpga/engine/reference"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
	"github.com/millrace/millrace/internal/shared"
)

// numbers returns a program that brings every readable column of numbers to a tensor: scalars to dense, lists to a
// key.
func numbers(f *format.File) *program.Program {
	p := &program.Program{Source: program.Parquet}
	var rest []program.Column
	for i := range f.Leaves {
		l := &f.Leaves[i]
		reading := readingOf(l)
		readable := l.Unsupported == nil && l.Part == format.NoPart &&
			(l.Physical.Kind() != format.KindBytes || reading != nil)
		for _, g := range f.RowGroups {
			readable = readable && g.Columns[i].Unsupported == nil
		}
		if !readable {
			continue
		}
		c := program.Column{Name: l.Path, List: l.List}
		switch l.Physical.Kind() {
		case format.KindInt64:
			c.Kind = program.Int64
		case format.KindFloat32:
			c.Kind = program.Float32
		case format.KindFloat64:
			c.Kind = program.Float64
		default:
			c.Kind = program.Bytes
		}
		ops := []program.Op{program.FillNull{Int: -7, Float: -7}}
		if reading != nil {
			ops = append([]program.Op{reading}, ops...)
		}
		if l.List {
			if c.Kind == program.Float32 || reading != nil && reading.Out(c.Kind) == program.Float32 {
				ops = append(ops, &program.Bucketize{Borders32: []float32{0, 1, 2}})
			} else if c.Kind == program.Float64 {
				ops = append(ops, &program.Bucketize{Borders64: []float64{0, 1, 2}})
			}
			c.Sinks = []program.Sink{{To: program.ToSparse, Index: p.Output.Keys, Ops: ops}}
			p.Output.Keys++
			p.Columns = append(p.Columns, c)
			continue
		}
		if c.Kind != program.Float32 && (reading == nil || reading.Out(c.Kind) != program.Float32) {
			ops = append(ops, program.Convert{To: program.Float32})
		}
		c.Sinks = []program.Sink{{To: program.ToDense, Index: p.Output.Dense, Ops: ops}}
		p.Output.Dense++
		rest = append(rest, c)
	}
	p.Columns = append(p.Columns, rest...)
	return p
}

// readingOf returns the operator that makes numbers of a leaf's times, decimals or FLOAT16, or nil.
func readingOf(l *format.Leaf) program.Op {
	var precision, scale int
	decimals, _ := fmt.Sscanf(l.Logical, "DECIMAL(%d, %d)", &precision, &scale)
	switch {
	case l.Physical == format.Int96:
		return program.Int96Time{To: program.TimeSeconds}
	case l.Logical == "FLOAT16":
		return program.Float16{}
	case decimals == 2 && l.Physical != format.Float && l.Physical != format.Double:
		return program.Decimal{Scale: uint8(scale), To: program.Float32}
	case strings.HasPrefix(l.Logical, "TIME"):
		return program.Rescale{Multiplier: 1, Divisor: 1000}
	}
	return nil
}

// TestCorpus checks with files of other writers that the engine reads what the reference reads, and refuses what the
// reference refuses.
func TestCorpus(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(shared.Path(t, "data/parquet-testing"), "*.parquet"))
	require.NoError(t, err)
	files = append(files, shared.Path(t, "data/criteo/rap_first_4096.parquet"))
	read := 0
	for _, name := range files {
		t.Run(filepath.Base(name), func(t *testing.T) {
			data, err := os.ReadFile(name)
			require.NoError(t, err)
			f, err := format.ReadFooter(bytes.NewReader(data), int64(len(data)))
			if err != nil {
				t.Logf("refused: %v", err)
				return
			}
			whole := numbers(f)
			rows := int(min(f.Rows, 3000))
			for i := range whole.Columns {
				// One column at a time, so that an unreadable column does not hide the others.
				p := &program.Program{Source: program.Parquet, Columns: []program.Column{whole.Columns[i]}}
				s := &p.Columns[0].Sinks[0]
				s.Index = 0
				if s.To == program.ToSparse {
					p.Output.Keys = 1
				} else {
					p.Output.Dense = 1
				}
				if rows == 0 {
					continue
				}
				ref, err := reference.NewParquet(p, f, bytes.NewReader(data))
				require.NoError(t, err)
				want, wantErr := ref.MiniBatch(0, rows)
				h := newHost(engine.New(engine.Options{}), p, f, data, uint64(i))
				h.allocateRooms(4 << 20)
				h.wholeChunks = i%2 == 0
				got, err := h.miniBatch(0, rows)
				if wantErr != nil {
					var bad *sliceFailure
					require.ErrorAs(t, err, &bad, "reference: %v", wantErr)
					if errors.Is(wantErr, format.ErrUnsupported) {
						require.Equal(t, program.NoSupport, bad.state, bad.message)
					} else {
						require.Equal(t, program.BadData, bad.state, bad.message)
					}
					continue
				}
				require.NoError(t, err, p.Columns[0].Name)
				requireSame(t, want, got)
				read++
			}
		})
	}
	require.Greater(t, read, 100, "columns read")
}
