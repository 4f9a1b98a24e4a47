package dataset

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// part returns a partition whose rows lie in row groups of at most 1,000.
func part(name string, rows int64) Partition {
	p := Partition{Name: name, Bytes: rows * 40, Rows: rows, Content: sha256.Sum256([]byte(name))}
	for left := rows; left > 0; left -= 1000 {
		p.RowGroups = append(p.RowGroups, min(left, 1000))
	}
	return p
}

func manifest(t testing.TB, rows ...int64) *Manifest {
	t.Helper()
	var parts []Partition
	for i, n := range rows {
		parts = append(parts, part(string(rune('a'+i%26))+strings.Repeat("x", i/26), n))
	}
	m, err := NewManifest(parts)
	require.NoError(t, err)
	return m
}

func TestManifestKeepsItsOrder(t *testing.T) {
	in := []Partition{part("p3", 1), part("p10", 2), part("p1", 3)}
	m, err := NewManifest(in)
	require.NoError(t, err)
	var names []string
	for _, p := range m.Partitions {
		names = append(names, p.Name)
	}
	assert.Equal(t, []string{"p3", "p10", "p1"}, names)
	assert.EqualValues(t, 6, m.Rows())
	assert.Equal(t, 1, m.Find("p10"))
	assert.Equal(t, -1, m.Find("p1 "))

	in[1].RowGroups[0] = 99
	assert.EqualValues(t, 2, m.Partitions[1].RowGroups[0], "the manifest must not share row groups with its maker")

	other, err := NewManifest([]Partition{part("p1", 3), part("p10", 2), part("p3", 1)})
	require.NoError(t, err)
	first, err := m.Digest()
	require.NoError(t, err)
	second, err := other.Digest()
	require.NoError(t, err)
	assert.NotEqual(t, first, second, "the order is a part of the digest")
}

func TestCompareNames(t *testing.T) {
	sorted := []string{"", "B", "a", "a/9", "a/10", "day=1/p", "day_2", "day_2/0", "day_10", "p01", "p1", "p1a", "p02",
		"p2", "p99999999999999999999", "p100000000000000000000", "é"}
	for i, a := range sorted {
		for j, b := range sorted {
			assert.Equal(t, cmp.Compare(i, j), CompareNames(a, b), "%q, %q", a, b)
		}
	}
	assert.Positive(t, SortGiven.Compare("10", "9"))
	assert.Negative(t, SortName.Compare("10", "9"))
	for _, s := range []Sort{SortGiven, SortNatural, SortName} {
		got, err := ParseSort(s.String())
		require.NoError(t, err)
		assert.Equal(t, s, got)
	}
	_, err := ParseSort("size")
	require.ErrorIs(t, err, ErrOptions)
	assert.ErrorContains(t, err, "[given natural name]")
}

func TestManifestGolden(t *testing.T) {
	m, err := NewManifest([]Partition{
		{Name: "part-<1>.parquet", Bytes: 1 << 40, Rows: 3, RowGroups: []int64{2, 1}, Content: Digest{0xab, 31: 0xcd}},
		{Name: "empty", Bytes: 12},
	})
	require.NoError(t, err)
	b, err := m.MarshalJSON()
	require.NoError(t, err)
	const want = `{"version":2,"partitions":[` +
		`{"name":"part-<1>.parquet","bytes":1099511627776,"rows":3,"row_groups":[2,1],` +
		`"content_sha256":"ab000000000000000000000000000000000000000000000000000000000000cd"},` +
		`{"name":"empty","bytes":12,"rows":0,"row_groups":[],` +
		`"content_sha256":"0000000000000000000000000000000000000000000000000000000000000000"}]}`
	assert.Equal(t, want, string(b))
	d, err := m.Digest()
	require.NoError(t, err)
	assert.Equal(t, Digest(sha256.Sum256([]byte(want))), d)

	for _, in := range []string{want, want + "\n"} {
		back, err := ReadManifest([]byte(in))
		require.NoError(t, err)
		assert.Equal(t, m, back)
	}
	doc := struct{ M *Manifest }{m}
	b, err = json.Marshal(doc)
	require.NoError(t, err)
	doc.M = nil
	require.Error(t, json.Unmarshal(b, &doc), "json.Marshal escapes < and >, which is another form")
}

func TestManifestInsideADocument(t *testing.T) {
	m := manifest(t, 10, 20)
	b, err := json.Marshal(struct{ M *Manifest }{m})
	require.NoError(t, err)
	var doc struct{ M *Manifest }
	require.NoError(t, json.Unmarshal(b, &doc))
	assert.Equal(t, m, doc.M)
}

func TestManifestRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		parts []Partition
		says  string
	}{
		"a name twice":         {[]Partition{part("a", 1), part("b", 1), part("a", 1)}, "number 0 and number 2"},
		"no name":              {[]Partition{part("", 1)}, "no name"},
		"a long name":          {[]Partition{part(strings.Repeat("x", MaxPartitionName+1), 1)}, "bytes"},
		"a name not UTF-8":     {[]Partition{part("\xff", 1)}, "UTF-8"},
		"a name with NUL":      {[]Partition{part("a\x00", 1)}, "NUL"},
		"negative rows":        {[]Partition{{Name: "a", Rows: -1}}, "-1 rows"},
		"negative bytes":       {[]Partition{{Name: "a", Bytes: -1}}, "-1 bytes"},
		"row groups too few":   {[]Partition{{Name: "a", Rows: 3, RowGroups: []int64{2}}}, "2 rows"},
		"row groups too many":  {[]Partition{{Name: "a", Rows: 3, RowGroups: []int64{2, 2}}}, "row group 1"},
		"a row group negative": {[]Partition{{Name: "a", Rows: 3, RowGroups: []int64{-1, 4}}}, "row group 0"},
		"row groups overflow": {[]Partition{{Name: "a", Rows: 3, RowGroups: []int64{math.MaxInt64, math.MaxInt64, 5}}},
			"row group 0"},
		"rows overflow": {[]Partition{{Name: "a", Rows: math.MaxInt64, RowGroups: []int64{math.MaxInt64}},
			part("b", 1)}, "2^63"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := NewManifest(c.parts)
			require.ErrorIs(t, err, ErrManifest)
			assert.ErrorContains(t, err, c.says)
		})
	}
	longest := strings.Repeat("x", MaxPartitionName)
	_, err := NewManifest([]Partition{part(longest, 1)})
	require.NoError(t, err)
}

func TestReadManifestRefuses(t *testing.T) {
	m := manifest(t, 10, 2000)
	good, err := m.MarshalJSON()
	require.NoError(t, err)
	replace := func(from, to string) string {
		s := strings.Replace(string(good), from, to, 1)
		require.NotEqual(t, string(good), s, "the case changes nothing")
		return s
	}
	for name, in := range map[string]string{
		"nothing":          "",
		"another version":  replace(`"version":2`, `"version":1`),
		"an unknown field": replace(`"version":2`, `"version":2,"x":1`),
		"spaces":           replace(`,"rows"`, `, "rows"`),
		"another case":     replace(`"rows"`, `"Rows"`),
		"a field twice":    replace(`"rows":10`, `"rows":9,"rows":10`),
		"capital hex":      strings.ToUpper(string(good)),
		"short digest":     replace(`content_sha256":"`, `content_sha256":"00`),
		"text after it":    string(good) + "{}",
		"cut":              string(good[:len(good)-1]),
		"a name twice":     replace(`"name":"a"`, `"name":"b"`),
		"a number too big": replace(`"rows":10`, `"rows":1e30`),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ReadManifest([]byte(in))
			require.ErrorIs(t, err, ErrManifest)
		})
	}
}

func FuzzReadManifest(f *testing.F) {
	m := manifest(f, 10, 2000, 0)
	good, err := m.MarshalJSON()
	require.NoError(f, err)
	f.Add(good)
	f.Add([]byte(`{"version":2,"partitions":[]}`))
	f.Add([]byte(`{"version":2,"partitions":null}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := ReadManifest(b)
		if err != nil {
			require.ErrorIs(t, err, ErrManifest)
			return
		}
		out, err := m.MarshalJSON()
		require.NoError(t, err)
		require.Equal(t, strings.TrimSuffix(string(b), "\n"), string(out))
		if m.Rows() < 1<<20 {
			_, err = NewPlan(m, Options{Batch: 7})
			require.NoError(t, err)
		}
	})
}
