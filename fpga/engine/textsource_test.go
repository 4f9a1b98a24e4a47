package engine_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace/millrace/fpga/engine"
	"github.com/millrace/millrace/fpga/engine/reference"
	"github.com/millrace/millrace/fpga/operator/bucketize"
	"github.com/millrace/millrace/fpga/operator/clamp"
	"github.com/millrace/millrace/fpga/operator/convert"
	"github.com/millrace/millrace/fpga/operator/fillnull"
	"github.com/millrace/millrace/fpga/operator/log"
	"github.com/millrace/millrace/fpga/operator/sigridhash"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/program/wire"
)

// randomText makes n lines in Criteo's form. If malformed is set, one in thirty lines is malformed.
func randomText(rng *rand.Rand, n int, label, malformed bool) []byte {
	var b bytes.Buffer
	for range n {
		if label {
			fmt.Fprintf(&b, "%d\t", rng.IntN(2))
		}
		for f := range 39 {
			if f > 0 {
				b.WriteByte('\t')
			}
			switch {
			case malformed && rng.IntN(1200) == 0:
				b.WriteString([]string{"x", "1\t", "99999999999", " 1"}[rng.IntN(4)])
			case rng.IntN(5) == 0:
			case f < 13:
				fmt.Fprintf(&b, "%d", int32(rng.Uint32())>>rng.IntN(32))
			default:
				fmt.Fprintf(&b, "%08x", rng.Uint32())
			}
		}
		if malformed && rng.IntN(40) == 0 {
			b.WriteByte('\n')
		}
		b.WriteByte('\n')
	}
	return b.Bytes()
}

func randomBinary(rng *rand.Rand, n int) []byte {
	b := make([]byte, 160*n)
	for i := 0; i < len(b); i += 4 {
		binary.LittleEndian.PutUint32(b[i:], uint32(int32(rng.Uint32())>>rng.IntN(32)))
	}
	return b
}

// criteoProgram returns a program over Criteo's fields: label, some dense, sparse and generated features.
func criteoProgram(rng *rand.Rand, source program.Source, label bool) *program.Program {
	p := &program.Program{Source: source, Label: label && source == program.CriteoTSV}
	p.Output = program.Output{Fixed: rng.IntN(2) == 0, IDs: program.IDs(rng.IntN(2))}
	field := func(f int) program.Column {
		return program.Column{Name: fmt.Sprintf("field_%d", f), Field: uint16(f), Kind: program.Int64}
	}
	for f := 14; f < 40; f++ {
		if rng.IntN(3) == 0 {
			continue
		}
		ops := []program.Op{sigridhash.Op{Max: 1000 + rng.Int64N(1<<30)}}
		if p.Output.Fixed || rng.IntN(2) == 0 {
			ops = append([]program.Op{fillnull.Op{Int: int64(rng.IntN(2))}}, ops...)
		}
		c := field(f)
		c.Sinks = []program.Sink{{To: program.ToSparse, Index: p.Output.Keys, Ops: ops}}
		p.Columns = append(p.Columns, c)
		p.Output.Keys++
	}
	var rest []program.Column
	for f := 1; f < 14; f++ {
		c := field(f)
		c.Sinks = []program.Sink{{To: program.ToDense, Index: p.Output.Dense, Ops: []program.Op{
			fillnull.Op{}, clamp.Op{IntHi: 1 << 40}, convert.Op{To: program.Float32}}}}
		if f == 3 { // the reference takes long
			c.Sinks[0].Ops = append(c.Sinks[0].Ops, log.Op{Add: 1})
		}
		p.Output.Dense++
		if rng.IntN(2) == 0 {
			rest = append(rest, c)
			continue
		}
		c.Sinks = append(c.Sinks, program.Sink{To: program.ToSparse, Index: p.Output.Keys, Ops: []program.Op{
			fillnull.Op{Int: 3}, &bucketize.Op{BordersInt: []int64{0, 1, 10, 100, 1000}}}})
		p.Output.Keys++
		p.Columns = append(p.Columns, c)
	}
	if source == program.CriteoBinary || label {
		p.Output.Label = true
		c := field(0)
		c.Sinks = []program.Sink{{To: program.ToLabel,
			Ops: []program.Op{fillnull.Op{}, convert.Op{To: program.Float32}}}}
		rest = append(rest, c)
	}
	p.Columns = append(p.Columns, rest...)
	p.Output.DenseType = program.DenseType(rng.IntN(2))
	return p
}

func TestTextIsReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		lines := rapid.IntRange(1, 80).Draw(t, "lines")
		source := rapid.SampledFrom([]program.Source{program.CriteoTSV, program.CriteoBinary}).Draw(t, "source")
		label := rapid.Bool().Draw(t, "label")
		batch := rapid.IntRange(1, 50).Draw(t, "batch")
		rng := rand.New(rand.NewPCG(seed, 4))
		p := criteoProgram(rng, source, label)
		data := randomBinary(rng, lines)
		if source == program.CriteoTSV {
			p.Malformed = program.Malformed(rapid.IntRange(0, 2).Draw(t, "policy"))
			data = randomText(rng, lines, label, p.Malformed != program.MalformedFail)
		}
		require.NoError(t, p.Validate())
		ref, err := reference.NewText(p, data)
		require.NoError(t, err)
		h := newHost(engine.New(engine.Options{BlockRows: rapid.SampledFrom([]int{3, 0}).Draw(t, "block")}), p, nil,
			data, seed)
		switch rapid.IntRange(0, 3).Draw(t, "host") {
		case 0:
			h.wholeChunks = true
		case 1:
			h.smallestWindows = true
		case 2:
			h.growByByte = lines < 8
		}
		for first := 0; first < int(ref.Rows()); first += batch {
			n := min(batch, int(ref.Rows())-first)
			want, err := ref.MiniBatch(int64(first), n)
			require.NoError(t, err)
			got, err := h.miniBatch(int64(first), n)
			require.NoError(t, err)
			requireSame(t, want, got)
		}
	})
}

func TestTextRefused(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	p := criteoProgram(rng, program.CriteoTSV, true)
	data := randomText(rng, 20, true, false)
	run := func(data []byte, first int64, rows int) error {
		h := newHost(engine.New(engine.Options{}), p, nil, data, 1)
		h.wholeChunks = true
		_, err := h.miniBatch(first, rows)
		return err
	}
	require.NoError(t, run(data, 3, 17))
	var bad *sliceFailure

	require.ErrorAs(t, run(data, 3, 18), &bad)
	require.Equal(t, program.BadData, bad.state)
	require.Contains(t, bad.message, "1 rows are wanted")

	lines := bytes.SplitAfter(data, []byte("\n"))
	lines[7] = []byte("0\tnope\n")
	require.ErrorAs(t, run(bytes.Join(lines, nil), 0, 20), &bad)
	require.Equal(t, program.BadData, bad.state)
	require.Contains(t, bad.message, "line 8")

	p.Malformed = program.MalformedDrop
	h := newHost(engine.New(engine.Options{}), p, nil, bytes.Join(lines, nil), 1)
	_, err := h.miniBatch(0, 19)
	require.NoError(t, err)
	require.EqualValues(t, 1, h.stats.Dropped)
}

// TestDroppedLinesAreCountedOnce cuts text with malformed lines at its begin, inside and at its end into mini-batches,
// some of which skip rows that others read: together they count each dropped line once, as the reference does.
func TestDroppedLinesAreCountedOnce(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	p := criteoProgram(rng, program.CriteoTSV, true)
	p.Malformed = program.MalformedDrop
	lines := bytes.SplitAfter(randomText(rng, 40, true, false), []byte("\n"))
	for _, at := range []int{0, 1, 12, 13, 20, 38, 39} {
		lines[at] = []byte("0\tnope\n")
	}
	data := bytes.Join(lines, nil)
	ref, err := reference.NewText(p, data)
	require.NoError(t, err)
	require.EqualValues(t, 33, ref.Rows())
	require.EqualValues(t, 7, ref.Dropped(0, 33))
	for _, batch := range []int{1, 5, 16, 33} {
		dropped := int64(0)
		for first := 0; first < 33; first += batch {
			rows := min(batch, 33-first)
			h := newHost(engine.New(engine.Options{}), p, nil, data, 1)
			_, err := h.miniBatch(int64(first), rows)
			require.NoError(t, err)
			require.Equal(t, ref.Dropped(int64(first), rows), int64(h.stats.Dropped), "rows %d+%d", first, rows)
			dropped += int64(h.stats.Dropped)
		}
		require.EqualValues(t, 7, dropped, batch)
	}
}

// textSlice returns a slice of the first rows of a text in memory, and the memory.
func textSlice(p *program.Program, data []byte, rows int) (program.Slice, engine.Memory) {
	code := wire.Marshal(p)
	s := program.Slice{Digest: sha256.Sum256(code), Program: uint64(len(code)), Rows: uint32(rows),
		Layout: p.Output.Layout(uint32(rows))}
	s.ValueCap = uint64(rows) * uint64(p.Output.Keys)
	m := engine.Memory{Program: code, Input: data, Scratch: make([]byte, 40*9*(rows+64))}
	m.Output = make([]byte, s.Layout.Values+s.ValueCap*p.Output.IDs.Bytes())
	m.Result = make([]byte, wire.ResultSize(1))
	s.Tasks = []program.Task{{Count: uint32(rows), Window: program.Span{Len: uint64(len(data))},
		ChunkLen: uint64(len(data)),
		Scratch:  program.Span{Len: uint64(len(m.Scratch))}}}
	return s, m
}

func TestTextAllocatesNothing(t *testing.T) {
	for _, source := range []program.Source{program.CriteoTSV, program.CriteoBinary} {
		rng := rand.New(rand.NewPCG(2, uint64(source)))
		p := criteoProgram(rng, source, true)
		require.NoError(t, p.Validate())
		data := randomBinary(rng, 500)
		if source == program.CriteoTSV {
			data = randomText(rng, 500, true, false)
		}
		s, m := textSlice(p, data, 500)
		e, args := engine.New(engine.Options{BlockRows: 128}), wire.AppendSlice(nil, &s)
		run := func() {
			if state := e.Execute(t.Context(), m, args); state != program.Done {
				t.Fatal(state)
			}
		}
		run()
		require.Zero(t, testing.AllocsPerRun(20, run), "%v", source)
	}
}

// TestTextThatLacksInputCountsForNothing checks that rows do not count which a slice with fixed lengths has written
// before it lacked input. The result says so, and with the whole input the output is the same as if the input had
// been there from the beginning.
func TestTextThatLacksInputCountsForNothing(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	p := criteoProgram(rng, program.CriteoTSV, true)
	p.Output.Fixed = true
	for i := range p.Columns {
		for j := range p.Columns[i].Sinks {
			if ops := p.Columns[i].Sinks[j].Ops; ops[0] != program.Op(fillnull.Op{}) {
				p.Columns[i].Sinks[j].Ops = append([]program.Op{fillnull.Op{}}, ops...)
			}
		}
	}
	require.NoError(t, p.Validate())
	const rows = 300
	data := randomText(rng, rows, true, false)
	e := engine.New(engine.Options{BlockRows: 64})
	s, whole := textSlice(p, data, rows)
	require.Equal(t, program.Done, e.Execute(t.Context(), whole, wire.AppendSlice(nil, &s)))

	_, m := textSlice(p, data, rows)
	lines := bytes.SplitAfter(data, []byte("\n"))
	for _, have := range []int{0, 1, 63, 64, 65, 200, 299} {
		s.Tasks[0].Window.Len = uint64(len(bytes.Join(lines[:have], nil)))
		require.Equal(t, program.MoreInput, e.Execute(t.Context(), m, wire.AppendSlice(nil, &s)))
		r, err := wire.UnmarshalResult(m.Result)
		require.NoError(t, err)
		require.EqualValues(t, have, r.Tasks[0].RowsInWindow)
		require.Zero(t, r.Tasks[0].Rows)
		require.Zero(t, r.Tasks[0].Values)
		require.Zero(t, r.Values)
		require.Zero(t, r.BytesOut)
		require.Equal(t, program.Cursor{}, r.Tasks[0].Cursor)
		require.Greater(t, r.Tasks[0].Need, s.Tasks[0].Window.Len)
	}
	s.Tasks[0].Window.Len = uint64(len(data))
	require.Equal(t, program.Done, e.Execute(t.Context(), m, wire.AppendSlice(nil, &s)))
	require.True(t, bytes.Equal(whole.Output, m.Output))

	// Scratch is for a block of rows, not for all.
	s.Tasks[0].Scratch.Len = 40*9*(64+8) - 1
	require.Equal(t, program.Done, e.Execute(t.Context(), m, wire.AppendSlice(nil, &s)), "not all 40 fields are read")
	s.Tasks[0].Scratch.Len = 40
	require.Equal(t, program.MoreScratch, e.Execute(t.Context(), m, wire.AppendSlice(nil, &s)))
}
