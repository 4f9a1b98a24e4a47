package engine_test

import (
	"context"
	"crypto/sha256"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/engine"
	"github.com/millrace/millrace/fpga/operator/fillnull"
	"github.com/millrace/millrace/fpga/operator/positivemodulus"
	vocabularyop "github.com/millrace/millrace/fpga/operator/vocabulary"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/program/wire"
	"github.com/millrace/millrace/fpga/unit/vocabulary"
)

// addLookupTable adds a table of keys to a program and returns its number.
func addLookupTable(t require.TestingT, p *program.Program, keys []int64) uint32 {
	shape, b, err := vocabulary.Store(keys)
	require.NoError(t, err)
	at := (p.TablesBytes() + program.Align - 1) &^ (program.Align - 1)
	p.LookupTables = append(p.LookupTables, program.LookupTable{
		Offset: at, Digest: sha256.Sum256(b), Hashed: shape.Hashed, Entries: shape.Entries, Keys: shape.Keys,
		Least: shape.Least, Multiplier: shape.Multiplier, Probes: shape.Probes, Stored: b, Listed: keys,
	})
	return uint32(len(p.LookupTables) - 1)
}

// alignedBytes returns n zero bytes that begin at a multiple of 8.
func alignedBytes(n int) []byte {
	words := make([]uint64, n/8+1)
	return unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), n)
}

// tablesRange returns the tables range of a program whose tables are at hand.
func tablesRange(p *program.Program) []byte {
	b := alignedBytes(int(p.TablesBytes()))
	for i := range p.LookupTables {
		copy(b[p.LookupTables[i].Offset:], p.LookupTables[i].Stored)
	}
	return b
}

// addLookups ends some chains of keys with a lookup.
func addLookups(t require.TestingT, rng *rand.Rand, p *program.Program, risky bool) {
	for i := range p.Columns {
		for j := range p.Columns[i].Sinks {
			s := &p.Columns[i].Sinks[j]
			if s.To != program.ToSparse || rng.IntN(2) == 0 {
				continue
			}
			modulus, spread := int64(1+rng.IntN(3000)), int64(1+rng.IntN(2)*1000003)
			var keys []int64
			for _, k := range rng.Perm(int(modulus)) {
				if risky || rng.IntN(4) > 0 {
					keys = append(keys, int64(k)*spread)
				}
			}
			o := vocabularyop.Op{Table: addLookupTable(t, p, keys), Absent: vocabularyop.Absent(rng.IntN(2)) + 1}
			switch {
			case o.Absent == vocabularyop.AbsentBucket:
				o.Base, o.Buckets = 40, uint32(1+rng.IntN(40))
			case risky && spread == 1:
				o.Absent = vocabularyop.AbsentFail
			default:
				o.Base, o.Rare = int64(rng.IntN(3)), int64(rng.IntN(3))
			}
			s.Ops = append(s.Ops, positivemodulus.Op{M: modulus * spread}, o)
			if rng.IntN(3) == 0 {
				s.Ops = append(s.Ops, fillnull.Op{Int: 3})
			}
		}
	}
}

// lookupSlice is a slice over rows of numbers of 40 fields, of which the key reads field 14.
func lookupSlice(t *testing.T, keys []int64, o vocabularyop.Op, values []uint32) (program.Slice, engine.Memory) {
	t.Helper()
	p := &program.Program{Source: program.CriteoBinary, Output: program.Output{Keys: 1, IDs: program.IDs64, Fixed: true}}
	o.Table = addLookupTable(t, p, keys)
	p.Columns = []program.Column{{Name: "cat_0", Field: 14, Kind: program.Int64,
		Sinks: []program.Sink{{To: program.ToSparse, Ops: []program.Op{o}}}}}
	require.NoError(t, p.Validate())
	data := make([]byte, 160*len(values))
	for i, v := range values {
		data[160*i+56], data[160*i+57] = byte(v), byte(v>>8)
	}
	s, m := textSlice(p, data, len(values))
	m.Tables = tablesRange(p)
	return s, m
}

// TestLookupsAreChecked damages, moves and shortens the tables range, with and without the mark that the tables were
// verified.
func TestLookupsAreChecked(t *testing.T) {
	e := engine.New(engine.Options{})
	for name, keys := range map[string][]int64{"array": {7, 5, 9}, "hashed": {7, 5, 1 << 40}} {
		s, m := lookupSlice(t, keys, vocabularyop.Op{Base: 10}, []uint32{5, 7, 7})
		execute := func() *program.Result {
			state := e.Execute(context.Background(), m, wire.MarshalSlice(&s))
			r, err := wire.UnmarshalResult(m.Result)
			require.NoError(t, err)
			require.Equal(t, r.State, state)
			return r
		}
		require.Equal(t, program.Done, execute().State, name)
		require.Equal(t, []byte{11, 0, 0, 0, 0, 0, 0, 0, 10}, m.Output[s.Layout.Values:][:9], name)

		m.Tables[len(m.Tables)-1] ^= 1
		r := execute()
		require.Equal(t, program.BadTable, r.State, name)
		assert.Contains(t, r.Message, "lookup table 0 is damaged", name)
		for i := range m.Tables { // whatever lies there, a lookup ends
			m.Tables[i] = 0xff
		}
		s.TablesChecked = true
		assert.Contains(t, []program.State{program.Done, program.BadData}, execute().State, name)
		s.TablesChecked = false

		m.Tables = m.Tables[:len(m.Tables)-1]
		assert.Equal(t, program.BadSlice, execute().State, "%s: the range ends in the table", name)
		m.Tables = nil
		assert.Equal(t, program.BadSlice, execute().State, "%s: no range", name)
		moved := alignedBytes(len(tablesRangeOf(keys)) + 8)[4:]
		m.Tables = moved[:copy(moved, tablesRangeOf(keys))]
		s.TablesChecked = true
		assert.Equal(t, program.BadSlice, execute().State, "%s: not aligned", name)
	}
}

// tablesRangeOf returns the bytes of a table of keys.
func tablesRangeOf(keys []int64) []byte {
	_, b, err := vocabulary.Store(keys)
	if err != nil {
		panic(err) // the keys differ
	}
	return b
}

// TestAnAbsentKeyIsNamed checks the row and the key of a slice that fails for a key which the table lacks, in text, in
// lists and in scalars of Parquet.
func TestAnAbsentKeyIsNamed(t *testing.T) {
	e := engine.New(engine.Options{BlockRows: 2})
	s, m := lookupSlice(t, []int64{1, 2}, vocabularyop.Op{}, []uint32{1, 2, 1, 2, 2, 9, 1})
	require.Equal(t, program.BadData, e.Execute(context.Background(), m, wire.MarshalSlice(&s)))
	r, err := wire.UnmarshalResult(m.Result)
	require.NoError(t, err)
	assert.Equal(t, program.AbsentKey{Given: true, Row: 5, Value: 9}, r.AbsentKey)
	assert.Contains(t, r.Message, "the lookup table lacks the key 9")

	cols := []testColumn{
		{name: "a", physical: 2, optional: true, rows: []any{int64(1), nil, int64(2), int64(1)}},
		{name: "b", physical: 2, list: true, optional: true, elements: true, rows: []any{
			[]any{int64(1), int64(1)}, nil, []any{}, []any{int64(2), int64(-3)}}},
	}
	data := writeFile(t, cols, layout{groupRows: 9, batchRows: 9, pageBytes: 1 << 20, version: 1})
	for _, c := range []struct {
		keys [2][]int64
		want program.AbsentKey
	}{
		{[2][]int64{{1}, {1, 2, -3}}, program.AbsentKey{Given: true, Row: 2, Value: 2}},
		{[2][]int64{{1, 2}, {1, 2}}, program.AbsentKey{Given: true, Row: 3, Key: 1, Value: -3}},
	} {
		p := &program.Program{Source: program.Parquet, Output: program.Output{Keys: 2}}
		for i := range cols {
			p.Columns = append(p.Columns, program.Column{Name: cols[i].name, Kind: program.Int64, List: cols[i].list,
				Sinks: []program.Sink{{To: program.ToSparse, Index: uint32(i),
					Ops: []program.Op{vocabularyop.Op{Table: addLookupTable(t, p, c.keys[i])}}}}})
		}
		require.NoError(t, p.Validate())
		h := newHost(e, p, readFooter(t, data), data, 1)
		_, err := h.miniBatch(0, 4)
		require.ErrorContains(t, err, "lacks the key")
		assert.Equal(t, c.want, h.absent)
	}
}
