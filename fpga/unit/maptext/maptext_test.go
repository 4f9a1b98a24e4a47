package maptext_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace/millrace/fpga/unit/internal/bytecolumn"
	"github.com/millrace/millrace/fpga/unit/maptext"
)

// column returns texts as a column.
func column(texts ...string) (offsets []uint32, data []byte) {
	offsets = []uint32{0}
	for _, text := range texts {
		data = append(data, text...)
		offsets = append(offsets, uint32(len(data)))
	}
	return offsets, data
}

func TestRules(t *testing.T) {
	index, err := maptext.New([]string{"", "Yes", "yes", "é"})
	require.NoError(t, err)
	values := []int64{7, 2, 1, -5}
	offsets, data := column("yes", "", "Yes", "é", "e\u0301", "yes ", "ignored")
	for _, c := range []struct {
		rule  maptext.Rule
		want  []int64
		valid []byte
	}{
		{maptext.Default, []int64{1, 7, 2, -5, 99, 99, 0}, []byte{1, 1, 1, 1, 1, 1, 0}},
		{maptext.Null, []int64{1, 7, 2, -5, 0, 0, 0}, []byte{1, 1, 1, 1, 0, 0, 0}},
	} {
		got, valid := make([]int64, 7), []byte{1, 1, 1, 1, 1, 1, 0}
		require.NoError(t, index.Map(got, offsets, data, valid, values, c.rule, 99))
		require.Equal(t, c.want, got)
		require.Equal(t, c.valid, valid)
	}
	var unknown *maptext.UnknownError
	err = index.Map(make([]int64, 7), offsets, data, []byte{1, 1, 1, 1, 0, 1, 0}, values, maptext.Fail, 99)
	require.ErrorAs(t, err, &unknown)
	require.Equal(t, 5, unknown.Index)
	require.EqualError(t, err, `map_text: the table lacks the text "yes ": add it to the table, or write default or `+
		`unknown: as_null`)
	offsets, data = column(strings.Repeat("x", 65))
	err = index.Map(make([]int64, 1), offsets, data, nil, values, maptext.Fail, 0)
	require.ErrorContains(t, err, `x" (the first of 65 bytes): add`)
}

func TestKeysThatAreRefused(t *testing.T) {
	many := make([]string, maptext.MaxKeys+1)
	for i := range many {
		many[i] = fmt.Sprintf("%06d", i)
	}
	for name, keys := range map[string][]string{
		"equal": {"a", "a"}, "descending": {"a", "c", "b"}, "by bytes": {"a", "B"}, "too many": many,
	} {
		_, err := maptext.New(keys)
		require.ErrorIs(t, err, maptext.ErrKeys, name)
	}
	index, err := maptext.New(many[:maptext.MaxKeys])
	require.NoError(t, err)
	values := make([]int64, maptext.MaxKeys)
	for i := range values {
		values[i] = int64(i)
	}
	offsets, data := column("000000", "065535", "065536")
	got := make([]int64, 3)
	require.NoError(t, index.Map(got, offsets, data, nil, values, maptext.Default, -1))
	require.Equal(t, []int64{0, maptext.MaxKeys - 1, -1}, got)
}

func TestArgumentsThatDoNotFit(t *testing.T) {
	index, err := maptext.New([]string{"a"})
	require.NoError(t, err)
	for name, err := range map[string]error{
		"offsets":     index.Map(make([]int64, 2), []uint32{0, 1}, []byte("a"), nil, []int64{1}, maptext.Fail, 0),
		"bytes":       index.Map(make([]int64, 1), []uint32{0, 2}, []byte("a"), nil, []int64{1}, maptext.Fail, 0),
		"validity":    index.Map(make([]int64, 1), []uint32{0, 1}, []byte("a"), []byte{}, []int64{1}, maptext.Fail, 0),
		"no validity": index.Map(make([]int64, 1), []uint32{0, 1}, []byte("a"), nil, []int64{1}, maptext.Null, 0),
	} {
		require.ErrorIs(t, err, bytecolumn.ErrShape, name)
	}
}

// compare compares the kernel and the reference.
func compare(t require.TestingT, keys, texts []string, nulls []bool, rule maptext.Rule) {
	index, err := maptext.New(keys)
	require.NoError(t, err)
	values := make([]int64, len(keys))
	for i := range values {
		values[i] = int64(3*i) - 5
	}
	offsets, data := column(texts...)
	got, valid := make([]int64, len(texts)), make([]byte, len(texts))
	for i := range valid {
		if !nulls[i] {
			valid[i] = 1
		}
	}
	err = index.Map(got, offsets, data, valid, values, rule, 1000)
	for i, text := range texts {
		want, found := maptext.Reference([]byte(text), keys, values)
		switch {
		case nulls[i]:
			require.Zero(t, valid[i])
		case found:
			require.Equal(t, want, got[i], "%q", text)
			require.Equal(t, byte(1), valid[i])
		case rule == maptext.Default:
			require.Equal(t, int64(1000), got[i], "%q", text)
		case rule == maptext.Null:
			require.Zero(t, valid[i])
		default:
			var unknown *maptext.UnknownError
			require.True(t, errors.As(err, &unknown), "%q", text)
			require.Equal(t, i, unknown.Index)
			return
		}
	}
	require.NoError(t, err)
}

func TestKernelEqualsReference(t *testing.T) {
	text := rapid.OneOf(rapid.SampledFrom([]string{"", "a", "aa", "A", "\x00", "\xff"}), rapid.String())
	rapid.Check(t, func(t *rapid.T) {
		keys := rapid.SliceOfDistinct(text, rapid.ID[string]).Draw(t, "keys")
		slices.Sort(keys)
		texts := rapid.SliceOf(rapid.OneOf(text, rapid.SampledFrom(append(keys, "no key")))).Draw(t, "texts")
		nulls := rapid.SliceOfN(rapid.Bool(), len(texts), len(texts)).Draw(t, "nulls")
		compare(t, keys, texts, nulls, rapid.SampledFrom([]maptext.Rule{maptext.Fail, maptext.Default,
			maptext.Null}).Draw(t, "rule"))
	})
}

func TestMapAllocatesNothing(t *testing.T) {
	index, err := maptext.New([]string{"no", "yes"})
	require.NoError(t, err)
	offsets, data := column("yes", "no", "a text that no table holds, of some length")
	dst := make([]int64, 3)
	require.Zero(t, testing.AllocsPerRun(10, func() {
		_ = index.Map(dst, offsets, data, nil, []int64{0, 1}, maptext.Default, 2)
	}))
}

func BenchmarkMap(b *testing.B) {
	for _, n := range []int{2, 100, maptext.MaxKeys} {
		b.Run(fmt.Sprintf("%d keys", n), func(b *testing.B) {
			keys, values := make([]string, n), make([]int64, n)
			for i := range keys {
				keys[i], values[i] = fmt.Sprintf("category %06d", i), int64(i)
			}
			index, err := maptext.New(keys)
			require.NoError(b, err)
			texts := make([]string, 2048)
			for i := range texts {
				texts[i] = keys[uint64(i)*0x9e3779b97f4a7c15>>32%uint64(n)]
			}
			offsets, data := column(texts...)
			dst := make([]int64, len(texts))
			for b.Loop() {
				_ = index.Map(dst, offsets, data, nil, values, maptext.Fail, 0)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(texts)), "ns/value")
		})
	}
}
