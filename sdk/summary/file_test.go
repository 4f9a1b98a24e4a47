package summary

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/internal/crc32c"
	"github.com/millrace/millrace/internal/goldenfile"
	"github.com/millrace/millrace/sdk/targetencoding"
)

func number(x float64) *float64 { return &x }

func value(v Value) *Value { return &v }

// repeated returns quantiles that are all the same.
func repeated(v Value) []Value {
	list := make([]Value, Quantiles)
	for i := range list {
		list[i] = v
	}
	return list
}

// example is a summary with a column of every kind.
func example() *Summary {
	integers := Statistics{Rows: 4, NullRows: 1, Values: 3, Least: value(IntegerValue(-7)),
		Greatest: value(IntegerValue(1<<62 + 1)), Mean: number(0.5), Deviation: number(2), Distinct: 2, Exact: true,
		Quantiles: repeated(IntegerValue(-7)), TopValues: []TopValue{{IntegerValue(-7), 2}, {IntegerValue(1<<62 + 1), 1}}}
	reals := Statistics{Rows: 4, Values: 4, NaNs: 1, PositiveInfinite: 1, NegativeInfinite: 1,
		Least: value(RealValue(3)), Greatest: value(RealValue(3)), Mean: number(3), Distinct: 1, Exact: true,
		Quantiles: repeated(RealValue(3)), TopValues: []TopValue{{RealValue(3), 1}}}
	hashes := Statistics{Rows: 4, NullRows: 2, Values: 5, ListLengths: &ListLengths{0, 1.25, 4}, Distinct: 3,
		MissedCount: 1, TopValues: []TopValue{{IntegerValue(9), 2}}}
	lengths := Statistics{Rows: 4, Values: 8, ListLengths: &ListLengths{2, 2, 2}}
	empty := func(s Statistics) Statistics {
		e := Statistics{Exact: s.Exact}
		if s.ListLengths != nil {
			e.ListLengths = &ListLengths{}
		}
		return e
	}
	s := &Summary{Manifest: Digest{1, 2, 3}, Rows: 4, Columns: []Column{
		{Name: "int_0", Type: "int64", Kind: Integers, Statistics: integers},
		{Name: "price <€>", Type: "float32", Kind: Reals, Statistics: reals},
		{Name: "words", Type: "list of bytes", Kind: Hashes, List: true, Statistics: hashes},
		{Name: "embedding", Type: "list of float32", Kind: Lengths, List: true, Statistics: lengths}}}
	first, second := Partition{Name: "a", Rows: 4}, Partition{Name: "b"}
	for i := range s.Columns {
		first.Columns = append(first.Columns, s.Columns[i].Statistics)
		second.Columns = append(second.Columns, empty(s.Columns[i].Statistics))
	}
	s.Partitions = []Partition{first, second}
	return s
}

func TestFile(t *testing.T) {
	s := example()
	b, err := s.Encode()
	require.NoError(t, err)
	goldenfile.Text(t, filepath.Join("testdata", "summary.v3.json"), string(b))
	read, err := Read(b)
	require.NoError(t, err)
	require.Equal(t, s, read)
	require.True(t, json.Valid(b))
	path := filepath.Join(t.TempDir(), "s")
	require.NoError(t, os.WriteFile(path, b, 0o600))
	loaded, digest, err := Load(path)
	require.NoError(t, err)
	require.Equal(t, s, loaded)
	require.Len(t, digest.String(), 64)
	require.True(t, LooksLikeSummary(b[:64]))
	require.False(t, LooksLikeSummary([]byte("PAR1")))
	require.Equal(t, 0.25, read.Columns[0].NullRate())
	require.Zero(t, read.Partitions[1].Columns[0].NullRate())
}

// TestFileWithTargets holds a file with labels by folds, and that files of other versions are refused by name.
func TestFileWithTargets(t *testing.T) {
	targets := targetencoding.NewBuilder(2)
	require.NoError(t, targets.Add(-7, true, 0, 1))
	require.NoError(t, targets.Add(-7, true, 1, 0))
	require.NoError(t, targets.Add(1<<62+1, true, 1, 3))
	require.NoError(t, targets.Add(0, false, 1, 1))
	s := example()
	s.Columns[0].Targets = targets.Table()
	b, err := s.Encode()
	require.NoError(t, err)
	goldenfile.Text(t, filepath.Join("testdata", "targets.v3.json"), string(b))
	read, err := Read(b)
	require.NoError(t, err)
	require.Equal(t, s, read)
	text := string(b[:len(b)-checksumBytes])
	for _, change := range [][2]string{{`"targets":"A`, `"targets":"B`},
		{`"targets":"`, `"targets":"?`}} {
		require.Contains(t, text, change[0])
		_, err = Read([]byte(sealed(strings.Replace(text, change[0], change[1], 1))))
		require.ErrorIs(t, err, ErrDamaged, change[1])
	}
	for _, other := range []string{"1", "2", "4"} {
		_, err = Read([]byte(sealed(strings.Replace(text, Format, formatName+other, 1))))
		require.ErrorIs(t, err, ErrVersion)
		require.ErrorContains(t, err, "summarize the data set again")
	}
	s.Columns[0].Targets, s.Columns[1].Targets = nil, targets.Table()
	_, err = s.Encode()
	require.ErrorIs(t, err, ErrDamaged, "real numbers have no targets")
	s.Columns[1].Targets = nil
	b, err = s.Encode()
	require.NoError(t, err)
	require.Contains(t, string(b[:40]), Format)
}

// sealed gives bytes the checksum that they need.
func sealed(text string) string {
	return fmt.Sprintf("%s,\"crc32c\":\"%08x\"}\n", text, crc32c.Checksum([]byte(text)))
}

// TestBytesThatAreNoSummary changes a file in one place each, with the right checksum.
func TestBytesThatAreNoSummary(t *testing.T) {
	b, err := example().Encode()
	require.NoError(t, err)
	text := string(b[:len(b)-checksumBytes])
	_, err = Read([]byte(sealed(text)))
	require.NoError(t, err)
	for _, c := range []struct{ name, from, to string }{
		{"white space", `{"format":"millrace.summary/3",`, `{"format":"millrace.summary/3", `},
		{"another order of members", `"type":"int64","kind":"integers"`, `"kind":"integers","type":"int64"`},
		{"an unknown member", `"rows":4,"columns"`, `"rows":4,"colour":1,"columns"`},
		{"a longer decimal", `"mean":0.5`, `"mean":0.50`},
		{"an unknown kind", `"kind":"integers"`, `"kind":"integral"`},
		{"a name twice", `"price <€>"`, `"int_0"`},
		{"no name", `"name":"int_0"`, `"name":""`},
		{"a short digest", `"manifest_sha256":"01`, `"manifest_sha256":"`},
		{"other rows", `","rows":4,"columns"`, `","rows":5,"columns"`},
		{"more nulls than rows", `"null_rows":1`, `"null_rows":5`},
		{"values that rows do not have", `"values":3`, `"values":4`},
		{"a real least integer", `"least":-7`, `"least":-7.0`},
		{"an integer beyond int64", `"greatest":4611686018427387905`, `"greatest":46116860184273879050`},
		{"a least above the greatest", `"least":3.0,"greatest":3.0`, `"least":4.0,"greatest":3.0`},
		{"a negative deviation", `"deviation":2`, `"deviation":-2`},
		{"a quantile above the greatest", `"quantiles":[3.0`, `"quantiles":[4.0`},
		{"a quantile less", `"quantiles":[3.0,`, `"quantiles":[`},
		{"a frequent value that is too frequent", `"count":2`, `"count":9`},
		{"frequent values in another order", `{"value":-7,"count":2},{"value":4611686018427387905,"count":1}`,
			`{"value":4611686018427387905,"count":1},{"value":-7,"count":2}`},
		{"an exact count that misses some", `"exact":false,"missed_count":1`, `"exact":true,"missed_count":1`},
		{"lengths of a scalar", `"kind":"integers","list":false`, `"kind":"integers","list":true`},
		{"a partition twice", `"name":"b","rows":0`, `"name":"a","rows":0`},
		{"a partition with other rows", `"name":"a","rows":4`, `"name":"a","rows":3`},
		{"more than a document", `"partitions":[`, `"rows":4,"partitions":[`},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.Contains(t, text, c.from)
			_, err := Read([]byte(sealed(strings.Replace(text, c.from, c.to, 1))))
			require.ErrorIs(t, err, ErrDamaged)
		})
	}
	_, err = Read([]byte(strings.Replace(string(b), "summary/3", "summary/2", 1)))
	require.ErrorIs(t, err, ErrVersion)
	for i := range b {
		changed := append([]byte{}, b...)
		changed[i] ^= 1
		_, err := Read(changed)
		require.Error(t, err, "byte %d", i)
		if i%7 == 0 {
			_, err = Read(b[:i])
			require.ErrorIs(t, err, ErrDamaged)
		}
	}
	_, _, err = Load(filepath.Join(t.TempDir(), "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

// TestLimitsOfASummary holds the limits from both sides.
func TestLimitsOfASummary(t *testing.T) {
	few := func(columns, partitions int) *Summary {
		s := &Summary{}
		for i := range columns {
			s.Columns = append(s.Columns, Column{Name: fmt.Sprint(i), Type: "bytes", Kind: Hashes})
		}
		for i := range partitions {
			s.Partitions = append(s.Partitions, Partition{Name: fmt.Sprintf("%06d", i), Columns: make([]Statistics, columns)})
		}
		return s
	}
	require.NoError(t, few(MaxCells/256, 256).checkRules())
	require.ErrorIs(t, few(MaxCells/256+1, 256).checkRules(), ErrDamaged)
	s := few(1, 1)
	s.Columns[0].Name = strings.Repeat("n", MaxName)
	require.NoError(t, s.checkRules())
	s.Columns[0].Name += "n"
	require.ErrorIs(t, s.checkRules(), ErrDamaged)
	_, err := s.Encode()
	require.ErrorIs(t, err, ErrDamaged)
	s = example()
	s.Columns[0].TopValues = make([]TopValue, MaxTopValues+1)
	require.ErrorContains(t, s.checkRules(), "33 frequent values")
}

func TestValues(t *testing.T) {
	for _, v := range []Value{IntegerValue(0), IntegerValue(-1 << 63), UnsignedValue(1<<63 - 1), UnsignedValue(1 << 63),
		UnsignedValue(math.MaxUint64), RealValue(0), RealValue(3), RealValue(-1e300),
		RealValue(1e-7), RealValue(0x1.fffffep127), RealValue(123456789)} {
		b, err := json.Marshal(v)
		require.NoError(t, err)
		var back Value
		require.NoError(t, json.Unmarshal(b, &back))
		assert.Equal(t, v, back, "%s", b)
	}
	_, err := json.Marshal(RealValue(math.Inf(1)))
	require.ErrorIs(t, err, ErrDamaged)
	var v Value
	for _, text := range []string{`"a"`, `1e400`, `18446744073709551616`, `-9223372036854775809`, `true`, `{}`} {
		require.Error(t, json.Unmarshal([]byte(text), &v), text)
	}
}

func FuzzRead(f *testing.F) {
	b, err := example().Encode()
	require.NoError(f, err)
	f.Add(b)
	f.Add([]byte(sealed(`{"format":"millrace.summary/3","rows":-1,"columns":[null],"partitions":null`)))
	f.Add([]byte(sealed(string(b[:len(b)-checksumBytes-20]))))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > checksumBytes { // the checksum would hide the parser
			b = []byte(sealed(string(b[:len(b)-checksumBytes])))
		}
		s, err := Read(b)
		if err != nil {
			return
		}
		again, err := s.Encode()
		require.NoError(t, err)
		require.Equal(t, string(b), string(again))
	})
}
