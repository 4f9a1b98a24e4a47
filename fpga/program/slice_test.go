package program_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/program"
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
	goldenfile.Bytes(t, "testdata/slice.v1.hex", someSlice().Marshal())
	goldenfile.Bytes(t, "testdata/slice.v1.1.hex", someSlice11().Marshal())
	goldenfile.Bytes(t, "testdata/slice.v1.3.hex", someSlice13().Marshal())
	s, err := program.UnmarshalSlice(someSlice11().Marshal())
	require.NoError(t, err)
	assert.Equal(t, someSlice11(), s)
	s, err = program.UnmarshalSlice(someSlice13().Marshal())
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
		assert.Equal(t, want, le.Uint16(s.Marshal()[6:]))
	}
}

func TestResultGolden(t *testing.T) {
	goldenfile.Bytes(t, "testdata/result.v1.1.hex", someResult().Marshal())
}

// Slices and results that version 1.0 wrote can be read by every later version.
func TestResultOfVersion10(t *testing.T) {
	b := someResult10().Marshal()
	le.PutUint16(b[6:], 0)
	goldenfile.Bytes(t, "testdata/result.v1.hex", b)
	r, err := program.UnmarshalResult(b)
	require.NoError(t, err)
	assert.Equal(t, someResult10(), r)
}

func TestStamp(t *testing.T) {
	r := someResult()
	b := r.Marshal()
	program.Stamp(b, 1<<40, 5)
	got, err := program.UnmarshalResult(b)
	require.NoError(t, err)
	r.Wait, r.Move = 1<<40, 5
	assert.Equal(t, r, got)

	none := bytes.Repeat([]byte{'x'}, program.ResultHeader)
	program.Stamp(none, 1, 2)
	program.Stamp(b[:program.ResultHeader-1], 1, 2)
	assert.Equal(t, bytes.Repeat([]byte{'x'}, program.ResultHeader), none)
	assert.Equal(t, r.Marshal(), b)
}

func TestSliceRoundTrip(t *testing.T) {
	b := someSlice().Marshal()
	require.Len(t, b, program.SliceHeader+2*program.SliceTask)
	s, err := program.UnmarshalSlice(b)
	require.NoError(t, err)
	assert.Equal(t, someSlice(), s)
	assert.Equal(t, b, someSlice().AppendTo([]byte("before"))[6:])

	empty, err := program.UnmarshalSlice(new(program.Slice).Marshal())
	require.NoError(t, err)
	assert.Empty(t, empty.Tasks)
}

func TestResultRoundTrip(t *testing.T) {
	b := someResult().Marshal()
	require.LessOrEqual(t, len(b), program.ResultSize(2))
	r, err := program.UnmarshalResult(b)
	require.NoError(t, err)
	assert.Equal(t, someResult(), r)
	assert.Equal(t, b, someResult().AppendTo([]byte("before"))[6:])

	r, err = program.UnmarshalResult(append(b, "what lay there before"...))
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
			b := (&program.Result{State: program.BadData, Message: c.message}).Marshal()
			require.LessOrEqual(t, len(b), program.ResultSize(0))
			r, err := program.UnmarshalResult(b)
			require.NoError(t, err)
			assert.Equal(t, c.message[:c.want], r.Message)
		})
	}
}

func TestSliceAndResultReuseMemory(t *testing.T) {
	s, r := someSlice(), someResult()
	r.Message = ""
	sb, rb := s.Marshal(), r.Marshal()
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		sb = s.AppendTo(sb[:0])
		rb = r.AppendTo(rb[:0])
		if s.DecodeFrom(sb) != nil || r.DecodeFrom(rb) != nil {
			t.Fail()
		}
	}))
	assert.Equal(t, someSlice(), s)
}

// The earlier content of a buffer must not appear in the output.
func TestAppendOverOldBytes(t *testing.T) {
	old := bytes.Repeat([]byte{0xff}, 4096)
	assert.Equal(t, someSlice().Marshal(), someSlice().AppendTo(old[:0]))
	old = bytes.Repeat([]byte{0xff}, 4096)
	assert.Equal(t, someResult().Marshal(), someResult().AppendTo(old[:0]))
}

func TestSliceDamage(t *testing.T) {
	good := someSlice().Marshal()
	for n := range good {
		_, err := program.UnmarshalSlice(good[:n:n])
		require.ErrorIs(t, err, program.ErrCorrupt, "%d bytes", n)
	}
	_, err := program.UnmarshalSlice(append(bytes.Clone(good), 0))
	require.ErrorIs(t, err, program.ErrCorrupt)
	requireFlipsMatter(t, good, 6, 8, func(b []byte) (any, error) { return program.UnmarshalSlice(b) }, someSlice())

	b := bytes.Clone(good)
	le.PutUint32(b[12:], 1<<31)
	_, err = program.UnmarshalSlice(b)
	require.ErrorIs(t, err, program.ErrCorrupt)
	b = bytes.Clone(good)
	b[4] = 2
	_, err = program.UnmarshalSlice(b)
	require.ErrorIs(t, err, program.ErrVersion)
}

func TestResultDamage(t *testing.T) {
	good := someResult().Marshal()
	for n := range good {
		_, err := program.UnmarshalResult(good[:n:n])
		require.ErrorIs(t, err, program.ErrCorrupt, "%d bytes", n)
	}
	requireFlipsMatter(t, good, 6, 8, func(b []byte) (any, error) { return program.UnmarshalResult(b) }, someResult())
	b := bytes.Clone(good)
	b[4] = 2
	_, err := program.UnmarshalResult(b)
	require.ErrorIs(t, err, program.ErrVersion)
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
	f.Add(someSlice().Marshal())
	f.Add(someSlice11().Marshal())
	f.Add(someSlice14().Marshal())
	f.Add(new(program.Slice).Marshal())
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := program.UnmarshalSlice(b)
		if err != nil {
			return
		}
		out := s.Marshal()
		out[6], out[7] = b[6], b[7] // the writer's minor version
		require.Equal(t, b, out)
	})
}

func FuzzUnmarshalResult(f *testing.F) {
	f.Add(someResult().Marshal())
	f.Add(new(program.Result).Marshal())
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := program.UnmarshalResult(b)
		if err != nil {
			return
		}
		out := r.Marshal()
		out[6], out[7] = b[6], b[7] // the writer's minor version
		require.Equal(t, b[:len(out)], out)
	})
}

func BenchmarkSlice(b *testing.B) {
	s := someSlice()
	s.Tasks = make([]program.Task, 84)
	buf := s.Marshal()
	b.SetBytes(int64(len(buf)))
	for b.Loop() {
		buf = s.AppendTo(buf[:0])
		if err := s.DecodeFrom(buf); err != nil {
			b.Fatal(err)
		}
	}
}

// TestValueAt checks the wire forms of a cursor that says where its value lies, up to the last place.
func TestValueAt(t *testing.T) {
	s := someSlice()
	s.TablesChecked, s.Tasks[1].Chunk.Absent, s.Tasks[0].Cursor.ValueAt = true, true, 0x1234567
	goldenfile.Bytes(t, "testdata/slice.v1.6.hex", s.Marshal())
	r := someResult()
	r.Tasks[0].Cursor.ValueAt = program.MaxValueAt
	goldenfile.Bytes(t, "testdata/result.v1.3.hex", r.Marshal())
	assert.EqualValues(t, 6, le.Uint16(s.Marshal()[6:]))
	assert.EqualValues(t, 3, le.Uint16(r.Marshal()[6:]))
	again, err := program.UnmarshalSlice(s.Marshal())
	require.NoError(t, err)
	assert.Equal(t, s, again)
	got, err := program.UnmarshalResult(r.Marshal())
	require.NoError(t, err)
	assert.Equal(t, r, got)
}
