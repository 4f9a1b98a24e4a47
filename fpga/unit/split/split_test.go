package split_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace/millrace/fpga/unit/internal/bytecolumn"
	"github.com/millrace/millrace/fpga/unit/split"
)

// textsOf puts texts one behind the other, behind bytes that belong to none of them.
func textsOf(list ...string) split.Texts {
	t := split.Texts{Offsets: []uint32{3}, Data: []byte("|x|")}
	for _, s := range list {
		t.Data = append(t.Data, s...)
		t.Offsets = append(t.Offsets, uint32(len(t.Data)))
	}
	return t
}

// stringsOf returns the lists of texts.
func stringsOf(l *split.Lists) [][]string {
	lists, at := [][]string{}, 0
	for _, n := range l.Lengths {
		list := []string{}
		for range n {
			list = append(list, string(l.Data[l.Offsets[at]:l.Offsets[at+1]]))
			at++
		}
		lists = append(lists, list)
	}
	return lists
}

func TestSplit(t *testing.T) {
	for _, c := range []struct {
		name, text, separator string
		dropped, kept         []string
	}{
		{"several parts", "Action|Comedy", "|", []string{"Action", "Comedy"}, []string{"Action", "Comedy"}},
		{"one part", "Drama", "|", []string{"Drama"}, []string{"Drama"}},
		{"no bytes", "", "|", []string{}, []string{""}},
		{"a separator alone", "|", "|", []string{}, []string{"", ""}},
		{"empty parts", "|a||b|", "|", []string{"a", "b"}, []string{"", "a", "", "b", ""}},
		{"nothing is trimmed", "a, b", ",", []string{"a", " b"}, []string{"a", " b"}},
		{"several bytes", "a::b:c::", "::", []string{"a", "b:c"}, []string{"a", "b:c", ""}},
		{"from the left, without overlap", "aaab", "aa", []string{"ab"}, []string{"", "ab"}},
		{"bytes that are not UTF-8", "\xff|\xfe\x00", "|", []string{"\xff", "\xfe\x00"}, []string{"\xff", "\xfe\x00"}},
		{"a separator of several bytes of UTF-8", "x、y", "、", []string{"x", "y"}, []string{"x", "y"}},
		{"a part of a separator", "x\xe3\x80y", "、", []string{"x\xe3\x80y"}, []string{"x\xe3\x80y"}},
		{"the longest separator", "a" + strings.Repeat("-", 16) + "b", strings.Repeat("-", 16), []string{"a", "b"},
			[]string{"a", "b"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, keep := range []bool{false, true} {
				want := c.dropped
				if keep {
					want = c.kept
				}
				lists := split.Lists{Lengths: []int32{1}, Texts: split.Texts{Offsets: []uint32{0, 1}, Data: []byte("z")}}
				err := lists.Split(textsOf(c.text, "q", c.text), []byte{1, 0, 1}, split.Rule{Separator: c.separator,
					KeepEmpty: keep})
				require.NoError(t, err)
				require.Equal(t, [][]string{want, {}, want}, stringsOf(&lists), "what was there is replaced")
			}
		})
	}
	var lists split.Lists
	require.NoError(t, lists.Split(textsOf("a:", ":b", ""), nil, split.Rule{Separator: "::"}))
	require.Equal(t, [][]string{{"a:"}, {":b"}, {}}, stringsOf(&lists), "a separator lies in one text")
	require.NoError(
		t,
		lists.Split(split.Texts{Offsets: []uint32{3}, Data: []byte("|x|")}, nil, split.Rule{Separator: "|"}),
	)
	requireNone(t, &lists)
}

// requireNone checks that there are no lists.
func requireNone(t *testing.T, lists *split.Lists) {
	require.Empty(t, lists.Lengths)
	require.Empty(t, lists.Data)
	require.Equal(t, []uint32{0}, lists.Offsets)
}

func TestArgumentsThatDoNotFit(t *testing.T) {
	good := split.Rule{Separator: "|"}
	for _, c := range []struct {
		name  string
		texts split.Texts
		valid []byte
		rule  split.Rule
		want  error
	}{
		{"no separator", textsOf("a"), nil, split.Rule{}, split.ErrSeparator},
		{"a long separator", textsOf("a"), nil, split.Rule{Separator: strings.Repeat("-", 17)}, split.ErrSeparator},
		{"offsets that decrease", split.Texts{Offsets: []uint32{2, 1}, Data: []byte("abc")}, nil, good, bytecolumn.ErrShape},
		{"offsets behind the bytes", split.Texts{Offsets: []uint32{0, 4}, Data: []byte("abc")}, nil, good,
			bytecolumn.ErrShape},
		{"no offsets", split.Texts{}, nil, good, bytecolumn.ErrShape},
		{"short validity", textsOf("a", "b"), []byte{1}, good, bytecolumn.ErrShape},
	} {
		t.Run(c.name, func(t *testing.T) {
			var lists split.Lists
			require.ErrorIs(t, lists.Split(c.texts, c.valid, c.rule), c.want)
			requireNone(t, &lists)
		})
	}
}

func TestMostParts(t *testing.T) {
	text := strings.Repeat("a|", split.MaxParts-1) + "a"
	var lists split.Lists
	require.NoError(t, lists.Split(textsOf("x", text), nil, split.Rule{Separator: "|"}))
	require.Equal(t, []int32{1, split.MaxParts}, lists.Lengths)
	parts, ok := split.Reference([]byte(text), split.Rule{Separator: "|"})
	require.True(t, ok)
	require.Len(t, parts, split.MaxParts)

	var none split.Lists
	err := none.Split(textsOf("x", text+"|a"), nil, split.Rule{Separator: "|"})
	require.ErrorIs(t, err, split.ErrParts)
	require.EqualError(t, err, fmt.Sprintf("row 1 has %d: too many parts of one text, which are at most %d",
		split.MaxParts+1, split.MaxParts))
	requireNone(t, &none)
	_, ok = split.Reference([]byte(text+"|a"), split.Rule{Separator: "|"})
	require.False(t, ok)
	require.NoError(t, none.Split(textsOf(text+"|"), nil, split.Rule{Separator: "|"}), "an empty part does not count")
	require.ErrorIs(t, none.Split(textsOf(text+"|"), nil, split.Rule{Separator: "|", KeepEmpty: true}), split.ErrParts)
}

func TestKernelEqualsReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		letters := rapid.SliceOfN(rapid.SampledFrom([]byte("ab|-}\x00")), 0, 40)
		texts := rapid.SliceOfN(rapid.Map(letters, func(b []byte) string { return string(b) }), 0, 20).Draw(t, "texts")
		rule := split.Rule{Separator: rapid.SampledFrom([]string{"|", "-", "||", "ab", "aba", "--|",
			"\x00", "|\x00|ab-|abab-|ba"}).Draw(t, "separator"),
			KeepEmpty: rapid.Bool().Draw(t, "keep")}
		valid := rapid.SliceOfN(rapid.ByteRange(0, 1), len(texts), len(texts)).Draw(t, "valid")
		var lists split.Lists
		require.NoError(t, lists.Split(textsOf(texts...), valid, rule))
		requireReference(t, &lists, texts, valid, rule)
	})
}

// requireReference checks lists against the reference of their texts.
func requireReference(t require.TestingT, lists *split.Lists, texts []string, valid []byte, rule split.Rule) {
	want := [][]string{}
	for i, text := range texts {
		list := []string{}
		parts, ok := split.Reference([]byte(text), rule)
		require.True(t, ok)
		require.LessOrEqual(t, len(parts), len(text)/len(rule.Separator)+1)
		for _, part := range parts {
			if valid == nil || valid[i] != 0 {
				list = append(list, string(part))
			}
		}
		want = append(want, list)
	}
	require.Equal(t, want, stringsOf(lists))
}

func FuzzSplit(f *testing.F) {
	f.Add([]byte("Action|Comedy\n\nDrama"), "|", false)
	f.Add([]byte("a::b::\n::"), "::", true)
	f.Add([]byte{}, "", false)
	f.Fuzz(func(t *testing.T, data []byte, separator string, keep bool) {
		var texts []string
		for _, line := range bytes.Split(data, []byte("\n")) {
			texts = append(texts, string(line))
		}
		var lists split.Lists
		rule := split.Rule{Separator: separator, KeepEmpty: keep}
		if err := lists.Split(textsOf(texts...), nil, rule); err != nil {
			require.ErrorIs(t, err, split.ErrSeparator)
			return
		}
		requireReference(t, &lists, texts, nil, rule)
	})
}

// BenchmarkSplit splits genres as MovieLens has them: two of seven bytes in a text.
func BenchmarkSplit(b *testing.B) {
	for _, separator := range []string{"|", "::"} {
		b.Run(fmt.Sprintf("separator of %d bytes", len(separator)), func(b *testing.B) {
			var list []string
			for i := range 2048 {
				list = append(list, []string{"Action" + separator + "Comedy", "Drama", "Adventure" + separator +
					"Animation" + separator + "Children"}[i%3])
			}
			texts := textsOf(list...)
			var lists split.Lists
			for b.Loop() {
				if err := lists.Split(texts, nil, split.Rule{Separator: separator}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(lists.Offsets)-1), "ns/part")
		})
	}
}
