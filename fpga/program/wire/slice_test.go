package wire_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/program/wire"
	"github.com/millrace/millrace/internal/goldenfile"
)

// someSlice sets every field to a value that occurs once.
func someSlice() *program.Slice {
	s := &program.Slice{
		Program: 0x1001, Rows: 8192,
		Layout: program.OutputLayout{Dense: 0x2000, Lengths: 0x3000, Label: 0x4000, Values: 0x5000},
		Values: 77, ValueCap: 1 << 33,
	}
	for i := range s.Digest {
		s.Digest[i] = byte(i + 0x80)
	}
	s.Tasks = []program.Task{
		{
			Column: 3, Row: 5, Count: 4096,
			Chunk: program.ChunkType{
				Physical: 1, Codec: 2, MaxDef: 3, MaxRep: 1, ElementDef: 4, Unsigned: true, BitWidth: 32, TypeLength: 16,
				Values: 1 << 40,
			},
			Window: program.Span{Off: 0x111, Len: 0x222}, WindowAt: 0x333, ChunkLen: 0x444,
			Cursor: program.Cursor{Page: 0x555, Skip: 0x666, Seen: 0x777, Unpacked: true, Dict: true, Ordinal: 9},
			Dict:   program.Span{Off: 0x888, Len: 0x999}, Scratch: program.Span{Off: 0xaaa, Len: 0xbbb},
		},
		{Column: 4, Count: 1, Cursor: program.Cursor{Dict: true}},
	}
	return s
}

func someResult() *program.Result {
	return &program.Result{
		State: program.BadData, Values: 1, Decode: 2, Transform: 3, BytesIn: 4, BytesOut: 5, Dropped: 6, Wait: 14, Move: 15,
		Tasks: []program.TaskResult{
			{State: program.Done, Rows: 7, Values: 8, Need: 9, RowsInWindow: 16, Page: 17,
				Cursor: program.Cursor{Page: 10, Skip: 11, Seen: 12, Unpacked: true, Checked: true, Ordinal: 13}},
			{State: program.BadData, Need: 1 << 50},
		},
		Message: "column int_0: page 3: checksum",
	}
}

// someSlice11 is a slice that only version 1.1 can express.
func someSlice11() *program.Slice {
	s := someSlice()
	s.Tasks[1].Cursor.Checked = true
	return s
}

// someSlice13 is a slice that only version 1.3 can express.
func someSlice13() *program.Slice {
	s := someSlice11()
	s.Tasks[0].Chunk.RowsUncounted, s.Tasks[1].Chunk.AlwaysCompressed = true, true
	return s
}

// someResult10 is the part of someResult that version 1.0 can express.
func someResult10() *program.Result {
	r := someResult()
	r.Wait, r.Move = 0, 0
	r.Tasks[0].RowsInWindow, r.Tasks[0].Page, r.Tasks[0].Cursor.Checked = 0, 0, false
	return r
}

func TestSliceGolden(t *testing.T) {
	goldenfile.Bytes(t, "testdata/slice.v1.hex", wire.MarshalSlice(someSlice()))
	goldenfile.Bytes(t, "testdata/slice.v1.1.hex", wire.MarshalSlice(someSlice11()))
	goldenfile.Bytes(t, "testdata/slice.v1.3.hex", wire.MarshalSlice(someSlice13()))
	s, err := wire.UnmarshalSlice(wire.MarshalSlice(someSlice11()))
	require.NoError(t, err)
	assert.Equal(t, someSlice11(), s)
	s, err = wire.UnmarshalSlice(wire.MarshalSlice(someSlice13()))
	require.NoError(t, err)
	assert.Equal(t, someSlice13(), s)
}

// TestSliceVersions checks that a slice has the least version that can express it, whichever task needs that
// version.
func TestSliceVersions(t *testing.T) {
	for want, change := range map[uint16]func(s *program.Slice){
		0: func(*program.Slice) {},
		1: func(s *program.Slice) { s.Tasks[1].Cursor.Checked = true },
		2: func(s *program.Slice) { s.Tasks[0].Chunk.EntryDef, s.Tasks[1].Cursor.Checked = 1, true },
		3: func(s *program.Slice) { s.Layout.Weights, s.Tasks[1].Chunk.AlwaysCompressed = 1, true },
		4: func(s *program.Slice) { s.Tasks[0].Chunk.Absent, s.Tasks[1].Chunk.AlwaysCompressed = true, true },
		5: func(s *program.Slice) { s.TablesChecked, s.Tasks[0].Chunk.Absent = true, true },
		6: func(s *program.Slice) { s.TablesChecked, s.Tasks[1].Cursor.ValueAt = true, 1 },
	} {
		s := someSlice()
		change(s)
		assert.Equal(t, want, le.Uint16(wire.MarshalSlice(s)[6:]))
	}
}

func TestResultGolden(t *testing.T) {
	goldenfile.Bytes(t, "testdata/result.v1.1.hex", wire.AppendResult(nil, someResult()))
}

// Slices and results that version 1.0 wrote can be read by every later version.
func TestResultOfVersion10(t *testing.T) {
	b := wire.AppendResult(nil, someResult10())
	le.PutUint16(b[6:], 0)
	goldenfile.Bytes(t, "testdata/result.v1.hex", b)
	r, err := wire.UnmarshalResult(b)
	require.NoError(t, err)
	assert.Equal(t, someResult10(), r)
}

func TestStamp(t *testing.T) {
	r := someResult()
	b := wire.AppendResult(nil, r)
	wire.Stamp(b, 1<<40, 5)
	got, err := wire.UnmarshalResult(b)
	require.NoError(t, err)
	r.Wait, r.Move = 1<<40, 5
	assert.Equal(t, r, got)

	none := bytes.Repeat([]byte{'x'}, wire.ResultHeader)
	wire.Stamp(none, 1, 2)
	wire.Stamp(b[:wire.ResultHeader-1], 1, 2)
	assert.Equal(t, bytes.Repeat([]byte{'x'}, wire.ResultHeader), none)
	assert.Equal(t, wire.AppendResult(nil, r), b)
}

func TestSliceRoundTrip(t *testing.T) {
	b := wire.MarshalSlice(someSlice())
	require.Len(t, b, wire.SliceHeader+2*wire.SliceTask)
	s, err := wire.UnmarshalSlice(b)
	require.NoError(t, err)
	assert.Equal(t, someSlice(), s)
	assert.Equal(t, b, wire.AppendSlice([]byte("before"), someSlice())[6:])

	empty, err := wire.UnmarshalSlice(wire.MarshalSlice(new(program.Slice)))
	require.NoError(t, err)
	assert.Empty(t, empty.Tasks)
}

func TestResultRoundTrip(t *testing.T) {
	b := wire.AppendResult(nil, someResult())
	require.LessOrEqual(t, len(b), wire.ResultSize(2))
	r, err := wire.UnmarshalResult(b)
	require.NoError(t, err)
	assert.Equal(t, someResult(), r)
	assert.Equal(t, b, wire.AppendResult([]byte("before"), someResult())[6:])

	r, err = wire.UnmarshalResult(append(b, "what lay there before"...))
	require.NoError(t, err, "a result may be read from a longer range")
	assert.Equal(t, someResult(), r)
}

func TestResultMessageIsCut(t *testing.T) {
	for name, c := range map[string]struct {
		message string
		want    int
	}{
		"below":               {strings.Repeat("x", program.MaxMessage-1), program.MaxMessage - 1},
		"at":                  {strings.Repeat("x", program.MaxMessage), program.MaxMessage},
		"above":               {strings.Repeat("x", program.MaxMessage+1), program.MaxMessage},
		"between characters":  {strings.Repeat("x", program.MaxMessage-1) + "éé", program.MaxMessage - 1},
		"not made of letters": {strings.Repeat("\x80", 2*program.MaxMessage), program.MaxMessage - 4},
	} {
		t.Run(name, func(t *testing.T) {
			b := wire.AppendResult(nil, (&program.Result{State: program.BadData, Message: c.message}))
			require.LessOrEqual(t, len(b), wire.ResultSize(0))
			r, err := wire.UnmarshalResult(b)
			require.NoError(t, err)
			assert.Equal(t, c.message[:c.want], r.Message)
		})
	}
}

func TestSliceAndResultReuseMemory(t *testing.T) {
	s, r := someSlice(), someResult()
	r.Message = ""
	sb, rb := wire.MarshalSlice(s), wire.AppendResult(nil, r)
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		sb = wire.AppendSlice(sb[:0], s)
		rb = wire.AppendResult(rb[:0], r)
		if wire.DecodeSlice(s, sb) != nil || wire.DecodeResult(r, rb) != nil {
			t.Fail()
		}
	}))
	assert.Equal(t, someSlice(), s)
}

// The earlier content of a buffer must not appear in the output.
func TestAppendOverOldBytes(t *testing.T) {
	old := bytes.Repeat([]byte{0xff}, 4096)
	assert.Equal(t, wire.MarshalSlice(someSlice()), wire.AppendSlice(old[:0], someSlice()))
	old = bytes.Repeat([]byte{0xff}, 4096)
	assert.Equal(t, wire.AppendResult(nil, someResult()), wire.AppendResult(old[:0], someResult()))
}

func TestSliceDamage(t *testing.T) {
	good := wire.MarshalSlice(someSlice())
	for n := range good {
		_, err := wire.UnmarshalSlice(good[:n:n])
		require.ErrorIs(t, err, wire.ErrCorrupt, "%d bytes", n)
	}
	_, err := wire.UnmarshalSlice(append(bytes.Clone(good), 0))
	require.ErrorIs(t, err, wire.ErrCorrupt)
	requireFlipsMatter(t, good, 6, 8, func(b []byte) (any, error) { return wire.UnmarshalSlice(b) }, someSlice())

	b := bytes.Clone(good)
	le.PutUint32(b[12:], 1<<31)
	_, err = wire.UnmarshalSlice(b)
	require.ErrorIs(t, err, wire.ErrCorrupt)
	b = bytes.Clone(good)
	b[4] = 2
	_, err = wire.UnmarshalSlice(b)
	require.ErrorIs(t, err, wire.ErrVersion)
}

func TestResultDamage(t *testing.T) {
	good := wire.AppendResult(nil, someResult())
	for n := range good {
		_, err := wire.UnmarshalResult(good[:n:n])
		require.ErrorIs(t, err, wire.ErrCorrupt, "%d bytes", n)
	}
	requireFlipsMatter(t, good, 6, 8, func(b []byte) (any, error) { return wire.UnmarshalResult(b) }, someResult())
	b := bytes.Clone(good)
	b[4] = 2
	_, err := wire.UnmarshalResult(b)
	require.ErrorIs(t, err, wire.ErrVersion)
}

// requireFlipsMatter flips every bit except those of the minor version, bytes [from, to). Each flip must be refused
// or change what is read.
func requireFlipsMatter(t *testing.T, good []byte, from, to int, read func([]byte) (any, error), same any) {
	t.Helper()
	b := bytes.Clone(good)
	for i := range 8 * len(b) {
		if i/8 >= from && i/8 < to {
			continue
		}
		b[i/8] ^= 1 << (i % 8)
		if got, err := read(b); err == nil {
			require.NotEqual(t, same, got, "bit %d is not read", i)
		}
		b[i/8] ^= 1 << (i % 8)
	}
}

func FuzzUnmarshalSlice(f *testing.F) {
	f.Add(wire.MarshalSlice(someSlice()))
	f.Add(wire.MarshalSlice(someSlice11()))
	f.Add(wire.MarshalSlice(someSlice14()))
	f.Add(wire.MarshalSlice(new(program.Slice)))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := wire.UnmarshalSlice(b)
		if err != nil {
			return
		}
		out := wire.MarshalSlice(s)
		out[6], out[7] = b[6], b[7] // the writer's minor version
		require.Equal(t, b, out)
	})
}

func FuzzUnmarshalResult(f *testing.F) {
	f.Add(wire.AppendResult(nil, someResult()))
	f.Add(wire.AppendResult(nil, new(program.Result)))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := wire.UnmarshalResult(b)
		if err != nil {
			return
		}
		out := wire.AppendResult(nil, r)
		out[6], out[7] = b[6], b[7] // the writer's minor version
		require.Equal(t, b[:len(out)], out)
	})
}

func BenchmarkSlice(b *testing.B) {
	s := someSlice()
	s.Tasks = make([]program.Task, 84)
	buf := wire.MarshalSlice(s)
	b.SetBytes(int64(len(buf)))
	for b.Loop() {
		buf = wire.AppendSlice(buf[:0], s)
		if err := wire.DecodeSlice(s, buf); err != nil {
			b.Fatal(err)
		}
	}
}

// TestValueAt checks the wire forms of a cursor that says where its value lies, up to the last place.
func TestValueAt(t *testing.T) {
	s := someSlice()
	s.TablesChecked, s.Tasks[1].Chunk.Absent, s.Tasks[0].Cursor.ValueAt = true, true, 0x1234567
	goldenfile.Bytes(t, "testdata/slice.v1.6.hex", wire.MarshalSlice(s))
	r := someResult()
	r.Tasks[0].Cursor.ValueAt = program.MaxValueAt
	goldenfile.Bytes(t, "testdata/result.v1.3.hex", wire.AppendResult(nil, r))
	assert.EqualValues(t, 6, le.Uint16(wire.MarshalSlice(s)[6:]))
	assert.EqualValues(t, 3, le.Uint16(wire.AppendResult(nil, r)[6:]))
	again, err := wire.UnmarshalSlice(wire.MarshalSlice(s))
	require.NoError(t, err)
	assert.Equal(t, s, again)
	got, err := wire.UnmarshalResult(wire.AppendResult(nil, r))
	require.NoError(t, err)
	assert.Equal(t, r, got)
}
