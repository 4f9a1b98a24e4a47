package engine_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/engine"
	"github.com/millrace/millrace/fpga/operator/split"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/program/wire"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
)

// stage is a valid slice with its memory, which the fuzzer damages.
type stage struct {
	mem  engine.Memory
	args []byte
}

// stages make slices over hand-written pages without checksums, over a library's pages, and over text.
func stages(t testing.TB) []stage {
	var out []stage
	for i, codec := range []string{"", "snappy"} {
		rng := rand.New(rand.NewPCG(uint64(i), 5))
		cols := randomColumns(rng, 6, 40)
		for j := range cols {
			c := &cols[j]
			c.unsigned, c.codec, c.noCRC = 0, codec, true
			if c.physical == 0 {
				c.physical = 2
			}
		}
		p := randomProgram(rng, cols, false, true)
		data, f := assembleFile(rng, cols, 40, 12)
		h := newHost(engine.New(engine.Options{}), p, f, data, 7)
		h.allocateRooms(4096)
		for j := range h.rooms {
			h.rooms[j] = columnRooms{0, 4096}
		}
		h.wholeChunks, h.firstCapacity = true, 2000
		out = append(out, h.stage(t, 40))
	}
	absent, _ := benchmarkProgram(t, 40, 1, 0, 0, 0, false, "", "")
	lacking := newHost(engine.New(engine.Options{}), absentProgram(), readFooter(t, absent), absent, 9)
	lacking.wholeChunks, lacking.firstCapacity = true, 200
	out = append(out, lacking.stage(t, 40))
	for i, codec := range []string{"", "snappy"} {
		rng := rand.New(rand.NewPCG(uint64(i), 6))
		maps := randomMaps(rng, 3, 30)
		for j := range maps {
			maps[j].plainPages(codec)
		}
		maps[0].list, maps[0].scored = false, false
		if i == 1 {
			maps[0].value.physical, maps[0].value.text = format.ByteArray, true
		}
		for r := range maps[0].rows {
			for e := range maps[0].rows[r] {
				maps[0].rows[r][e].value = maps[0].value.randomValue(rng, true)
			}
		}
		data, f := assembleMapFile(rng, maps, 30, 25)
		p := &program.Program{Source: program.Parquet}
		addMaps(rng, p, maps, f, false)
		h := newHost(engine.New(engine.Options{}), p, f, data, 8)
		h.allocateRooms(4096)
		for j := range h.rooms {
			h.rooms[j] = columnRooms{0, 4096}
		}
		h.wholeChunks, h.firstCapacity = true, 4000
		out = append(out, h.stage(t, 30))
	}
	texts := []testColumn{{name: "text", physical: format.ByteArray, text: true}}
	for r := range 40 {
		texts[0].rows = append(texts[0].rows, bytes.Repeat([]byte("a|é|"), r%5))
	}
	parts := writeFile(t, texts, layout{groupRows: 40, batchRows: 40, pageBytes: 1 << 20, version: 1})
	parted := newHost(engine.New(engine.Options{}), partsProgram(split.Op{Separator: "|"}), readFooter(t, parts), parts, 9)
	parted.wholeChunks, parted.firstCapacity = true, 400
	out = append(out, parted.stage(t, 40))
	b := smallRunner(t, "snappy", "dictionary")
	const room = 4096
	b.mem.Dict, b.mem.Scratch = b.mem.Dict[:4*room], b.mem.Scratch[:4*room]
	for i := range b.slice.Tasks {
		b.slice.Tasks[i].Dict = program.Span{Off: room * uint64(i), Len: room}
		b.slice.Tasks[i].Scratch = b.slice.Tasks[i].Dict
	}
	state, r := b.execute()
	require.Equal(t, program.Done, state, r.Message)
	out = append(out, stage{b.mem, wire.MarshalSlice(&b.slice)})
	rng := rand.New(rand.NewPCG(3, 5))
	p := criteoProgram(rng, program.CriteoTSV, true)
	addLookups(t, rng, p, false)
	h := newHost(engine.New(engine.Options{}), p, nil, randomText(rng, 20, true, false), 1)
	h.scratch, h.rooms[0].scratch, h.wholeChunks, h.firstCapacity = make([]byte, 20*40*9), 20*40*9, true, 2000
	return append(out, h.stage(t, 20))
}

// stage returns the first slice of a mini-batch of all rows.
func (h *host) stage(t testing.TB, rows int) stage {
	m := &batch{host: h, rows: uint32(rows)}
	m.growOutput(h.firstCapacity)
	s := program.Slice{Digest: h.digest, Program: uint64(len(h.code)), Rows: m.rows, Layout: m.place,
		ValueCap: m.capacity}
	var input []byte
	for _, j := range h.planTasks(0, rows) {
		s.Tasks = append(s.Tasks, m.buildTask(j, &input))
	}
	st := stage{engine.Memory{Program: h.code, Input: input, Dict: h.dict, Scratch: h.scratch, Output: m.output,
		Tables: h.tables, Result: make([]byte, wire.ResultSize(len(s.Tasks)))}, wire.MarshalSlice(&s)}
	state := h.engine.Execute(context.Background(), st.mem, st.args)
	r, err := wire.UnmarshalResult(st.mem.Result)
	require.NoError(t, err)
	require.Equal(t, program.Done, state, "%v", r)
	return st
}

// FuzzExecute damages slices, pages, dictionaries, unpacked pages, programs and lookup tables. Execute never panics,
// never writes to the input or the program, and always leaves a result of the state that it returns.
func FuzzExecute(f *testing.F) {
	all := stages(f)
	e := engine.New(engine.Options{MaxList: 1 << 16})
	edit := func(target byte, at uint32, v byte) []byte {
		return append(binary.LittleEndian.AppendUint32([]byte{target}, at), v)
	}
	for i := range all {
		f.Add(uint8(i), []byte{})
		for field := range uint32(32) {
			f.Add(uint8(i), edit(0, 128+4*field, 0xff))
			f.Add(uint8(i), edit(0, 16*field/4, 1))
		}
		for at := range uint32(40) {
			f.Add(uint8(i), append(edit(1, 7*at, 0x81), edit(1, 11*at+3, 0)...))
		}
		f.Add(uint8(i), edit(2, 8, 0xff))
		f.Add(uint8(i), append(edit(3, 70, 9), edit(0, 128+64+28, 3)...))
		for _, low := range []byte{0, 8, 0x40, 0xf8} { // rows to skip, and a place of the value behind them
			f.Add(uint8(i), append(edit(0, 128+64+8, 3), edit(0, 128+64+28, low)...))
		}
		f.Add(uint8(i), append(edit(0, 128+64+8, 3), edit(0, 128+64+31, 0xff)...))
		f.Add(uint8(i), edit(4, 90, 2))
		f.Add(uint8(i), edit(5, 8, 0xff))
		f.Add(uint8(i), append(edit(5, 8, 0xff), edit(0, 60, 1)...)) // a table that is said to be verified
	}
	f.Fuzz(func(t *testing.T, which uint8, edits []byte) {
		s := all[int(which)%len(all)]
		args := bytes.Clone(s.args)
		// Ranges end where their bytes do, so that a write behind a range panics.
		mem := engine.Memory{Program: bytes.Clone(s.mem.Program), Input: bytes.Clone(s.mem.Input),
			Dict:    bytes.Clone(s.mem.Dict),
			Scratch: bytes.Clone(s.mem.Scratch), Output: bytes.Clone(s.mem.Output), Result: make([]byte, 4096)}
		mem.Tables = alignedBytes(len(s.mem.Tables))
		copy(mem.Tables, s.mem.Tables)
		targets := [][]byte{args, mem.Input, mem.Dict, mem.Scratch, mem.Program, mem.Tables}
		recode := false
		for ; len(edits) >= 6; edits = edits[6:] {
			target := targets[edits[0]%6]
			if len(target) > 0 {
				target[binary.LittleEndian.Uint32(edits[1:])%uint32(len(target))] = edits[5]
				recode = recode || edits[0]%6 == 4
			}
		}
		if recode && len(args) >= 48 {
			digest := sha256.Sum256(mem.Program)
			copy(args[16:], digest[:])
		}
		input, code := bytes.Clone(mem.Input), bytes.Clone(mem.Program)
		state := e.Execute(context.Background(), mem, args)
		require.Equal(t, input, mem.Input)
		require.Equal(t, code, mem.Program)
		r, err := wire.UnmarshalResult(mem.Result)
		if err != nil {
			require.Equal(t, program.BadSlice, state, "no room for the result")
			return
		}
		require.Equal(t, state, r.State)
		require.Equal(t, state >= program.BadSlice, r.Message != "")
	})
}
