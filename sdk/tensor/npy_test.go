package tensor

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/internal/filelock"
)

// golden/npy_layout.json: every case runs here.
func TestNpyHeaderGolden(t *testing.T) {
	raw, err := os.ReadFile("testdata/npy_layout.json")
	require.NoError(t, err)
	var doc struct {
		Cases []struct {
			File, Descr, Shape string
			BytesHex           string `json:"bytes_hex"`
		}
	}
	require.NoError(t, json.Unmarshal(raw, &doc))
	require.Len(t, doc.Cases, 3)
	for _, c := range doc.Cases {
		t.Run(c.File, func(t *testing.T) {
			want, err := hex.DecodeString(c.BytesHex)
			require.NoError(t, err)
			var shape []int64
			n := int64(1)
			for _, d := range strings.Split(strings.Trim(c.Shape, "()"), ", ") {
				v, err := strconv.ParseInt(d, 10, 64)
				require.NoError(t, err)
				shape = append(shape, v)
				n *= v
			}
			b := encodeNpyHeader(npyHeader{c.Descr[:3], shape})
			for i := range n {
				if c.File == "day_0_dense.npy" {
					b = append(b, Bytes([]float32{float32(i)})...)
				} else {
					b = append(b, Bytes([]int32{int32(i)})...)
				}
			}
			assert.Equal(t, want, b)
		})
	}
}

func TestNpyHeaderLength(t *testing.T) {
	for _, shape := range [][]int64{{0}, {1 << 62}, {0, 0}, {1<<63 - 1, 1<<63 - 1}} {
		assert.Len(t, encodeNpyHeader(npyHeader{"<f4", shape}), npyReserved)
	}
	assert.Contains(t, string(encodeNpyHeader(npyHeader{"<i8", []int64{5}})), "'shape': (5,), }")
}

var npyDict = regexp.MustCompile(
	`^\{'descr': '(<[fi][48]|<u2)', 'fortran_order': False, 'shape': \(([0-9, ]+)\), \} *\n$`)

// readNpy is an independent reader of .npy files. It returns type, shape and data.
func readNpy(t *testing.T, path string) (string, []int64, []byte) {
	t.Helper()
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "\x93NUMPY\x01\x00", string(b[:8]))
	n := int(b[8]) | int(b[9])<<8
	require.Zero(t, (10+n)%64)
	m := npyDict.FindStringSubmatch(string(b[10 : 10+n]))
	require.NotNil(t, m, "%q", b[10:10+n])
	var shape []int64
	for _, d := range strings.Split(strings.TrimSuffix(m[2], ","), ", ") {
		v, err := strconv.ParseInt(d, 10, 64)
		require.NoError(t, err)
		shape = append(shape, v)
	}
	return m[1], shape, b[10+n:]
}

// TestNpyHoldsOneKeyedJaggedTensor compares the files of a run with its mini-batches, joined by the definition.
func TestNpyHoldsOneKeyedJaggedTensor(t *testing.T) {
	for name, s := range schemas() {
		for _, sizes := range [][]int{{}, {0}, {5}, {100, 100, 37}, {1, 2, 3, 4}} {
			t.Run(fmt.Sprint(name, sizes), func(t *testing.T) {
				dir := filepath.Join(t.TempDir(), "out")
				w, err := CreateNpy(dir, s)
				require.NoError(t, err)
				for i := range w.spools {
					w.spools[i].limit = 64 // so that spools reach the disk
				}
				f, d := len(s.Keys), len(s.Dense)
				var label, weights []float32
				var dense []byte
				values, lengths := make([][]int64, f), make([][]int32, f)
				perKey := make([][]float32, f)
				var rows, n int64
				for i, size := range sizes {
					m := random(t, s, size, uint64(i))
					require.NoError(t, w.Write(m))
					label = append(label, m.Label...)
					dense = append(append(dense, Bytes(m.Dense)...), Bytes(m.Dense16)...) // one of them is empty
					rows += int64(size)
					n += int64(m.Values())
					for _, r := range rowsOf(m) {
						for k := range f {
							values[k] = append(values[k], r.ids[k]...)
							lengths[k] = append(lengths[k], int32(len(r.ids[k])))
							perKey[k] = append(perKey[k], r.weights[k]...)
						}
					}
				}
				_, err = os.Stat(dir)
				require.ErrorIs(t, err, fs.ErrNotExist, "nothing is there before Close")
				require.NoError(t, w.Close())
				require.NoError(t, w.Close())
				require.NoError(t, w.Abort(), "nothing to do")
				_, err = os.Stat(dir + ".partial")
				require.ErrorIs(t, err, fs.ErrNotExist)

				want := map[string]bool{NpyKeys: true}
				check := func(file, dtype string, shape []int64, data []byte) {
					want[file] = true
					gotType, gotShape, got := readNpy(t, filepath.Join(dir, file))
					assert.Equal(t, dtype, gotType, file)
					assert.Equal(t, shape, gotShape, file)
					assert.Equal(t, fmt.Sprintf("%x", data), fmt.Sprintf("%x", got), file)
				}
				if d > 0 {
					kind := map[DType]string{Float32: "<f4", BFloat16: "<u2"}[s.DenseDType()]
					check(NpyDense, kind, []int64{rows, int64(d)}, dense)
				}
				if s.Label {
					check(NpyLabels, "<f4", []int64{rows, 1}, Bytes(label))
				}
				if f > 0 {
					ids := func(v []int64) []byte {
						if s.IDs == Int64 {
							return Bytes(v)
						}
						var out []byte
						for _, x := range v {
							out = append(out, Bytes([]int32{int32(x)})...)
						}
						return out
					}
					var allValues []int64
					var allLengths []int32
					ones := true
					for k := range f {
						allValues = append(allValues, values[k]...)
						allLengths = append(allLengths, lengths[k]...)
						weights = append(weights, perKey[k]...)
					}
					for _, l := range allLengths {
						ones = ones && l == 1
					}
					check(NpyValues, npyType(s.IDs), []int64{n}, ids(allValues))
					check(NpyLengths, "<i4", []int64{int64(f), rows}, Bytes(allLengths))
					if s.Weights {
						check(NpyWeights, "<f4", []int64{n}, Bytes(weights))
					}
					if ones {
						var byRow []int64
						for r := range rows {
							for k := range f {
								byRow = append(byRow, values[k][r])
							}
						}
						check(NpySparse, npyType(s.IDs), []int64{rows, int64(f)}, ids(byRow))
					}
				}
				entries, err := os.ReadDir(dir)
				require.NoError(t, err)
				for _, e := range entries {
					assert.True(t, want[e.Name()], "%s should not be there", e.Name())
				}
				var keys keysJSON
				b, err := os.ReadFile(filepath.Join(dir, NpyKeys))
				require.NoError(t, err)
				require.NoError(t, json.Unmarshal(b, &keys))
				assert.Equal(t, rows, keys.Rows)
				assert.Equal(t, s.KeyNames(), keys.Keys)
				assert.Len(t, keys.Files, len(want)-1)
			})
		}
	}
}

func TestNpyKeysGolden(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	w, err := CreateNpy(dir, schemas()["fixed int32"])
	require.NoError(t, err)
	require.NoError(t, w.Write(random(t, schemas()["fixed int32"], 5, 1)))
	require.NoError(t, w.Close())
	b, err := os.ReadFile(filepath.Join(dir, NpyKeys))
	require.NoError(t, err)
	assert.Equal(t, `{"version":1,"rows":5,"values":10,"dense":["int_0","int_1","int_2"],`+
		`"keys":["cat_0","bucket_\"é\\\n"],"num_embeddings":[500000,1099511627776],`+
		`"files":{"dense.npy":{"dtype":"<f4","shape":[5,3]},"labels.npy":{"dtype":"<f4","shape":[5,1]},`+
		`"lengths.npy":{"dtype":"<i4","shape":[2,5]},`+
		`"sparse.npy":{"dtype":"<i4","shape":[5,2]},"values.npy":{"dtype":"<i4","shape":[10]}}}`+"\n", string(b))
}

func TestNpyRefusesWhatIsThere(t *testing.T) {
	s := schemas()["fixed int32"]
	dir := filepath.Join(t.TempDir(), "out")
	require.NoError(t, os.Mkdir(dir, 0o777))
	w, err := CreateNpy(dir+string(filepath.Separator), s)
	require.NoError(t, err, "an empty folder may be there")
	require.NoError(t, w.Close())
	_, err = CreateNpy(dir, s)
	require.ErrorIs(t, err, fs.ErrExist)
	_, err = CreateNpy(filepath.Join(dir, NpyDense), s)
	require.ErrorContains(t, err, NpyDense+": it is a file: remove it or choose another name")

	other := filepath.Join(t.TempDir(), "other")
	w, err = CreateNpy(other, s)
	require.NoError(t, err)
	require.NoError(t, w.Write(random(t, s, 5, 1)))
	_, err = CreateNpy(other, s)
	require.ErrorIs(t, err, filelock.ErrLocked, "two writers would write the same files")
	require.ErrorContains(t, err, other)
	// The process dies here, which ends its lock; the next run replaces the files that it left.
	require.NoError(t, os.Remove(other+".partial.lock"))
	w2, err := CreateNpy(other, s)
	require.NoError(t, err)
	require.NoError(t, w2.Close())
	require.NoFileExists(t, other+".partial.lock")

	third := filepath.Join(t.TempDir(), "third")
	require.NoError(t, os.MkdirAll(third+".partial", 0o777))
	require.NoError(t, os.WriteFile(filepath.Join(third+".partial", "thesis.txt"), nil, 0o666))
	_, err = CreateNpy(third, s)
	require.ErrorIs(t, err, fs.ErrExist)
	require.FileExists(t, filepath.Join(third+".partial", "thesis.txt"))
	require.NoFileExists(t, third+".partial.lock")

	_, err = CreateNpy(filepath.Join(t.TempDir(), "x"), &Schema{})
	require.ErrorIs(t, err, ErrShape)
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o666))
	_, err = CreateNpy(file, s)
	require.Error(t, err)
	_, err = CreateNpy(filepath.Join(file, "below"), s)
	require.Error(t, err)
}

func TestNpyErrorsStay(t *testing.T) {
	s := schemas()["fixed int32"]
	dir := filepath.Join(t.TempDir(), "out")
	w, err := CreateNpy(dir, s)
	require.NoError(t, err)
	require.ErrorIs(t, w.Write(random(t, schemas()["lists int64"], 3, 1)), ErrShape)
	require.ErrorIs(t, w.Write(random(t, s, 3, 1)), ErrShape, "a hole must not be filled")
	require.ErrorIs(t, w.Close(), ErrShape)
	require.NoDirExists(t, dir)
	require.NoError(t, w.Abort())
	require.NoDirExists(t, dir+".partial")
	require.NoError(t, w.Abort())

	w, err = CreateNpy(dir, s)
	require.NoError(t, err)
	require.NoError(t, w.Abort())
	require.ErrorIs(t, w.Write(random(t, s, 3, 1)), fs.ErrClosed)
	require.ErrorIs(t, w.Close(), fs.ErrClosed)

	w, err = CreateNpy(dir, s)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	require.ErrorIs(t, w.Write(random(t, s, 3, 1)), fs.ErrClosed)
	require.FileExists(t, filepath.Join(dir, NpyKeys))

	w, err = CreateNpy(dir+"2", s)
	require.NoError(t, err)
	bad := random(t, s, 3, 1)
	bad.Label = nil
	require.ErrorIs(t, w.Write(bad), ErrShape)
}

// TestNpyOnAFailingDisk checks that a full disk is an error of Write or Close, and that no folder without keys.json
// gets the name.
func TestNpyOnAFailingDisk(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs /dev/full")
	}
	s := schemas()["fixed int32"]
	for _, name := range []string{"spool-values-0", "spool-lengths-1"} {
		dir := filepath.Join(t.TempDir(), "out")
		w, err := CreateNpy(dir, s)
		require.NoError(t, err)
		for i := range w.spools {
			w.spools[i].limit = 0
		}
		require.NoError(t, os.Symlink("/dev/full", filepath.Join(dir+".partial", name)))
		err = w.Write(random(t, s, 3, 1))
		require.ErrorContains(t, err, "no space left")
		require.Error(t, w.Close())
		require.NoDirExists(t, dir)
	}
	dir := filepath.Join(t.TempDir(), "out")
	w, err := CreateNpy(dir, s)
	require.NoError(t, err)
	require.NoError(t, os.Symlink("/dev/full", filepath.Join(dir+".partial", NpyKeys)))
	require.ErrorContains(t, w.Close(), "no space left")
	require.NoDirExists(t, dir)
}
