package draft

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/host/source"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/pipeline/columntypes"
	"github.com/millrace/millrace/sdk/pipeline/lowering"
	"github.com/millrace/millrace/sdk/pipeline/resolve"
)

func writeRows[T any](t *testing.T, rows []T) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, parquet.Write(&b, rows))
	path := filepath.Join(t.TempDir(), "day_0.parquet")
	require.NoError(t, os.WriteFile(path, b.Bytes(), 0o600))
	return path
}

type visit struct {
	Label   *int32   `parquet:"label,optional"`
	Age     *int32   `parquet:"age,optional"`
	Int0    int32    `parquet:"int_0"`
	Int1    int32    `parquet:"int_1"`
	Int2    int32    `parquet:"int_2"`
	Score   *float64 `parquet:"f,optional"`
	UserID  int32    `parquet:"userID"`
	Wide    int64    `parquet:"wide"`
	Narrow  int32    `parquet:"narrow"`
	Token   *string  `parquet:"token,optional"`
	Comment string   `parquet:"comment"`
	At      int64    `parquet:"at,timestamp"`
	IDs     []int64  `parquet:"ids,list"`
	Scores  []float64
	Ok      bool             `parquet:"ok"`
	Counts  map[string]int32 `parquet:"counts"`
}

func TestNew(t *testing.T) {
	token, age := "00ff", int32(7)
	path := writeRows(t, []visit{
		{Label: new(int32), Age: &age, Int2: 5000, Token: &token, Comment: "great", IDs: []int64{1, 2},
			Counts: map[string]int32{"a": 1}},
		{Int0: -1, Comment: "not hexadecimal"},
	})
	d, err := New(t.Context(), source.ParseLocations(path), Options{})
	require.NoError(t, err)
	assert.Equal(t, 2, d.Rows)
	assert.Equal(t, `# A draft, made by millrace pipeline init from day_0.parquet: 2 rows, all were looked at.
# Comments say what was assumed: read them, and change what is wrong.
name: day_0
batch: 8192
# Ids are hashed below 500000, which fits int32.
ids: int32
# The label, because of its name; seen: 0 to 0.
# The column may hold nulls: a null label becomes 0.
label: {column: label, null: 0}
dense:
  # Whole numbers, taken for amounts because of their names; seen: 7 to 7.
  # A null becomes 0.
  - columns: [age]
    ops: [{fill_null: 0}]
  # Whole numbers, taken for amounts because of their names; seen: -1 to 5000.
  # A number below 0 becomes 0; then ln(x + 1), since some are large.
  - columns: [int_0..int_2]
    ops: [{clamp: {min: 0}}, {log: {add: 1}}]
  # Real numbers; seen: 0 to 0.
  # A null becomes 0.
  - columns: [f]
    ops: [{fill_null: 0}]
  # Whole numbers of at most 32 bits, taken for amounts: their names do not tell; seen: 0 to 0.
  - columns: [narrow]
  # Booleans, which become 0 and 1; seen: 0 to 0.
  - columns: [ok]
sparse:
  # Whole numbers, taken for ids because of their names; seen: 0 to 0.
  - columns: [userID]
    ops: [{sigrid_hash: {salt: 0, max: 500000}}]
  # Whole numbers of 64 bits, taken for ids: their names do not tell; seen: 0 to 0.
  - columns: [wide]
    ops: [{sigrid_hash: {salt: 0, max: 500000}}]
  # Text whose values are hexadecimal, read as numbers below 2^32; seen: 255 to 255.
  # A null becomes the id 0.
  - columns: [token]
    ops: [hex_to_int, {fill_null: 0}, {sigrid_hash: {salt: 0, max: 500000}}]
  # Text, whose values are taken for categories and hashed.
  - columns: [comment]
    ops: [{hash_bytes: xxh3}, {sigrid_hash: {salt: 0, max: 500000}}]
  # Lists of whole numbers, taken for ids; seen: 1 to 2.
  - columns: [ids]
    ops: [{sigrid_hash: {salt: 0, max: 500000}}]
  # Text whose values are hexadecimal, read as numbers below 2^32; seen: 10 to 10.
  - columns: [counts.key_value.key]
    ops: [hex_to_int, {fill_null: 0}, {sigrid_hash: {salt: 0, max: 500000}}]
  # Lists of whole numbers, taken for ids; seen: 1 to 1.
  - columns: [counts.key_value.value]
    ops: [{sigrid_hash: {salt: 0, max: 500000}}]
`, documentWithoutFoot(d))
	left := map[string]string{}
	for _, column := range d.LeftOut {
		left[column.Column] = column.Why
		assert.Contains(t, string(d.Document), "#   "+column.Column+":")
	}
	assert.Contains(t, left["at"], "TIMESTAMP")
	assert.Contains(t, left["Scores"], "list of real numbers")
	assert.Contains(t, left["counts"], "name them, as counts[color, size]")
	assert.Len(t, left, 3, "%v", left)
}

// documentWithoutFoot returns the document without its list of columns that were left out.
func documentWithoutFoot(d *Draft) string {
	before, _, _ := strings.Cut(string(d.Document), "# Left out:")
	return strings.TrimRight(before, "\n") + "\n"
}

func TestNothingToDraft(t *testing.T) {
	type row struct {
		At int64 `parquet:"at,timestamp"`
	}
	path := writeRows(t, []row{{1}})
	_, err := New(t.Context(), source.ParseLocations(path), Options{})
	var nothing *NothingError
	require.ErrorAs(t, err, &nothing)
	assert.Len(t, nothing.LeftOut, 1)
	require.ErrorContains(t, err, "no column can become a feature; at: its values are TIMESTAMP")
	_, err = New(t.Context(), source.ParseLocations(path+".none"), Options{})
	require.ErrorIs(t, err, os.ErrNotExist)
}

// TestFileWithoutRows checks that a file without rows is drafted by types and names.
func TestFileWithoutRows(t *testing.T) {
	d, err := New(t.Context(), source.ParseLocations(writeRows(t, []visit{})), Options{})
	require.NoError(t, err)
	assert.Zero(t, d.Rows)
	assert.Len(t, d.Spec.Sparse, 6, "text counts as hexadecimal until some is seen")
}

func TestRolesByName(t *testing.T) {
	for name, want := range map[string]role{
		"user_id": roleID, "userId": roleID, "C14": roleID, "cat_3": roleID, "country_code": roleID, "zip": roleID,
		"I1": roleNumber, "int_12": roleNumber, "num_clicks": roleNumber, "user_age": roleNumber, "itemPrice": roleNumber,
		"age_code": roleID, "x": roleNumber, "id_count": roleNumber,
	} {
		g := &guess{column: columntypes.Column{Name: name, Kind: program.Int64, Bits: 32}}
		g.decideRole()
		assert.Equal(t, want, g.role, name)
	}
	g := &guess{column: columntypes.Column{Name: "x", Kind: program.Int64}}
	g.decideRole()
	assert.Equal(t, roleID, g.role, "64 bits")
}

func TestLabelIsTheLikeliestName(t *testing.T) {
	columns := []columntypes.Column{{Name: "y", Kind: program.Int64}, {Name: "Click", Kind: program.Float32},
		{Name: "label", Kind: program.Bytes}}
	guesses := guessColumns(columns, nil)
	assert.Equal(t, roleLabel, guesses[1].role, "text is not a label, and click comes before y")
	assert.Equal(t, roleID, guesses[0].role)
}

// TestDocumentsReadBack checks with files of any names and types that the document is read back to a pipeline that
// makes a feature of every column that was not left out, in the columns' order.
func TestDocumentsReadBack(t *testing.T) {
	names := rapid.OneOf(rapid.StringN(0, 12, -1), rapid.StringMatching(`[ab]_[0-9]{1,2}`),
		rapid.SampledFrom([]string{"null", "a..b", "x*", "*", "a[1]", "int_0..int_2", "# a", "- b", "true", "1", "~",
			"a: b", "label", "LABEL", "\n", "\t\n", "a\n\tb", "[", "{", "!t", "&a", "a,b", "…", "\u0085", "\u2028", "é"}))
	kinds := rapid.SampledFrom([]program.Kind{program.Int64, program.Float32, program.Float64, program.Bytes})
	rapid.Check(t, func(r *rapid.T) {
		var columns []columntypes.Column
		taken := map[string]bool{}
		for range rapid.IntRange(0, 12).Draw(r, "columns") {
			c := columntypes.Column{Name: names.Draw(r, "name"), Kind: kinds.Draw(r, "kind"),
				List: rapid.Bool().Draw(r, "list"), Nullable: rapid.Bool().Draw(r, "nullable"),
				Bits: rapid.SampledFrom([]uint8{0, 1, 8, 32}).Draw(r, "bits")}
			if c.Kind != program.Int64 {
				c.Bits = 0
			}
			if !taken[c.Name] {
				columns = append(columns, c)
			}
			taken[c.Name] = true
		}
		guesses := guessColumns(columns, nil)
		for _, g := range guesses {
			if g.role == roleID && g.isText() && rapid.Bool().Draw(r, "hashed") {
				g.takeForCategories()
			}
			if rapid.Bool().Draw(r, "seen") {
				g.seen.add(rapid.Float64().Draw(r, "least"))
				g.seen.add(rapid.Float64().Draw(r, "greatest"))
			}
		}
		decideOperators(guesses)
		var leftOut []LeftOut
		var label string
		var dense, keys []string
		for _, g := range guesses {
			switch g.role {
			case roleLeftOut:
				leftOut = append(leftOut, LeftOut{g.column.Name, g.why})
			case roleLabel:
				label = g.column.Name
			case roleNumber:
				dense = append(dense, g.column.Name)
			case roleID:
				keys = append(keys, g.column.Name)
			}
		}
		w := writer{files: source.ParseLocations(names.Draw(r, "file") + ".parquet"), columns: columns}
		document, err := w.document(guesses, leftOut)
		require.NoError(r, err)
		if document == nil {
			require.Len(r, leftOut, len(columns))
			return
		}
		spec, err := pipeline.Parse(document)
		require.NoError(r, err, "%s", document)
		resolved, err := resolve.Pipeline(spec, columns)
		require.NoError(r, err, "%s", document)
		_, _, err = lowering.Lower(resolved)
		require.NoError(r, err, "%s", document)
		columnsOf := func(features []resolve.Feature) (list []string) {
			for i := range features {
				list = append(list, features[i].Column.Name)
			}
			return list
		}
		require.Equal(r, dense, columnsOf(resolved.Dense), "%s", document)
		require.Equal(r, keys, columnsOf(resolved.Keys), "%s", document)
		if resolved.Label != nil {
			require.Equal(r, label, resolved.Label.Column.Name)
		} else {
			require.Empty(r, label)
		}
	})
}

func TestRangesOfValues(t *testing.T) {
	var r valueRange
	r.add(math.NaN())
	assert.Empty(t, r.comment())
	r.add(-1)
	r.add(2.5)
	assert.Equal(t, "; seen: -1 to 2.5", r.comment())
	r.add(math.Inf(1))
	assert.Equal(t, "; seen: -1 to +Inf", r.comment())
}
