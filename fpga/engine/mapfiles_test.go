package engine_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"

	pq "github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/operator/listslice"
	"github.com/millrace/millrace/fpga/operator/ngram"
	"github.com/millrace/millrace/fpga/operator/positivemodulus"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
)

// mapColumn is a map of a generated file.
type mapColumn struct {
	name     string
	key      format.Type // Int32, Int64 or ByteArray
	value    testColumn  // of a value, or of an element of its list; its optional shows whether it may be null
	list     bool
	scored   bool
	score    testColumn
	optional bool // the map
	nullable bool // lists
	rows     [][]mapEntry
	null     []bool             // rows that are null
	parted   map[int]*mapColumn // leaves taken from another map, which no correct writer does
}

// mapEntry is one entry of a map's row.
type mapEntry struct {
	key    int64
	value  any // nil, a number, bytes, or []any of these
	scores []any
}

// parts returns the number of the map's leaves.
func (m *mapColumn) parts() int {
	if m.scored {
		return 3
	}
	return 2
}

func (m *mapColumn) node() pq.Node {
	key := testColumn{physical: m.key, encoding: m.value.encoding, codec: m.value.codec}
	value := m.value.node()
	switch {
	case m.scored:
		value = pq.Map(value, m.score.node())
	case m.list:
		value = pq.List(value)
	}
	if m.list && m.nullable {
		value = pq.Optional(value)
	}
	n := pq.Map(key.node(), value)
	if m.optional {
		n = pq.Optional(n)
	}
	return n
}

// levels appends the values of a row's leaf with their levels; index is that of the map's first.
func (m *mapColumn) levels(row pq.Row, r, part, index int) pq.Row {
	base := 0
	if m.optional {
		base = 1
	}
	index += part
	if m.null[r] {
		return append(row, pq.NullValue().Level(0, 0, index))
	}
	if len(m.rows[r]) == 0 {
		return append(row, pq.NullValue().Level(0, base, index))
	}
	leaf := &m.value
	if part == 2 {
		leaf = &m.score
	}
	for i, e := range m.rows[r] {
		rep, def := min(i, 1), base+1
		elements, _ := e.value.([]any)
		if part == 2 && e.value != nil {
			elements = e.scores
		}
		if m.list && m.nullable && part > 0 {
			def++
		}
		switch {
		case part == 0:
			v := pq.Int64Value(e.key)
			switch m.key {
			case format.Int32:
				v = pq.Int32Value(int32(e.key))
			case format.ByteArray:
				v = pq.ByteArrayValue([]byte(keyText(e.key)))
			}
			row = append(row, v.Level(rep, def, index))
		case !m.list:
			if leaf.optional && e.value != nil {
				def++
			}
			row = append(row, leaf.value(e.value).Level(rep, def, index))
		case e.value == nil:
			row = append(row, pq.NullValue().Level(rep, def-1, index))
		case len(elements) == 0:
			row = append(row, pq.NullValue().Level(rep, def, index))
		default:
			for j, v := range elements {
				d := def + 1
				if leaf.optional && v != nil {
					d++
				}
				if j > 0 {
					rep = 2
				}
				row = append(row, leaf.value(v).Level(rep, d, index))
			}
		}
	}
	return row
}

// keyText is the text that a map whose keys are text has for a key.
func keyText(key int64) string {
	if key == 8 {
		return "" // the least text
	}
	return fmt.Sprintf("key %d", key)
}

// keyKind returns the kind in which a program reads the map's keys.
func (m *mapColumn) keyKind() program.Kind {
	if m.key == format.ByteArray {
		return program.Bytes
	}
	return program.Int64
}

// pick returns the pick of a key of the map.
func (m *mapColumn) pick(key int64) program.Pick {
	if m.key == format.ByteArray {
		return program.Pick{Text: keyText(key)}
	}
	return program.Pick{Key: key}
}

// writeMaps makes a Parquet file of columns and, behind them, maps. Names must be in order.
func writeMaps(t require.TestingT, cols []testColumn, maps []mapColumn, l layout) []byte {
	group := pq.Group{}
	for i := range cols {
		group[cols[i].name] = cols[i].node()
	}
	for i := range maps {
		group[maps[i].name] = maps[i].node()
	}
	var buf bytes.Buffer
	w := pq.NewGenericWriter[any](&buf, pq.NewSchema("rows", group), pq.MaxRowsPerRowGroup(int64(l.groupRows)),
		pq.PageBufferSize(max(l.pageBytes, 1)), pq.DataPageVersion(l.version))
	n := len(maps[0].rows)
	for at := 0; at < n; at += max(1, l.batchRows) {
		var rows []pq.Row
		for r := at; r < min(at+max(1, l.batchRows), n); r++ {
			var row pq.Row
			for i := range cols {
				row = cols[i].levels(row, cols[i].rows[r], i)
			}
			index := len(cols)
			for i := range maps {
				for part := range maps[i].parts() {
					row = maps[i].levels(row, r, part, index)
				}
				index += maps[i].parts()
			}
			rows = append(rows, row)
		}
		_, err := w.WriteRows(rows)
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	return buf.Bytes()
}

// mapKeys are the keys of random maps, most of them near each other.
var mapKeys = []int64{1, 2, 3, 5, 8, 13, -7, 1 << 30, -1 << 31}

// randomMaps makes maps of n rows.
func randomMaps(rng *rand.Rand, count, n int) []mapColumn {
	maps := make([]mapColumn, count)
	types := []format.Type{format.Boolean, format.Int32, format.Int64, format.Float, format.Double, format.ByteArray,
		format.ByteArray, format.FixedLenByteArray, format.Int96}
	for i := range maps {
		m := &maps[i]
		leaf := func(kinds ...format.Type) testColumn {
			return testColumn{physical: kinds[rng.IntN(len(kinds))], optional: rng.IntN(2) == 0,
				encoding: []string{"", "dictionary"}[rng.IntN(2)],
				codec:    []string{"", "", "snappy", "zstd"}[rng.IntN(4)]}
		}
		*m = mapColumn{name: fmt.Sprintf("m%02d", i),
			key:  []format.Type{format.Int32, format.Int64, format.ByteArray}[rng.IntN(3)],
			list: rng.IntN(3) > 0, optional: rng.IntN(2) == 0, nullable: rng.IntN(2) == 0, value: leaf(types...)}
		if m.scored = m.list && rng.IntN(2) == 0; m.scored {
			m.value, m.score = leaf(types[1:]...), leaf(format.Float, format.Double, format.Int64)
			m.value.optional = false
		}
		m.value.text = m.value.physical == format.ByteArray && rng.IntN(2) == 0
		few, nulls, mean := rng.IntN(2) == 0, rng.IntN(3), 1+rng.IntN(5)
		value := func(c *testColumn) any {
			if c.optional && nulls > 0 && rng.IntN(9) < nulls {
				return nil
			}
			return c.randomValue(rng, few)
		}
		twice := rng.IntN(4) == 0 // keys may come twice
		for range n {
			var row []mapEntry
			for range rng.IntN(2 * mean) {
				e := mapEntry{key: mapKeys[rng.IntN(len(mapKeys))]}
				if !twice && slices.ContainsFunc(row, func(x mapEntry) bool { return x.key == e.key }) {
					continue
				}
				switch {
				case !m.list:
					e.value = value(&m.value)
				case !m.nullable || rng.IntN(6) > 0:
					list := make([]any, rng.IntN(2*mean))
					for k := range list {
						list[k] = value(&m.value)
						if m.scored {
							e.scores = append(e.scores, value(&m.score))
						}
					}
					e.value = list
				}
				row = append(row, e)
			}
			m.null = append(m.null, m.optional && rng.IntN(5) == 0)
			m.rows = append(m.rows, row)
		}
	}
	return maps
}

// addMaps adds maps to a program, whose output may be fixed or not: maps that feed keys behind the columns that feed
// keys, and other maps behind all columns.
func addMaps(rng *rand.Rand, p *program.Program, maps []mapColumn, f *format.File, risky bool) {
	keyed := 0
	for keyed < len(p.Columns) && slices.ContainsFunc(p.Columns[keyed].Sinks,
		func(s program.Sink) bool { return s.To == program.ToSparse }) {
		keyed++
	}
	rest := slices.Clone(p.Columns[keyed:])
	p.Columns = p.Columns[:keyed]
	for i := range maps {
		m := &maps[i]
		if m.list && p.Output.Fixed {
			continue
		}
		for range 1 + rng.IntN(2) { // features of one map need not be made in one walk
			columns, keys := m.columns(rng, p, f, risky)
			if keys {
				p.Columns = append(p.Columns, columns...)
			} else {
				rest = append(rest, columns...)
			}
		}
	}
	p.Columns = append(p.Columns, rest...)
	if p.Output.Dense > 0 {
		p.Output.DenseType = program.DenseType(rng.IntN(2))
	}
}

// columns makes the columns of some features of the map.
func (m *mapColumn) columns(rng *rand.Rand, p *program.Program, f *format.File, risky bool) (columns []program.Column,
	keys bool) {
	in, _ := f.Map(m.name)
	column := func(leaf int, part program.Part, kind program.Kind) program.Column {
		return program.Column{Name: f.Leaves[leaf].Path, Kind: kind, Part: part}
	}
	shape := m.value
	shape.list = m.list
	values := column(in.Values, program.MapValues, m.value.kind())
	values.List = m.list
	scored := false
	for range 1 + rng.IntN(5) {
		pick := m.pick(mapKeys[rng.IntN(len(mapKeys))])
		if rng.IntN(6) == 0 {
			pick = m.pick(4) // which no row has
		}
		s := program.Sink{To: program.ToSparse, Index: p.Output.Keys}
		if !m.list && rng.IntN(2) == 0 {
			s = program.Sink{To: program.ToDense, Index: p.Output.Dense,
				Ops: randomChain(rng, &shape, program.Float32, true, risky)}
			p.Output.Dense++
		} else {
			s.Ops = randomChain(rng, &shape, program.Int64, p.Output.Fixed, risky)
			if p.Output.IDs == program.IDs32 {
				s.Ops = append(s.Ops, positivemodulus.Op{M: 1 << 31})
			}
			p.Output.Keys++
			keys = true
			windows := slices.ContainsFunc(s.Ops, func(op program.Op) bool {
				return op.Unit() == ngram.Unit || op.Unit() == listslice.Unit
			})
			pick.Scored = m.scored && rng.IntN(3) > 0 && !windows // what windows and parts hold has no scores
			scored = scored || pick.Scored
		}
		values.Sinks, values.Picks = append(values.Sinks, s), append(values.Picks, pick)
	}
	columns = []program.Column{column(in.Keys, program.MapKeys, m.keyKind()), values}
	if scored || m.scored && p.Output.Weights && rng.IntN(2) == 0 {
		scores := column(in.Scores, program.MapScores, m.score.kind())
		scores.List = true
		columns = append(columns, scores)
		p.Output.Weights = true
	}
	return columns, keys
}

// leaf returns a leaf of the map as a column, for pages written by hand.
func (m *mapColumn) leaf(part int) testColumn {
	base := 0
	if m.optional {
		base = 1
	}
	if part == 0 {
		return testColumn{name: m.name + ".key_value.key", physical: m.key, list: true,
			nested: &levels{base + 1, 1, base + 1, 0}}
	}
	c, name := m.value, m.name+".key_value.value"
	if part == 2 {
		c = m.score
	}
	l := &levels{base + 1, 1, base + 1, 0}
	if m.list {
		l = &levels{base + 2, 2, base + 2, base + 1}
		if m.nullable {
			l.def, l.element = l.def+1, l.element+1
		}
	}
	if c.optional {
		l.def++
	}
	switch {
	case m.scored && part == 1:
		name += ".key_value.key"
	case m.scored:
		name += ".key_value.value"
	case m.list:
		name += ".list.element"
	}
	c.name, c.list, c.nested = name, true, l
	return c
}

// entries returns the levels and values of rows of a leaf.
func (m *mapColumn) entries(part, from, to int) []levelEntry {
	if other := m.parted[part]; other != nil {
		return other.entries(part, from, to)
	}
	var out []levelEntry
	for r := from; r < to; r++ {
		for _, v := range m.levels(nil, r, part, 0) {
			e := levelEntry{rep: v.RepetitionLevel(), def: v.DefinitionLevel()}
			switch {
			case v.IsNull():
			case v.Kind() == pq.Int32:
				e.v = int64(v.Int32())
			case v.Kind() == pq.Int64:
				e.v = v.Int64()
			case v.Kind() == pq.Float:
				e.v = v.Float()
			case v.Kind() == pq.ByteArray, v.Kind() == pq.FixedLenByteArray:
				e.v = v.ByteArray()
			case v.Kind() == pq.Int96:
				e.v = int96Bytes(v.Int96())
			default:
				e.v = v.Double()
			}
			out = append(out, e)
		}
	}
	return out
}

// int96Bytes returns the bytes of a value of 96 bits.
func int96Bytes(v deprecated.Int96) (b []byte) {
	for _, word := range v {
		b = binary.LittleEndian.AppendUint32(b, word)
	}
	return b
}

// assembleMapFile makes a file of hand-written chunks of maps.
func assembleMapFile(rng *rand.Rand, maps []mapColumn, groupRows, mean int) ([]byte, *format.File) {
	f := &format.File{}
	data := []byte("PAR1")
	for i := range maps {
		m := &maps[i]
		first := len(f.Leaves)
		in := format.Map{Name: m.name, Keys: first, Values: first + 1, Scores: -1, List: m.list}
		if m.scored {
			in.Scores = first + 2
		}
		f.Maps = append(f.Maps, in)
		for part := range m.parts() {
			c := m.leaf(part)
			f.Leaves = append(f.Leaves, format.Leaf{Path: c.name, Name: c.name, Index: first + part,
				Physical: c.physical, TypeLength: c.typeLength(), List: true, Part: format.Part(part + 1),
				MaxDef: uint8(c.nested.def), MaxRep: uint8(c.nested.rep), RepDef: uint8(c.nested.element),
				EntryDef: uint8(c.nested.entry)})
		}
	}
	rows := len(maps[0].rows)
	for at := 0; at < rows; at += groupRows {
		end := min(at+groupRows, rows)
		g := format.RowGroup{Rows: int64(end - at)}
		for i := range maps {
			m := &maps[i]
			for part := range m.parts() {
				c := m.leaf(part)
				e := m.entries(part, at, end)
				b := c.cutPages(rng, e, mean)
				ch := format.Chunk{Offset: int64(len(data)), Compressed: int64(len(b)), NumValues: int64(len(e)),
					DataOffset: int64(len(data))}
				if c.codec != "" {
					ch.Codec = format.Snappy
				}
				g.Columns = append(g.Columns, ch)
				data = append(data, b...)
			}
		}
		f.RowGroups = append(f.RowGroups, g)
		f.Rows += g.Rows
	}
	f.Size = int64(len(data))
	return data, f
}

// plainPages changes the map so that its pages can be written by hand: PLAIN, in a codec, without checksums.
func (m *mapColumn) plainPages(codec string) {
	for _, c := range []*testColumn{&m.value, &m.score} {
		c.encoding, c.codec, c.noCRC = "", codec, true
		if c.physical == format.Boolean {
			c.physical = format.Int64
		}
	}
}
