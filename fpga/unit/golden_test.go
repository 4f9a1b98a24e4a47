package unit_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// goldenCase is one case of one golden file.
type goldenCase struct {
	index  int
	raw    json.RawMessage
	fields map[string]json.RawMessage
}

// into decodes the case.
func (c goldenCase) into(t *testing.T, v any) {
	t.Helper()
	require.NoError(t, json.Unmarshal(c.raw, v))
}

// text returns a string field, or "".
func (c goldenCase) text(field string) string {
	var s string
	_ = json.Unmarshal(c.fields[field], &s)
	return s
}

func (c goldenCase) has(field string) bool {
	_, ok := c.fields[field]
	return ok
}

// A verdict names what runs a case: a function here, or tests of the packages whose work the case is. A case with
// neither has not been classified yet.
type verdict struct {
	run   func(t *testing.T, c goldenCase)
	tests []otherTest
}

// otherTest is a test of another package.
type otherTest struct{ file, name string }

func run(f func(t *testing.T, c goldenCase)) verdict { return verdict{run: f} }
func runBy(tests ...otherTest) verdict               { return verdict{tests: tests} }

// require checks that the test is there and reads the golden file.
func (o otherTest) require(t *testing.T, golden string) {
	t.Helper()
	source, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(o.file)))
	require.NoError(t, err)
	require.Contains(t, string(source), "\nfunc "+o.name+"(t *testing.T) {\n")
	require.Contains(t, string(source), golden, o.file)
}

// all gives every case of a file one verdict.
func all(v verdict) func(goldenCase) verdict { return func(goldenCase) verdict { return v } }

var goldenFiles = map[string]func(goldenCase) verdict{
	"bucketize.json":             bucketizeVerdict,
	"cast.json":                  all(run(casts)),
	"compute_score.json":         all(run(scores)),
	"criteo_cells.json":          cellsVerdict,
	"criteo_real_checksums.json": all(run(realChecksums)),
	"criteo_rows.json":           all(run(criteoRows)),
	"dense_list_ops.json":        denseListVerdict,
	"folly_hash.json":            follyVerdict,
	"kjt.json":                   all(runBy(otherTest{"sdk/tensor/minibatch_test.go", "TestKJTGolden"})),
	"log.json":                   logVerdict,
	"npy_layout.json":            all(runBy(otherTest{"sdk/tensor/npy_test.go", "TestNpyHeaderGolden"})),
	"nvt_hash.json":              all(run(hashes)),
	"packed_arrays.json":         all(run(packedArrays)),
	"policy.json": all(runBy(otherTest{"trainmgr/allocation/golden_test.go", "TestGoldenPolicies"},
		otherTest{"trainmgr/offload/golden_test.go", "TestGoldenPolicies"},
		otherTest{"trainmgr/autoscale/tfdata_test.go", "TestGoldenTFData"})),
	"proposed_ops.json":       proposedVerdict,
	"sigrid_hash.json":        sigridVerdict,
	"stats_ops.json":          statsVerdict,
	"text_table.json":         all(run(textTable)),
	"tensorflow_buckets.json": all(run(tensorFlowBuckets)),
	"text_numbers.json":       all(run(textNumbers)),
	"text_parts.json":         all(run(textParts)),
	"vocab.json":              all(runBy(otherTest{"sdk/vocabulary/golden_test.go", "TestGoldenVocabularies"})),
}

// goldenRun is how many cases are run here: so that none can slip into the list of the others unseen.
const goldenRun = 274

func TestEveryGoldenCaseIsRun(t *testing.T) {
	paths, err := filepath.Glob("testdata/golden/*.json")
	require.NoError(t, err)
	require.Len(t, paths, len(goldenFiles), "a file that is not listed, or a listed one that is gone")
	ran, elsewhere := 0, 0
	for _, path := range paths {
		file := filepath.Base(path)
		judge := goldenFiles[file]
		require.NotNil(t, judge, "%s is not listed in goldenFiles", file)
		cases := goldenCases(t, path)
		require.NotEmpty(t, cases, file)
		for _, c := range cases {
			v := judge(c)
			name := fmt.Sprintf("%s/%d", strings.TrimSuffix(file, ".json"), c.index)
			for _, field := range []string{"name", "fn"} {
				if s := c.text(field); s != "" {
					name += " " + s
				}
			}
			switch {
			case v.run != nil:
				ran++
				t.Run(name, func(t *testing.T) { v.run(t, c) })
			case len(v.tests) > 0:
				elsewhere++
				for _, o := range v.tests {
					o.require(t, file)
				}
			default:
				t.Errorf("%s is neither run here nor by a test of another package", name)
			}
		}
	}
	t.Logf("%d cases run here, %d by tests of other packages", ran, elsewhere)
	require.Equal(t, goldenRun, ran, "a verdict has changed: if that is right, so is the new number")
}

func goldenCases(t *testing.T, path string) []goldenCase {
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	var file struct{ Cases []json.RawMessage }
	require.NoError(t, json.Unmarshal(data, &file))
	cases := make([]goldenCase, len(file.Cases))
	for i, raw := range file.Cases {
		cases[i] = goldenCase{index: i, raw: raw}
		require.NoError(t, json.Unmarshal(raw, &cases[i].fields))
	}
	return cases
}

// The types of the files' encodings.

// whole is an int64 written as a decimal string.
type whole int64

func (w *whole) UnmarshalJSON(b []byte) error {
	s, err := unquote(b)
	if err != nil {
		return err
	}
	v, err := strconv.ParseInt(s, 10, 64)
	*w = whole(v)
	return err
}

// unsigned is a uint64 written as a decimal string.
type unsigned uint64

func (u *unsigned) UnmarshalJSON(b []byte) error {
	s, err := unquote(b)
	if err != nil {
		return err
	}
	v, err := strconv.ParseUint(s, 10, 64)
	*u = unsigned(v)
	return err
}

// single is a float32 written as its bits.
type single float32

func (f *single) UnmarshalJSON(b []byte) error {
	s, err := unquote(b)
	if err != nil {
		return err
	}
	v, err := strconv.ParseUint(s, 0, 32)
	*f = single(math.Float32frombits(uint32(v)))
	return err
}

// double is a float64 written as its bits.
type double float64

func (f *double) UnmarshalJSON(b []byte) error {
	s, err := unquote(b)
	if err != nil {
		return err
	}
	v, err := strconv.ParseUint(s, 0, 64)
	*f = double(math.Float64frombits(v))
	return err
}

func unquote(b []byte) (string, error) {
	var s string
	err := json.Unmarshal(b, &s)
	return s, err
}

func wholes(w []whole) []int64 {
	v := make([]int64, len(w))
	for i, x := range w {
		v[i] = int64(x)
	}
	return v
}

func singles(f []single) []float32 {
	v := make([]float32, len(f))
	for i, x := range f {
		v[i] = float32(x)
	}
	return v
}

// sameFloats wants the same bits, except that any NaN is a NaN.
func sameFloats(t *testing.T, want []single, got []float32, column string) {
	t.Helper()
	require.Len(t, got, len(want), column)
	for i := range want {
		w, g := float32(want[i]), got[i]
		if w != w && g != g {
			continue
		}
		require.Equal(t, math.Float32bits(w), math.Float32bits(g), "%s: row %d: want %v, got %v", column, i, w, g)
	}
}
