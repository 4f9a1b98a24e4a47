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
	"github.com/millrace/millrace/fpga/operator/bucketize"
	"github.com/millrace/millrace/fpga/operator/convert"
	"github.com/millrace/millrace/fpga/operator/decimal"
	"github.com/millrace/millrace/fpga/operator/fillnull"
	"github.com/millrace/millrace/fpga/operator/float16"
	"github.com/millrace/millrace/fpga/operator/hashbytes"
	"github.com/millrace/millrace/fpga/operator/int96time"
	"github.com/millrace/millrace/fpga/operator/rescale"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/program/parquetcolumn"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
	pagereference "github.com/millrace/millrace/fpga/unit/parquet/reference"
	"github.com/millrace/millrace/internal/shared"
)

// readableColumns returns a program that brings every readable column to a tensor: numbers to dense, lists and text to
// a key.
func readableColumns(f *format.File) *program.Program {
	p := &program.Program{Source: program.Parquet}
	var rest []program.Column
	for i := range f.Leaves {
		l := &f.Leaves[i]
		reading := readingOf(l)
		readable := l.Unsupported == nil && l.Part == format.NoPart
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
		ops := []program.Op{fillnull.Op{Int: -7, Float: -7}}
		if reading != nil {
			ops = append([]program.Op{reading}, ops...)
		}
		if _, hashed := reading.(hashbytes.Op); l.List || hashed {
			if c.Kind == program.Float32 || reading != nil && reading.Out(c.Kind) == program.Float32 {
				ops = append(ops, &bucketize.Op{Borders32: []float32{0, 1, 2}})
			} else if c.Kind == program.Float64 {
				ops = append(ops, &bucketize.Op{Borders64: []float64{0, 1, 2}})
			}
			c.Sinks = []program.Sink{{To: program.ToSparse, Index: p.Output.Keys, Ops: ops}}
			p.Output.Keys++
			p.Columns = append(p.Columns, c)
			continue
		}
		if c.Kind != program.Float32 && (reading == nil || reading.Out(c.Kind) != program.Float32) {
			ops = append(ops, convert.Op{To: program.Float32})
		}
		c.Sinks = []program.Sink{{To: program.ToDense, Index: p.Output.Dense, Ops: ops}}
		p.Output.Dense++
		rest = append(rest, c)
	}
	p.Columns = append(p.Columns, rest...)
	return p
}

// readingOf returns the operator that makes numbers of a leaf's times, decimals, FLOAT16 or other bytes, or nil.
func readingOf(l *format.Leaf) program.Op {
	var precision, scale int
	decimals, _ := fmt.Sscanf(l.Logical, "DECIMAL(%d, %d)", &precision, &scale)
	switch {
	case l.Physical == format.Int96:
		return int96time.Op{To: int96time.Seconds}
	case l.Logical == "FLOAT16":
		return float16.Op{}
	case decimals == 2 && l.Physical != format.Float && l.Physical != format.Double:
		return decimal.Op{Scale: uint8(scale), To: program.Float32}
	case strings.HasPrefix(l.Logical, "TIME"):
		return rescale.Op{Multiplier: 1, Divisor: 1000}
	case l.Physical.Kind() == format.KindBytes:
		return hashbytes.Op{Function: hashbytes.XXH3}
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
			whole := readableColumns(f)
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
				if compareWithReference(t, p, f, data, rows, i, false) {
					read++
				}
			}
		})
	}
	require.Greater(t, read, 100, "columns read")
}

// compareWithReference checks that the engine makes the reference's mini-batch of the file's first rows, or refuses it
// as the reference does. It reports whether there is a mini-batch. seed varies the host. With severalFaults the two may
// report different faults of the file.
func compareWithReference(t *testing.T, p *program.Program, f *format.File, data []byte, rows, seed int,
	severalFaults bool) bool {
	t.Helper()
	ref, err := reference.NewParquet(p, f, bytes.NewReader(data))
	require.NoError(t, err)
	want, wantErr := ref.MiniBatch(0, rows)
	h := newHost(engine.New(engine.Options{}), p, f, data, uint64(seed))
	h.allocateRooms(4 << 20)
	h.wholeChunks = seed%2 == 0
	got, err := h.miniBatch(0, rows)
	if wantErr != nil {
		var bad *sliceFailure
		require.ErrorAs(t, err, &bad, "reference: %v", wantErr)
		if severalFaults {
			require.Contains(t, []program.State{program.BadData, program.NoSupport}, bad.state, bad.message)
		} else if errors.Is(wantErr, format.ErrUnsupported) {
			require.Equal(t, program.NoSupport, bad.state, bad.message)
		} else {
			require.Equal(t, program.BadData, bad.state, bad.message)
		}
		return false
	}
	require.NoError(t, err, p.Columns[0].Name)
	requireSame(t, want, got)
	return true
}

// firstKeys returns some keys of the first rows of a map as picks take them.
func firstKeys(t *testing.T, f *format.File, data []byte, m *format.Map) (picks []program.Pick) {
	column, err := pagereference.ReadColumn(bytes.NewReader(data), f, 0, m.Keys)
	require.NoError(t, err)
	seen := map[program.Pick]bool{}
	for _, row := range column.Rows {
		keys, _ := row.([]any)
		for _, key := range keys {
			var pick program.Pick
			switch k := key.(type) {
			case int64:
				pick.Key = k
			case []byte:
				pick.Text = string(k[:min(len(k), program.MaxName)])
			}
			if !seen[pick] && len(picks) < 5 {
				seen[pick] = true
				picks = append(picks, pick)
			}
		}
	}
	return picks
}

// TestCorpusMaps checks with files of other writers that the engine makes the reference's features of their maps,
// whose values are numbers and text, and lists of both.
func TestCorpusMaps(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(shared.Path(t, "data/parquet-testing"), "*.parquet"))
	require.NoError(t, err)
	shapes := map[string]bool{}
	for _, name := range files {
		data, err := os.ReadFile(name)
		require.NoError(t, err)
		f, err := format.ReadFooter(bytes.NewReader(data), int64(len(data)))
		if err != nil || f.Rows == 0 || strings.Contains(name, "large_string_map") { // a page of 2 GiB
			continue
		}
		for i := range f.Maps {
			m := &f.Maps[i]
			if m.Unsupported != nil {
				continue
			}
			t.Run(filepath.Base(name)+":"+m.Name, func(t *testing.T) {
				keys, values := &f.Leaves[m.Keys], &f.Leaves[m.Values]
				c := program.Column{Name: values.Path, Kind: parquetcolumn.KindOf(values.Physical.Kind()), List: m.List,
					Part: program.MapValues, Picks: firstKeys(t, f, data, m)}
				ops := []program.Op{fillnull.Op{Int: -7, Float: -7}}
				if reading := readingOf(values); reading != nil {
					ops = append([]program.Op{reading}, ops...)
				}
				switch {
				case c.Kind == program.Float32:
					ops = append(ops, &bucketize.Op{Borders32: []float32{0, 1, 2}})
				case c.Kind == program.Float64:
					ops = append(ops, &bucketize.Op{Borders64: []float64{0, 1, 2}})
				}
				p := &program.Program{Source: program.Parquet, Columns: []program.Column{
					{Name: keys.Path, Kind: parquetcolumn.KindOf(keys.Physical.Kind()), Part: program.MapKeys}}}
				for k := range c.Picks {
					c.Sinks = append(c.Sinks, program.Sink{To: program.ToSparse, Index: uint32(k), Ops: ops})
				}
				p.Output.Keys = uint32(len(c.Picks))
				p.Columns = append(p.Columns, c)
				require.NoError(t, p.Validate())
				if compareWithReference(t, p, f, data, int(min(f.Rows, 3000)), i, false) {
					shapes[program.ValueType{Kind: c.Kind, List: c.List}.String()] = true
				}
			})
		}
	}
	require.True(t, shapes["int64"] && shapes["bytes"], "%v", shapes)
}
