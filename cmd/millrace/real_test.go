package main

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/cmd/cli"
	"github.com/millrace/millrace/internal/shared"
)

// engines are every way to compute; all must give the same bytes.
var engines = map[string][]string{
	"reference":        {"--engine", "reference"},
	"cpu":              {"--engine", "cpu"},
	"drive (vendor)":   {"--engine", "drive", "--commands", "vendor"},
	"drive (standard)": {"--engine", "drive", "--commands", "standard"},
}

// The exit statuses.
const exitDone, exitFailed, exitUsage, exitUnread = cli.ExitDone, cli.ExitFailed, cli.ExitUsage, cli.ExitUnread

// millrace runs the command line as a user would, and returns status, stdout and stderr.
func millrace(t *testing.T, args ...string) (int, string, string) {
	t.Helper()
	return tree.Run(args...)
}

// must runs the command line and wants status 0.
func must(t *testing.T, args ...string) string {
	t.Helper()
	return tree.Must(t, args...)
}

// awaitJSON waits until the JSON output of a command is as it should be. A command that fails is run again.
func awaitJSON[T any](t *testing.T, is func(T) bool, args ...string) {
	t.Helper()
	require.Eventually(t, func() bool {
		code, out, _ := millrace(t, append(args, "--output", "json")...)
		var v T
		return code == exitDone && json.Unmarshal([]byte(out), &v) == nil && is(v)
	}, time.Minute, 20*time.Millisecond)
}

// awaitText waits until the output of a command contains a text. A command that fails is run again.
func awaitText(t *testing.T, text string, args ...string) {
	t.Helper()
	require.Eventually(t, func() bool {
		code, out, _ := millrace(t, args...)
		return code == exitDone && strings.Contains(out, text)
	}, time.Minute, 20*time.Millisecond)
}

// array reads a .npy file: its type, shape and packed data.
func array(t *testing.T, dir, name string) (string, []byte) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, name))
	require.NoError(t, err)
	n := 10 + int(binary.LittleEndian.Uint16(b[8:]))
	head := string(b[10:n])
	_, rest, ok := strings.Cut(head, "'descr': '")
	require.True(t, ok, head)
	descr, _, _ := strings.Cut(rest, "'")
	return descr, b[n:]
}

// packed casts an array exactly to the checksum's type and hashes it.
func packed(t *testing.T, dir, name, to string) string {
	t.Helper()
	descr, b := array(t, dir, name)
	var out []byte
	each := func(size int, f func(i int) int64) {
		for i := 0; i < len(b); i += size {
			v := f(i)
			switch to {
			case "i32":
				require.True(t, v >= math.MinInt32 && v <= math.MaxInt32, "%d does not fit int32", v)
				out = binary.LittleEndian.AppendUint32(out, uint32(v))
			case "u32":
				require.True(t, v >= 0 && v <= math.MaxUint32, "%d does not fit uint32", v)
				out = binary.LittleEndian.AppendUint32(out, uint32(v))
			case "i64":
				out = binary.LittleEndian.AppendUint64(out, uint64(v))
			}
		}
	}
	switch {
	case to == "f32" && descr == "<f4":
		out = b
	case descr == "<f4":
		each(4, func(i int) int64 {
			f := math.Float32frombits(binary.LittleEndian.Uint32(b[i:]))
			require.Equal(t, f, float32(int64(f)), "%v is not an integer", f)
			return int64(f)
		})
	case descr == "<i4":
		each(4, func(i int) int64 { return int64(int32(binary.LittleEndian.Uint32(b[i:]))) })
	case descr == "<i8":
		each(8, func(i int) int64 { return int64(binary.LittleEndian.Uint64(b[i:])) })
	default:
		t.Fatalf("%s is %s", name, descr)
	}
	sum := sha256.Sum256(out)
	return hex.EncodeToString(sum[:])
}

// stage is one checksum of golden/criteo_real_checksums.json: the pipeline that makes it, and where it then lies.
type stage struct {
	key, pipeline, file, cast string
}

// Cells that do not fit float32's 24 bits would not survive the dense tensor; the real rows' largest is 1,282,226.
func stages() []stage {
	dense := func(ops string) string {
		return "name: s\nbatch: 1000\nlabel: {column: label}\ndense:\n  - columns: [int_0..int_12]\n    ops: [" + ops +
			"]\n"
	}
	sparse := func(ops string) string {
		return "name: s\nbatch: 700\nids: int64\nsparse:\n  - columns: [cat_0..cat_25]\n    ops: [" + ops + "]\n"
	}
	quarters := make([]string, 1024)
	for i := range quarters {
		quarters[i] = fmt.Sprint(float64(i) * 0.25)
	}
	list := []stage{
		{"sha256_labels_i32", dense("fill_null: 0"), "labels.npy", "i32"},
		{"sha256_dense_fill0_i32_rowmajor", dense("fill_null: 0"), "dense.npy", "i32"},
		{"sha256_dense_neg2zero_i32", dense("fill_null: 0, clamp: {min: 0}"), "dense.npy", "i32"},
		{"sha256_dense_log1_canonical_f32", dense("fill_null: 0, clamp: {min: 0}, log: {add: 1}"), "dense.npy", "f32"},
		{"sha256_sparse_fill0_u32_rowmajor", sparse("fill_null: 0"), "sparse.npy", "u32"},
		{"sha256_sparse_fill0_u32_feature_major", sparse("fill_null: 0"), "values.npy", "u32"},
		{
			"sha256_sigrid_salt0_max500000_i64_rowmajor", sparse("fill_null: 0, sigrid_hash: {salt: 0, max: 500000}"),
			"sparse.npy", "i64",
		},
		{
			"sha256_bucketize_I1_m1024_i32",
			"name: s\nbatch: 512\ngenerated:\n  - columns: [int_0]\n    as: \"b_{n}\"\n" +
				"    ops: [fill_null: 0, bucketize: {borders: [" + strings.Join(quarters, ", ") + "]}]\n", "values.npy",
			"i32",
		},
	}
	for _, m := range []int{5000, 8192, 524288, 1000000, 40000000} {
		list = append(list, stage{fmt.Sprintf("sha256_sparse_mod_%d_i32", m),
			sparse(fmt.Sprintf("fill_null: 0, positive_modulus: {modulus: %d}", m)), "sparse.npy", "i32"})
	}
	return list
}

// later are the checksums of operators that do not exist yet.
func later(key string) bool {
	return strings.HasPrefix(key, "vocab_") || strings.Contains(key, "torchrec_contiguous") ||
		strings.Contains(key, "nvt_categorify")
}

func TestRealCriteoChecksumsOnEveryEngine(t *testing.T) {
	golden, err := os.ReadFile(shared.Path(t, "golden/criteo_real_checksums.json"))
	require.NoError(t, err)
	var file struct {
		Cases []map[string]any `json:"cases"`
	}
	require.NoError(t, json.Unmarshal(golden, &file))
	require.NotEmpty(t, file.Cases)
	for _, c := range file.Cases {
		rows := shared.Path(t, "data/"+c["file"].(string))
		run := map[string]bool{}
		for _, s := range stages() {
			want, ok := c[s.key].(string)
			require.True(t, ok, "the golden file has no %s", s.key)
			run[s.key] = true
			pipe := filepath.Join(t.TempDir(), "p.yaml")
			require.NoError(t, os.WriteFile(pipe, []byte(s.pipeline), 0o644))
			for engine, flags := range engines {
				t.Run(s.key+" "+engine, func(t *testing.T) {
					out := filepath.Join(t.TempDir(), "out")
					must(t, append([]string{"preprocess", "--progress", "none", "--pipeline", pipe, "--in", rows,
						"--input-format", "criteo-tsv", "--out", out}, flags...)...)
					assert.Equal(t, want, packed(t, out, s.file, s.cast))
				})
			}
		}
		for key := range c {
			if strings.HasPrefix(key, "sha256_") || strings.HasPrefix(key, "vocab_") {
				assert.True(t, run[key] || later(key), "checksum %s is neither run nor said to be of a later operator",
					key)
			}
		}
	}
}
