package hextoint_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace/millrace/fpga/unit/hextoint"
	"github.com/millrace/millrace/fpga/unit/internal/proving"
)

func TestParse(t *testing.T) {
	good := map[string]uint32{
		"0": 0, "1": 1, "9": 9, "a": 10, "f": 15, "A": 10, "F": 15, "00000000": 0, "ffffffff": 1<<32 - 1,
		"80000000": 1 << 31,
		"05db9164": 98275684, "DeadBeef": 0xdeadbeef, "abcdef": 0xabcdef, "ABCDEF0": 0xabcdef0, "12345678": 0x12345678,
	}
	bad := []string{
		"", "g", "G", "/", ":", "@", "`", "0x1a", "1_0", "+1a", "-1", " 1a", "1a ", "1a\r", "123456789",
		"000000000", "1.5", "nan",
		"\x00", "\xb0", "٥", "g0000000", "0000000g",
	}
	for token, want := range good {
		got, ok := hextoint.Parse([]byte(token))
		require.True(t, ok, "%q", token)
		require.Equal(t, want, got, "%q", token)
	}
	for _, token := range bad {
		_, ok := hextoint.Parse([]byte(token))
		require.False(t, ok, "%q", token)
		_, ok = hextoint.Reference([]byte(token))
		require.False(t, ok, "reference, %q", token)
	}
}

// Every byte, alone and at each place of a token.
func TestParseEveryByte(t *testing.T) {
	for b := range 256 {
		for at := range 8 {
			token := []byte("00000000")
			token[at] = byte(b)
			for _, tok := range [][]byte{token, token[at:], token[:at+1]} {
				want, wantOK := hextoint.Reference(tok)
				got, ok := hextoint.Parse(tok)
				require.Equal(t, wantOK, ok, "%q", tok)
				if ok {
					require.Equal(t, want, got, "%q", tok)
				}
			}
		}
	}
}

// column lays tokens out as a column that does not begin at the first byte.
func column(tokens []string) (offsets []uint32, data []byte) {
	data = append(data, "pad"...)
	offsets = append(offsets, uint32(len(data)))
	for _, token := range tokens {
		data = append(data, token...)
		offsets = append(offsets, uint32(len(data)))
	}
	return offsets, data
}

func TestHex(t *testing.T) {
	offsets, data := column([]string{"1", "", "ffffffff", "zz", "10"})
	dst := []int64{-1, -1, -1, -1, -1}
	valid := []byte{1, 1, 1, 0, 1}
	require.NoError(t, hextoint.Hex(dst, offsets, data, valid))
	require.Equal(t, []int64{1, 0, 0xffffffff, 0, 16}, dst)
	require.Equal(t, []byte{1, 0, 1, 0, 1}, valid, "the empty token is a null, and so is what was one")
	require.NoError(t, hextoint.Hex(nil, []uint32{0}, nil, nil))
}

func TestHexErrors(t *testing.T) {
	offsets, data := column([]string{"1", "x1", ""})
	err := hextoint.Hex(make([]int64, 3), offsets, data, nil)
	require.ErrorIs(t, err, hextoint.ErrToken)
	require.ErrorContains(t, err, `hex_to_int: token "x1"`)
	offsets, data = column([]string{"1", ""})
	err = hextoint.Hex(make([]int64, 2), offsets, data, nil)
	require.ErrorIs(t, err, hextoint.ErrNull)
	offsets, data = column([]string{strings.Repeat("0", 100)})
	var token *hextoint.TokenError
	require.ErrorAs(t, hextoint.Hex(make([]int64, 1), offsets, data, []byte{1}), &token)
	require.Len(t, token.Token, 32)
}

func TestHexChecksTheColumn(t *testing.T) {
	for name, c := range proving.MalformedColumns() {
		require.ErrorIs(t, hextoint.Hex(make([]int64, 2), c.Offsets, []byte("1234"), c.Valid), hextoint.ErrOffsets, name)
	}
	require.NoError(t, hextoint.Hex(make([]int64, 2), []uint32{0, 2, 4}, []byte("1234"), nil))
}

func TestKernelEqualsReference(t *testing.T) {
	number := rapid.StringMatching(`[0-9a-fA-F]{0,8}`)
	token := rapid.OneOf(number, rapid.StringMatching(`[0-9a-fA-F]{9}`), rapid.StringMatching(`[ -~]{0,3}`))
	rapid.Check(t, func(t *rapid.T) {
		tokens := rapid.OneOf(rapid.SliceOf(number), rapid.SliceOf(token)).Draw(t, "tokens")
		offsets, data := column(tokens)
		dst, valid := make([]int64, len(tokens)), make([]byte, len(tokens))
		for i := range valid {
			valid[i] = 1
		}
		err := hextoint.Hex(dst, offsets, data, valid)
		for i, tok := range tokens {
			want, ok := hextoint.Reference([]byte(tok))
			if !ok && tok != "" {
				var at *hextoint.TokenError
				require.ErrorAs(t, err, &at)
				require.Equal(t, i, at.ValueIndex())
				return
			}
			require.Equal(t, int64(want), dst[i])
			require.Equal(t, tok != "", valid[i] == 1)
		}
		require.NoError(t, err)
	})
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"", "0", "ffffffff", "0x1a", "123456789", "DEADBEEF", "\xff", "1_0"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, token []byte) {
		want, wantOK := hextoint.Reference(token)
		got, ok := hextoint.Parse(token)
		if ok != wantOK || ok && got != want {
			t.Fatalf("%q is %d %v, got %d %v", token, want, wantOK, got, ok)
		}
	})
}

// FuzzHex takes any bytes for a column: an error or values, never a panic.
func FuzzHex(f *testing.F) {
	f.Add([]byte("0123abcd"), []byte{0, 4, 8}, true)
	f.Add([]byte("0123"), []byte{9, 4}, false)
	f.Add([]byte(""), []byte{}, false)
	f.Fuzz(func(t *testing.T, data, ends []byte, nullable bool) {
		offsets := make([]uint32, len(ends))
		for i, e := range ends {
			offsets[i] = uint32(e)
		}
		dst := make([]int64, max(len(ends)-1, 0))
		var valid []byte
		if nullable {
			valid = make([]byte, len(dst))
			for i := range valid {
				valid[i] = 1
			}
		}
		if hextoint.Hex(dst, offsets, data, valid) != nil {
			return
		}
		for i, v := range dst {
			if v < 0 || v > 1<<32-1 || valid != nil && valid[i] == 0 && v != 0 {
				t.Fatalf("row %d is %d", i, v)
			}
		}
	})
}

func BenchmarkHex(b *testing.B) {
	for name, empty := range map[string]int{"eight digits": 0, "one in ten empty": 10} {
		tokens := make([]string, 2048)
		for i := range tokens {
			tokens[i] = "05db9164"
			if empty > 0 && uint32(i)*2654435761>>16%uint32(empty) == 0 {
				tokens[i] = ""
			}
		}
		offsets, data := column(tokens)
		dst, valid := make([]int64, len(tokens)), bytes.Repeat([]byte{1}, len(tokens))
		b.Run(name, func(b *testing.B) {
			proving.BenchmarkEachLevel(b, len(tokens), func() {
				if err := hextoint.Hex(dst, offsets, data, valid); err != nil {
					b.Fatal(err)
				}
			})
		})
	}
}
