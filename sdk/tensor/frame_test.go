package tensor

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"net"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/internal/crc32c"
)

// writeFrame encodes a mini-batch's frame and writes it.
func writeFrame(w io.Writer, m *MiniBatch) (int64, error) {
	f, err := EncodeFrame(m)
	if err != nil {
		return 0, err
	}
	return f.WriteTo(w)
}

func TestFrameRoundTrip(t *testing.T) {
	for name, s := range schemas() {
		for _, rows := range []int{0, 1, 5, 100} {
			t.Run(fmt.Sprint(name, " ", rows), func(t *testing.T) {
				m := random(t, s, rows, 7)
				b, err := AppendFrame([]byte("before"), m)
				require.NoError(t, err)
				b = b[len("before"):]
				var w bytes.Buffer
				n, err := writeFrame(&w, m)
				require.NoError(t, err)
				assert.EqualValues(t, len(b), n)
				require.Equal(t, b, w.Bytes())
				f, err := EncodeFrame(m)
				require.NoError(t, err)
				assert.Equal(t, n, f.Len())
				assert.Zero(t, len(f.Header)%Align)

				back, err := ReadFrame(b)
				require.NoError(t, err)
				assert.Empty(t, Diff(m, back))
				again, err := AppendFrame(nil, back)
				require.NoError(t, err)
				assert.Equal(t, b, again, "one mini-batch has one frame")
			})
		}
	}
}

// TestFrameGolden checks that a frame's bytes never change: a later release must deliver a mini-batch again with the
// same bytes. The CRC was computed in Python.
func TestFrameGolden(t *testing.T) {
	s := &Schema{
		Label: true, Dense: []string{"int_0"}, IDs: Int64,
		Keys: []Key{{Name: "cat_\"0\\", NumEmbeddings: 500000}, {Name: "é\n", List: true}},
	}
	m := New(s, 2, nil)
	m.Name = Name{Job: [32]byte{0xab, 31: 0xcd}, Epoch: 1, Number: 18446744073709551615}
	m.Label, m.Dense = []float32{0, 1}, []float32{0.5, float32(math.Inf(-1))}
	m.Values64, m.Lengths = []int64{7, 8, -1}, []int32{1, 1, 0, 1}
	b, err := AppendFrame(nil, m)
	require.NoError(t, err)
	const header = `{"__metadata__":{"format":"millrace.frame/1",` +
		`"name":"ab000000000000000000000000000000000000000000000000000000000000cd/1/18446744073709551615",` +
		`"shapes":"{\"rows\":2,\"dense\":1,\"keys\":2,\"values\":3}",` +
		`"dense":"[\"int_0\"]","keys":"[\"cat_\\\"0\\\\\",\"é\\u000a\"]","num_embeddings":"[500000,0]",` +
		`"list":"[false,true]",` +
		`"ids":"int64","crc32c":"fbacbb95"},` +
		`"kjt.values":{"dtype":"I64","shape":[3],"data_offsets":[0,24]},` +
		`"dense":{"dtype":"F32","shape":[2,1],"data_offsets":[24,32]},` +
		`"kjt.lengths":{"dtype":"I32","shape":[2,2],"data_offsets":[32,48]},` +
		`"label":{"dtype":"F32","shape":[2],"data_offsets":[48,56]}}`
	n := binary.LittleEndian.Uint64(b)
	assert.Equal(t, header, strings.TrimRight(string(b[8:8+n]), " "))
	assert.EqualValues(t, 640-8, n)
	assert.Equal(t, "07000000000000000800000000000000ffffffffffffffff"[:32], fmt.Sprintf("%x", b[8+n:8+n+16]))
	assert.Equal(t, "0000003f000080ff", fmt.Sprintf("%x", b[8+n+24:8+n+32]))
	assert.Equal(t, "000000000000803f", fmt.Sprintf("%x", b[8+n+48:]))

	var document map[string]any
	require.NoError(t, json.Unmarshal(b[8:8+n], &document), "any JSON reader reads it")
}

func TestFrameSaysWhenLengthsAreOnes(t *testing.T) {
	b, err := AppendFrame(nil, random(t, schemas()["fixed int32"], 3, 1))
	require.NoError(t, err)
	assert.Contains(t, string(b), `"lengths":"ones"`)
	assert.NotContains(t, string(b), `kjt.lengths`)
	b, err = AppendFrame(nil, random(t, schemas()["label only"], 3, 1))
	require.NoError(t, err)
	assert.NotContains(t, string(b), `"lengths"`)
}

func TestReadFrameCopiesNothingWhereAligned(t *testing.T) {
	m := random(t, schemas()["lists int64"], 50, 1)
	b, err := AppendFrame(nil, m)
	require.NoError(t, err)
	aligned := make([]int64, len(b)/8+2)
	mem := unsafe.Slice((*byte)(unsafe.Pointer(&aligned[0])), 8*len(aligned))
	for _, shift := range []int{0, 8, 1, 4} {
		at := mem[shift : shift+len(b)]
		copy(at, b)
		back, err := ReadFrame(at)
		require.NoError(t, err)
		require.Empty(t, Diff(m, back))
		inside := func(p unsafe.Pointer) bool {
			return uintptr(p) >= uintptr(unsafe.Pointer(&at[0])) &&
				uintptr(p) <= uintptr(unsafe.Pointer(&at[len(at)-1]))
		}
		assert.Equal(t, shift%8 == 0, inside(unsafe.Pointer(&back.Values64[0])))
		assert.Equal(t, shift%4 == 0, inside(unsafe.Pointer(&back.Dense[0])))
	}
}

// TestWriteFrameOverTCP writes a frame to a socket, where net.Buffers uses writev. The frame must arrive whole.
func TestWriteFrameOverTCP(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	m := random(t, schemas()["lists int64"], 5000, 1)
	sent := make(chan error, 1)
	go func() {
		c, err := l.Accept()
		if err == nil {
			_, err = writeFrame(c, m)
			err = errors.Join(err, c.Close())
		}
		sent <- err
	}()
	c, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	defer c.Close()
	b, err := io.ReadAll(c)
	require.NoError(t, err)
	require.NoError(t, <-sent)
	back, err := ReadFrame(b)
	require.NoError(t, err)
	assert.Empty(t, Diff(m, back))
}

type fullWriter struct{ room int }

var errFull = errors.New("full")

func (w *fullWriter) Write(b []byte) (int, error) {
	if len(b) > w.room {
		return 0, errFull
	}
	w.room -= len(b)
	return len(b), nil
}

func TestWriteFrameErrors(t *testing.T) {
	m := random(t, schemas()["fixed int32"], 3, 1)
	_, err := writeFrame(&fullWriter{room: 2000}, m)
	require.NoError(t, err)
	_, err = writeFrame(&fullWriter{room: 10}, m)
	require.ErrorIs(t, err, errFull)
	m.Rows++
	_, err = writeFrame(io.Discard, m)
	require.ErrorIs(t, err, ErrShape)
	_, err = AppendFrame(nil, m)
	require.ErrorIs(t, err, ErrShape)
}

// reframe changes a frame's JSON and puts it together again; the data stays.
func reframe(t testing.TB, b []byte, from, to string) []byte {
	t.Helper()
	n := binary.LittleEndian.Uint64(b)
	head := strings.TrimRight(string(b[8:8+n]), " ")
	changed := strings.Replace(head, from, to, 1)
	require.NotEqual(t, head, changed, "the case changes nothing")
	for (len(changed)+8)%Align != 0 {
		changed += " "
	}
	out := binary.LittleEndian.AppendUint64(nil, uint64(len(changed)))
	return append(append(out, changed...), b[8+n:]...)
}

func TestReadFrameRefusesHeaders(t *testing.T) {
	m := random(t, schemas()["lists int64"], 4, 1)
	m.Values64, m.Lengths = m.Values64[:6], []int32{1, 0, 0, 0, 1, 1, 1, 1, 1, 0, 0, 0}
	b, err := AppendFrame(nil, m)
	require.NoError(t, err)
	_, err = ReadFrame(b)
	require.NoError(t, err)
	for name, c := range map[string]struct{ old, new, says string }{
		"an unknown dtype":        {`"I64"`, `"U64"`, "dtype"},
		"the wrong dtype":         {`"I32"`, `"F32"`, "dtype"},
		"overlapping tensors":     {`"data_offsets":[48,64]`, `"data_offsets":[40,56]`, "overlaps"},
		"a gap":                   {`"data_offsets":[48,64]`, `"data_offsets":[52,68]`, "gap"},
		"a tensor too long":       {`"data_offsets":[48,64]`, `"data_offsets":[48,68]`, "ends at 68"},
		"a negative offset":       {`"data_offsets":[0,48]`, `"data_offsets":[-8,48]`, "overlaps"},
		"three offsets":           {`"data_offsets":[0,48]`, `"data_offsets":[0,48,49]`, "canonical"},
		"the wrong shape":         {`"shape":[6]`, `"shape":[7]`, "shape"},
		"another rank":            {`"shape":[6]`, `"shape":[6,1]`, "shape"},
		"a missing tensor":        {`,"dense":{"dtype":"F32","shape":[4,1],"data_offsets":[48,64]}`, ``, "missing"},
		"an unknown tensor":       {`"label":{`, `"other":{`, "unknown field"},
		"unasked weights":         {`"label":{`, `"kjt.weights":{`, "shape"},
		"another format":          {`millrace.frame/1`, `millrace.frame/9`, "this build reads"},
		"a format of other types": {`millrace.frame/1`, `millrace.frame/2`, "want \"millrace.frame/1\" for these tensors"},
		"dense of bfloat16":       {`"dense":{"dtype":"F32"`, `"dense":{"dtype":"BF16"`, "want \"millrace.frame/2\""},
		"no name":                 {`"name":"01`, `"name":"`, "name"},
		"a name not hex":          {`"name":"01`, `"name":"zz`, "name"},
		"a number not canonical":  {`/3/7`, `/3/07`, ""},
		"rows beyond the bound":   {`\"rows\":4`, `\"rows\":99999999999`, "rows"},
		"negative values":         {`\"values\":6`, `\"values\":-6`, "values"},
		"values beyond the bound": {`\"values\":6`, `\"values\":9999999999999999`, "values"},
		"fewer keys":              {`\"keys\":3`, `\"keys\":2`, "keys"},
		"a key twice":             {`[\"a\",\"b\"`, `[\"a\",\"a\"`, "twice"},
		"embeddings of two keys":  {`"[100,0,0]"`, `"[100,0]"`, "num_embeddings"},
		"a fraction":              {`"[100,0,0]"`, `"[100,0,0.5]"`, "num_embeddings"},
		"unknown ids":             {`"ids":"int64"`, `"ids":"int16"`, "ids"},
		"an unknown field":        {`"ids"`, `"time":"now","ids"`, "unknown field"},
		"a field twice":           {`"ids"`, `"ids":"int64","ids"`, "canonical"},
		"a space":                 {`,"ids"`, `, "ids"`, "canonical"},
		"lengths of ones":         {`,"crc32c"`, `,"lengths":"ones","crc32c"`, "canonical"},
		"another CRC":             {`"crc32c":"`, `"crc32c":"0`, "CRC32C"},
		"null":                    {`"dense":"[\"int_0\"]"`, `"dense":"null"`, "dense"},
		"not JSON":                {`{"__`, `["__`, "header"},
		"one id of a list":        {`[true,false,true]`, `[true,false,false]`, "one id a row"},
	} {
		t.Run(name, func(t *testing.T) {
			old := strings.ReplaceAll(c.old, "/3/7", fmt.Sprintf("/3/%d", m.Name.Number))
			_, err := ReadFrame(reframe(t, b, old, c.new))
			require.ErrorIs(t, err, ErrFrame)
			assert.ErrorContains(t, err, c.says)
		})
	}
}

func TestReadFrameRefusesBytes(t *testing.T) {
	m := random(t, schemas()["lists int64"], 4, 1)
	b, err := AppendFrame(nil, m)
	require.NoError(t, err)
	n := binary.LittleEndian.Uint64(b)
	for i := range b {
		for _, bit := range []byte{1, 0x80} {
			c := bytes.Clone(b)
			c[i] ^= bit
			back, err := ReadFrame(c)
			if i >= 8 && uint64(i) < 8+n && err == nil {
				// The CRC does not cover names, so a changed name gives a well-formed mini-batch of another name.
				require.NotEmpty(t, Diff(m, back))
				continue
			}
			require.ErrorIs(t, err, ErrFrame, "byte %d of %d (data from %d)", i, len(b), 8+n)
		}
		_, err := ReadFrame(b[:i])
		require.ErrorIs(t, err, ErrFrame, "cut to %d", i)
	}
	_, err = ReadFrame(append(bytes.Clone(b), 0))
	require.ErrorIs(t, err, ErrFrame)
	for _, length := range []uint64{0, 7, 56, n - 64, n + 64, MaxFrameHeader + 56, math.MaxUint64, math.MaxUint64 - 7} {
		c := bytes.Clone(b)
		binary.LittleEndian.PutUint64(c, length)
		_, err := ReadFrame(c)
		require.ErrorIs(t, err, ErrFrame)
	}
}

// TestReadFrameOf checks that a reader that knows the expected frame reads the same as ReadFrame, and refuses any
// other frame as ReadFrame does.
func TestReadFrameOf(t *testing.T) {
	for name, s := range schemas() {
		for _, rows := range []int{0, 1, 5, 1000} {
			t.Run(fmt.Sprint(name, " ", rows), func(t *testing.T) {
				m := random(t, s, rows, 7)
				b, err := AppendFrame(nil, m)
				require.NoError(t, err)
				crc := dataSum(b)
				require.NotNil(t, readExpected(b, crc, m.Name, Fragment{}, s), "it was parsed")
				back, err := ReadFrameOf(b, crc, m.Name, Fragment{}, s)
				require.NoError(t, err)
				require.Empty(t, Diff(m, back))
				require.Equal(t, m.Name, back.Name)

				_, err = ReadFrameOf(b, crc+1, m.Name, Fragment{}, s)
				require.ErrorIs(t, err, ErrFrame)
				require.ErrorContains(t, err, "CRC32C")
				other := m.Name
				other.Number++
				_, err = ReadFrameOf(b, crc, other, Fragment{}, s)
				require.ErrorIs(t, err, ErrFrame)
				require.ErrorContains(t, err, other.String())
				for _, wrong := range schemas() {
					if !wrong.Equal(s) {
						_, err = ReadFrameOf(b, crc, m.Name, Fragment{}, wrong)
						require.ErrorIs(t, err, ErrFrame)
						require.ErrorContains(t, err, "another schema")
					}
				}
			})
		}
	}
}

func TestReadFrameOfRefusesBytes(t *testing.T) {
	for _, schema := range []string{"lists int64", "fixed int32", "bfloat16 lists"} {
		m := random(t, schemas()[schema], 4, 1)
		b, err := AppendFrame(nil, m)
		require.NoError(t, err)
		n := 8 + binary.LittleEndian.Uint64(b)
		sum := dataSum(b)
		for i := range b {
			for bit := range 8 {
				c := bytes.Clone(b)
				c[i] ^= 1 << bit
				crc := sum
				if uint64(i) >= n {
					crc = dataSum(c)
				}
				_, err := ReadFrameOf(c, crc, m.Name, Fragment{}, m.Schema)
				require.ErrorIs(t, err, ErrFrame, "bit %d of byte %d of %d (data from %d)", bit, i, len(b), n)
			}
			_, err := ReadFrameOf(b[:i], sum, m.Name, Fragment{}, m.Schema)
			require.ErrorIs(t, err, ErrFrame, "cut to %d", i)
		}
		_, err = ReadFrameOf(append(bytes.Clone(b), 0), sum, m.Name, Fragment{}, m.Schema)
		require.ErrorIs(t, err, ErrFrame)
	}
}

// TestReadFrameRefusesWrongLengths reads frames with a correct CRC that break the rules of lengths.
func TestReadFrameRefusesWrongLengths(t *testing.T) {
	m := random(t, schemas()["lists int64"], 4, 1)
	good, err := AppendFrame(nil, m)
	require.NoError(t, err)
	n := 8 + binary.LittleEndian.Uint64(good)
	e, err := Packed(m.Schema, m.Rows, m.Values())
	require.NoError(t, err)
	lengths, _ := e.Find(TensorLengths)
	for _, wrong := range []int32{-1, 100} {
		b := bytes.Clone(good)
		binary.LittleEndian.PutUint32(b[int64(n)+lengths.Offset:], uint32(wrong))
		was := fmt.Sprintf("%08x", crc32.Checksum(good[n:], crc32.MakeTable(crc32.Castagnoli)))
		b = reframe(t, b, was, fmt.Sprintf("%08x", crc32.Checksum(b[n:], crc32.MakeTable(crc32.Castagnoli))))
		_, err := ReadFrame(b)
		require.ErrorIs(t, err, ErrFrame)
		require.ErrorIs(t, err, ErrShape)
		_, err = ReadFrameOf(b, dataSum(b), m.Name, Fragment{}, m.Schema)
		require.ErrorIs(t, err, ErrShape)
	}
}

// dataSum returns the CRC32C of the bytes behind a frame's header.
func dataSum(b []byte) uint32 {
	return crc32.Checksum(b[8+binary.LittleEndian.Uint64(b):], crc32.MakeTable(crc32.Castagnoli))
}

func FuzzReadFrame(f *testing.F) {
	expected := random(f, schemas()["lists int64"], 3, 1)
	for _, s := range schemas() {
		for _, rows := range []int{0, 3} {
			b, err := AppendFrame(nil, random(f, s, rows, 1))
			require.NoError(f, err)
			n := binary.LittleEndian.Uint64(b)
			f.Add(b[8:8+n], b[8+n:])
		}
	}
	for name, s := range setSchemas() {
		fragment := repetitive(f, s, 5, func(n int) int { return n / 2 })
		fragment.Fragment = Fragment{Index: len(name), Of: 1 + len(name)}
		b, err := AppendFrame(nil, fragment)
		require.NoError(f, err)
		n := binary.LittleEndian.Uint64(b)
		f.Add(b[8:8+n], b[8+n:])
		m, err := repetitive(f, s, 5, func(n int) int { return n / 2 }).Deduplicate()
		require.NoError(f, err)
		b, err = AppendFrame(nil, m)
		require.NoError(f, err)
		n = binary.LittleEndian.Uint64(b)
		f.Add(b[8:8+n], b[8+n:])
	}
	f.Fuzz(func(t *testing.T, head, data []byte) {
		// The fuzzer need not find the padding and the CRC.
		head = bytes.TrimRight(head, " ")
		if i := bytes.Index(head, []byte(`"crc32c":"`)); i >= 0 && len(head) >= i+18 {
			head = bytes.Clone(head)
			copy(head[i+10:], fmt.Sprintf("%08x", crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli))))
		}
		for (len(head)+8)%Align != 0 {
			head = append(head[:len(head):len(head)], ' ')
		}
		b := append(binary.LittleEndian.AppendUint64(nil, uint64(len(head))), head...)
		b = append(b, data...)
		m, err := ReadFrame(b)
		if err != nil {
			require.ErrorIs(t, err, ErrFrame)
			_, err = ReadFrameOf(b, dataSum(b), expected.Name, Fragment{}, expected.Schema)
			require.ErrorIs(t, err, ErrFrame)
			return
		}
		require.NoError(t, m.Validate())
		known, err := ReadFrameOf(b, dataSum(b), m.Name, m.Fragment, m.Schema)
		require.NoError(t, err)
		require.Empty(t, Diff(m, known))
		again, err := AppendFrame(nil, m)
		require.NoError(t, err)
		require.Equal(t, b, again)
	})
}

func BenchmarkFrame(b *testing.B) {
	s := &Schema{Label: true, IDs: Int64}
	for i := range 504 {
		s.Dense = append(s.Dense, fmt.Sprint("int_", i))
	}
	for i := range 84 {
		s.Keys = append(s.Keys, Key{Name: fmt.Sprint("cat_", i), NumEmbeddings: 500_000})
	}
	m, err := Make(s, 8192, 84*8192)
	require.NoError(b, err)
	frame, err := AppendFrame(nil, m)
	require.NoError(b, err)
	b.Run("write", func(b *testing.B) {
		b.SetBytes(int64(len(frame)))
		for b.Loop() {
			_, err := writeFrame(io.Discard, m)
			require.NoError(b, err)
		}
	})
	b.Run("read", func(b *testing.B) {
		b.SetBytes(int64(len(frame)))
		for b.Loop() {
			_, err := ReadFrame(frame)
			require.NoError(b, err)
		}
	})
}

// TestAFrameOfManyColumnsAllocatesLittle checks that neither rows nor columns cost an allocation each, on either side.
func TestAFrameOfManyColumnsAllocatesLittle(t *testing.T) {
	if debug {
		t.Skip("a debug build checks more")
	}
	s := &Schema{Label: true, IDs: Int32}
	for i := range 504 {
		s.Dense = append(s.Dense, fmt.Sprint("int_", i))
	}
	for i := range 84 {
		s.Keys = append(s.Keys, Key{Name: fmt.Sprint("cat_", i), NumEmbeddings: 500_000, List: true})
	}
	m, err := Make(s, 64, 64*84)
	require.NoError(t, err)
	for i := range m.Lengths {
		m.Lengths[i] = 1
	}
	var f Frame
	encoding := testing.AllocsPerRun(20, func() { f, err = EncodeFrame(m) })
	require.NoError(t, err)
	frame, err := AppendFrame(nil, m)
	require.NoError(t, err)
	crc := crc32c.Checksum(frame[len(f.Header):])
	reading := testing.AllocsPerRun(20, func() { _, err = ReadFrameOf(frame, crc, m.Name, Fragment{}, s) })
	require.NoError(t, err)
	t.Logf("%.0f allocations to encode a frame, %.0f to read it", encoding, reading)
	assert.Less(t, encoding, 40.0) // the larger part is the map of names of Schema.Validate
	assert.Less(t, reading, 20.0)
}
