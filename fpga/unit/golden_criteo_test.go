package unit_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/unit/bucketize"
	"github.com/millrace/millrace/fpga/unit/clamp"
	"github.com/millrace/millrace/fpga/unit/fillnull"
	"github.com/millrace/millrace/fpga/unit/hextoint"
	"github.com/millrace/millrace/fpga/unit/logn"
	"github.com/millrace/millrace/fpga/unit/positivemodulus"
	"github.com/millrace/millrace/fpga/unit/sigridhash"
	"github.com/millrace/millrace/fpga/unit/text"
	"github.com/millrace/millrace/internal/shared"
)

// decodeText decodes a whole partition.
func decodeText(data []byte, o text.Options, rows int) (*text.Columns, text.Result, error) {
	d, err := text.NewDecoder(o)
	if err != nil {
		return nil, text.Result{}, err
	}
	c := text.NewColumns(rows)
	res, err := d.Decode(c, 0, rows, data, true)
	return c, res, err
}

func modulo(t *testing.T, v []int64, m int64) []int64 {
	mod, err := positivemodulus.New(m)
	require.NoError(t, err)
	out := make([]int64, len(v))
	mod.Mod(out, v)
	return out
}

// neg2zeroLog is DLRM's dense recipe after the fill: negatives to 0, then ln(x + 1).
func neg2zeroLog(t *testing.T, v []int64) (clamped []int64, log []float32) {
	clamped = append(clamped, v...)
	require.NoError(t, clamp.Int64(clamped, 0, math.MaxInt64))
	log = make([]float32, len(v))
	for i, x := range clamped {
		log[i] = float32(x)
	}
	logn.LogClamped(log, log, 1, float32(math.Inf(-1)), float32(math.Inf(1)))
	return clamped, log
}

func cellsVerdict(c goldenCase) verdict {
	switch c.text("name") {
	case "hex cells":
		return run(hexCells)
	case "decimal cells":
		return run(decimalCells)
	}
	return verdict{}
}

// rowWith returns a line whose field is the cell and whose others are 0, and as many lines of zeros after it as make
// the decoder's fast path take it.
func rowWith(field int, cell string) []byte {
	cells := strings.Split(strings.Repeat("0\t", 39)+"0", "\t")
	cells[field] = cell
	return []byte(strings.Join(cells, "\t") + "\n" + strings.Repeat(strings.Repeat("0\t", 39)+"0\n", 7))
}

func hexCells(t *testing.T, c goldenCase) {
	var v struct {
		Rows []struct {
			Cell   string
			Strict json.RawMessage  `json:"proposed_strict_uint32"`
			Mod    map[string]int64 `json:"mod"`
		}
	}
	c.into(t, &v)
	require.NotEmpty(t, v.Rows)
	for _, row := range v.Rows {
		got, ok := hextoint.Parse([]byte(row.Cell))
		columns, _, err := decodeText(rowWith(20, row.Cell), text.Options{}, 1)
		switch string(row.Strict) {
		case `"malformed"`:
			require.False(t, ok, "%q", row.Cell)
			require.ErrorIs(t, err, text.ErrHex, "%q", row.Cell)
			continue
		case "null":
			require.Empty(t, row.Cell)
			require.NoError(t, err)
			require.Zero(t, columns.SparseValid[6][0])
		default:
			require.True(t, ok, "%q", row.Cell)
			require.Equal(t, string(row.Strict), strconv.FormatUint(uint64(got), 10), "%q", row.Cell)
			require.NoError(t, err, "%q", row.Cell)
			require.Equal(t, int64(got), columns.Sparse[6][0])
		}
		for m, want := range row.Mod {
			modulus, err := strconv.ParseInt(m, 10, 64)
			require.NoError(t, err)
			require.Equal(t, []int64{want}, modulo(t, columns.Sparse[6][:1], modulus), "%q mod %s", row.Cell, m)
		}
	}
}

func decimalCells(t *testing.T, c goldenCase) {
	var v struct {
		Rows []struct {
			Cell     string
			Strict   json.RawMessage `json:"proposed_strict_int32"`
			Neg2Zero int64           `json:"fill0_neg2zero"`
			Log      single          `json:"fill0_neg2zero_log1"`
		}
	}
	c.into(t, &v)
	require.NotEmpty(t, v.Rows)
	for _, row := range v.Rows {
		columns, _, err := decodeText(rowWith(3, row.Cell), text.Options{}, 1)
		if string(row.Strict) == `"malformed"` {
			require.ErrorIs(t, err, text.ErrDecimal, "%q", row.Cell)
			continue
		}
		require.NoError(t, err, "%q", row.Cell)
		x := columns.Dense[2]
		if string(row.Strict) == "null" {
			require.Zero(t, columns.DenseValid[2][0])
			fillnull.Int64(x, columns.DenseValid[2], 0)
		} else {
			require.Equal(t, string(row.Strict), strconv.FormatInt(x[0], 10), "%q", row.Cell)
		}
		clamped, log := neg2zeroLog(t, x)
		require.Equal(t, row.Neg2Zero, clamped[0], "%q", row.Cell)
		sameFloats(t, []single{row.Log}, log, row.Cell)
	}
}

func criteoRows(t *testing.T, c goldenCase) {
	var v struct {
		Hex     string `json:"text_hex"`
		Rows    int
		Status  string
		Decoded []struct {
			Label    int64
			Dense    []int64  `json:"dense_filled"`
			Neg2Zero []int64  `json:"dense_neg2zero"`
			Log      []single `json:"dense_log1_f32"`
			Sparse   []int64  `json:"sparse_u32"`
			Mod5000  []int64  `json:"sparse_mod_5000"`
			Mod8192  []int64  `json:"sparse_mod_8192"`
			Mod512K  []int64  `json:"sparse_mod_524288"`
		}
	}
	c.into(t, &v)
	data, err := hex.DecodeString(v.Hex)
	require.NoError(t, err)
	o := text.Options{LabelAbsent: strings.HasPrefix(v.Status, "only when has_label=false")}
	columns, res, err := decodeText(data, o, v.Rows+1)
	require.Equal(t, v.Rows, res.Rows)
	switch {
	case v.Status == "malformed row":
		var row *text.RowError
		require.ErrorAs(t, err, &row)
		_, res, err = decodeText(data, text.Options{Policy: text.Drop}, 1)
		require.NoError(t, err)
		require.Equal(t, int64(1), res.Dropped)
		return
	case o.LabelAbsent:
		// The label -1 that the case names is TorchRec's; here such data has no label at all.
		_, _, err := decodeText(data, text.Options{}, 1)
		require.ErrorIs(t, err, text.ErrFieldCount)
	case strings.Contains(v.Status, "empty line"):
		require.Equal(t, int64(1), res.Blank)
	}
	require.NoError(t, err)
	index, err := text.NewIndex(bytes.NewReader(data), o, 1)
	require.NoError(t, err)
	require.Equal(t, int64(v.Rows), index.Rows)
	for r, want := range v.Decoded {
		var dense, sparse []int64
		for i := range columns.Dense {
			dense = append(dense, columns.Dense[i][r])
		}
		for i := range columns.Sparse {
			sparse = append(sparse, columns.Sparse[i][r])
		}
		require.Equal(t, want.Label, columns.Label[r])
		require.Equal(t, want.Dense, dense)
		clamped, log := neg2zeroLog(t, dense)
		require.Equal(t, want.Neg2Zero, clamped)
		sameFloats(t, want.Log, log, "log1")
		require.Equal(t, want.Sparse, sparse)
		require.Equal(t, want.Mod5000, modulo(t, sparse, 5000))
		require.Equal(t, want.Mod8192, modulo(t, sparse, 8192))
		require.Equal(t, want.Mod512K, modulo(t, sparse, 524288))
	}
}

// realChecksums decodes the real rows, which lie beside the project and never in it, and compares digests.
func realChecksums(t *testing.T, c goldenCase) {
	rows, err := strconv.Atoi(string(c.fields["rows"]))
	require.NoError(t, err)
	data, err := os.ReadFile(shared.Path(t, "data/"+c.text("file")))
	require.NoError(t, err)
	require.Equal(t, c.text("file_sha256"), digest(data))
	columns, res, err := decodeText(data, text.Options{}, rows+1)
	require.NoError(t, err)
	require.Equal(t, text.Result{Rows: rows, Consumed: len(data)}, res)

	nulls := func(valid [][]byte) (n []int) {
		for _, v := range valid {
			n = append(n, bytes.Count(v[:rows], []byte{0}))
		}
		return n
	}
	var denseNulls, sparseNulls []int
	require.NoError(t, json.Unmarshal(c.fields["dense_nulls"], &denseNulls))
	require.NoError(t, json.Unmarshal(c.fields["sparse_nulls"], &sparseNulls))
	require.Equal(t, denseNulls, nulls(columns.DenseValid[:]))
	require.Equal(t, sparseNulls, nulls(columns.SparseValid[:]))

	// From here on columns are row-major, with nulls filled.
	dense, sparse := rowMajor(columns.Dense[:], columns.DenseValid[:], rows), rowMajor(columns.Sparse[:],
		columns.SparseValid[:], rows)
	clamped, log := neg2zeroLog(t, dense)
	var logBytes []byte
	for _, f := range log {
		logBytes = binary.LittleEndian.AppendUint32(logBytes, math.Float32bits(f))
	}
	var featureMajor []int64
	for i := range columns.Sparse {
		featureMajor = append(featureMajor, columns.Sparse[i][:rows]...)
	}
	borders := make([]float32, 1024)
	for i := range borders {
		borders[i] = float32(i) * 0.25
	}
	table, err := bucketize.New(bucketize.Params{Borders: borders})
	require.NoError(t, err)
	bucket := make([]int64, rows)
	require.NoError(t, table.Int64(bucket, columns.Dense[0][:rows]))
	hasher, err := sigridhash.New(sigridhash.Params{Max: 500000})
	require.NoError(t, err)
	hashed := make([]int64, len(sparse))
	hasher.Hash(hashed, sparse)
	var hashedBytes []byte
	for _, h := range hashed {
		hashedBytes = binary.LittleEndian.AppendUint64(hashedBytes, uint64(h))
	}
	want := map[string]string{
		"sha256_labels_i32":                          digest(packed32(columns.Label[:rows])),
		"sha256_dense_fill0_i32_rowmajor":            digest(packed32(dense)),
		"sha256_dense_neg2zero_i32":                  digest(packed32(clamped)),
		"sha256_dense_log1_canonical_f32":            digest(logBytes),
		"sha256_sparse_fill0_u32_rowmajor":           digest(packed32(sparse)),
		"sha256_sparse_fill0_u32_feature_major":      digest(packed32(featureMajor)),
		"sha256_bucketize_I1_m1024_i32":              digest(packed32(bucket)),
		"sha256_sigrid_salt0_max500000_i64_rowmajor": digest(hashedBytes),
	}
	for _, m := range []int64{5000, 8192, 524288, 1000000, 40000000} {
		want[fmt.Sprintf("sha256_sparse_mod_%d_i32", m)] = digest(packed32(modulo(t, sparse, m)))
	}
	for field := range c.fields {
		if strings.HasPrefix(field, "sha256_") && want[field] == "" {
			vocabulary := strings.Contains(field, "contiguous") || strings.Contains(field, "categorify")
			require.True(t, vocabulary, "digest %s is neither compared nor a vocabulary's", field)
		}
	}
	for field, sum := range want {
		require.Equal(t, c.text(field), sum, field)
	}
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func packed32(v []int64) (b []byte) {
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, uint32(x))
	}
	return b
}

func rowMajor(columns [][]int64, valid [][]byte, rows int) []int64 {
	out := make([]int64, 0, rows*len(columns))
	for i := range columns {
		fillnull.Int64(columns[i][:rows], valid[i][:rows], 0)
	}
	for r := range rows {
		for i := range columns {
			out = append(out, columns[i][r])
		}
	}
	return out
}
