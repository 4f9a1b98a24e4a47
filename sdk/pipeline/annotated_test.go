package pipeline_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/catalogue"
	"github.com/millrace/millrace/fpga/operator/decimal"
	"github.com/millrace/millrace/fpga/operator/int96time"
	"github.com/millrace/millrace/fpga/operator/rescale"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/pipeline/columntypes"
	"github.com/millrace/millrace/sdk/pipeline/lowering"
	"github.com/millrace/millrace/sdk/pipeline/resolve"
)

// annotatedColumns are columns whose file says what their values stand for.
func annotatedColumns() []columntypes.Column {
	whole := func(name, logical string, bits uint8) columntypes.Column {
		return columntypes.Column{Name: name, Kind: program.Int64, Logical: logical, Bits: bits}
	}
	kept := func(name, logical string) columntypes.Column {
		return columntypes.Column{Name: name, Kind: program.Bytes, Logical: logical}
	}
	halves := kept("halves", "FLOAT16")
	halves.List = true
	return []columntypes.Column{
		whole("number", "", 0), whole("millis", "TIMESTAMP(MILLIS)", 0), whole("micros", "TIMESTAMP(MICROS)", 0),
		whole("nanos", "TIMESTAMP(NANOS)", 0), whole("bare", "TIMESTAMP", 0), whole("date", "DATE", 32),
		whole("noon", "TIME(MILLIS)", 32), kept("int96", "INT96"), whole("price", "DECIMAL(9, 2)", 32),
		kept("wide", "DECIMAL(38, 10)"), kept("too_wide", "DECIMAL(77, 2)"), kept("negative", "DECIMAL(5, -1)"),
		kept("half", "FLOAT16"), halves, kept("text", ""),
		{Name: "real", Kind: program.Float64},
	}
}

// resolveAnnotated resolves a document against annotatedColumns.
func resolveAnnotated(t *testing.T, document string) (*resolve.Resolved, error) {
	t.Helper()
	s, err := pipeline.Parse([]byte(document))
	require.NoError(t, err)
	return resolve.Pipeline(s, annotatedColumns())
}

func TestTimes(t *testing.T) {
	for _, c := range []struct {
		column, op string
		want       []program.Op
		ids        catalogue.Range
	}{
		{"millis", "to_seconds", []program.Op{rescale.Op{Multiplier: 1, Divisor: 1000}},
			catalogue.Range{Low: -9223372036854776, High: 9223372036854775}},
		{"micros", "to_seconds", []program.Op{rescale.Op{Multiplier: 1, Divisor: 1e6}},
			catalogue.Range{Low: -9223372036855, High: 9223372036854}},
		{"nanos", "to_days", []program.Op{rescale.Op{Multiplier: 1, Divisor: 86400e9}}, catalogue.Range{Low: -106752,
			High: 106751}},
		{"noon", "to_seconds", []program.Op{rescale.Op{Multiplier: 1, Divisor: 1000}}, catalogue.Range{Low: -2147484,
			High: 2147483}},
		{"noon", "to_days: {unit: millis}", []program.Op{rescale.Op{Multiplier: 1, Divisor: 86400e3}},
			catalogue.Range{Low: -25, High: 24}},
		{"date", "to_days", nil, catalogue.Range{Low: math.MinInt32, High: math.MaxInt32}},
		{"date", "to_seconds", []program.Op{rescale.Op{Multiplier: 86400, Divisor: 1}},
			catalogue.Range{Low: math.MinInt32 * 86400, High: math.MaxInt32 * 86400}},
		{"number", "to_seconds: {unit: days}", []program.Op{rescale.Op{Multiplier: 86400, Divisor: 1}},
			catalogue.AllIntegers},
		{"number", "to_seconds: {unit: seconds}", nil, catalogue.AllIntegers},
		{"number", "to_days: {unit: seconds}", []program.Op{rescale.Op{Multiplier: 1, Divisor: 86400}},
			catalogue.Range{Low: -106751991167301, High: 106751991167300}},
		{"micros", "to_seconds: {unit: millis}", []program.Op{rescale.Op{Multiplier: 1, Divisor: 1000}},
			catalogue.Range{Low: -9223372036854776, High: 9223372036854775}},
		{"int96", "to_seconds", []program.Op{int96time.Op{To: int96time.Seconds}},
			catalogue.AllIntegers},
		{"int96", "to_days", []program.Op{int96time.Op{To: int96time.Days}}, catalogue.AllIntegers},
		{"price", "decimal: int64", nil, catalogue.Range{Low: math.MinInt32, High: math.MaxInt32}},
		{"wide", "decimal: int64", []program.Op{decimal.Op{To: program.Int64}}, catalogue.AllIntegers},
	} {
		t.Run(c.column+" "+c.op, func(t *testing.T) {
			r, err := resolveAnnotated(t, "sparse: [{columns: ["+c.column+"], ops: ["+c.op+"]}]")
			require.NoError(t, err)
			assert.Equal(t, c.want, r.Keys[0].Ops)
			assert.Equal(t, c.ids, r.Keys[0].IDs)
			_, _, err = lowering.Lower(r)
			require.NoError(t, err)
		})
	}
}

// TestTimesBehindOtherOperators checks that operators which leave the unit of a time alone may come first.
func TestTimesBehindOtherOperators(t *testing.T) {
	r, err := resolveAnnotated(t, "dense: [{columns: [millis], ops: [fill_null: 0, clamp: {min: 0}, to_seconds]}]")
	require.NoError(t, err)
	assert.Len(t, r.Dense[0].Ops, 4)
	_, err = resolveAnnotated(t, "sparse: [{columns: [millis], ops: [to_seconds, to_days]}]")
	require.ErrorContains(t, err, "to_days does not know what the values count: operators before it have changed "+
		"TIMESTAMP(MILLIS); say unit: seconds, millis, micros, nanos or days")
	r, err = resolveAnnotated(t, "sparse: [{columns: [millis], ops: [to_seconds, to_days: {unit: seconds}]}]")
	require.NoError(t, err)
	assert.Len(t, r.Keys[0].Ops, 2)
}

func TestDecimalsAndHalves(t *testing.T) {
	r, err := resolveAnnotated(t, `dense:
  - {columns: [price, wide], ops: [decimal: float32]}
  - {columns: [wide], as: double, ops: [decimal: float64, clamp: {min: 0}]}
  - {columns: [half], ops: [log: {add: 1}]}
  - {columns: [price], as: dollars}
sparse: [{columns: [halves], ops: [fill_null: 1, bucketize: {borders: [1, 2]}]}]
`)
	require.NoError(t, err)
	p, _, err := lowering.Lower(r)
	require.NoError(t, err)
	assert.Equal(t, `source parquet
column 0 "halves" list<bytes>
  sparse 0: float16 | fill_null 1 | bucketize borders float32 [1 2] side left nan torcharrow
column 1 "price" int64
  dense 0: decimal scale 2 to float32
  dense 4: decimal scale 2 to float32
column 2 "wide" bytes
  dense 1: decimal scale 10 to float32
  dense 2: decimal scale 10 to float64 | clamp min 0 max +Inf | convert float32
column 3 "half" bytes
  dense 3: float16 | log 1 refuses nan
output label false, dense 5, keys 1, ids int64, fixed false
`, p.String())
	assert.Contains(t, string(r.Canonical()), `"ops":[{"decimal":{"scale":10,"to":"float32"}}]`)
	assert.Contains(t, string(r.Canonical()), `"ops":[{"float16":{}},{"log":{"add":"3f800000"}}]`)
}

// TestPartitionsOfSeveralTypes checks how a column is read whose partitions have several units, scales or kinds, or the
// type null, and that the error of types which cannot be read as one names both partitions.
func TestPartitionsOfSeveralTypes(t *testing.T) {
	whole := func(logical string) columntypes.Column {
		return columntypes.Column{Kind: program.Int64, Logical: logical}
	}
	kept := func(logical string) columntypes.Column {
		return columntypes.Column{Kind: program.Bytes, Logical: logical}
	}
	null := columntypes.Column{Kind: program.Int64, Nullable: true,
		Null: columntypes.NullSomewhere | columntypes.NullEverywhere}
	nullList := null
	nullList.List, nullList.ElementNullable, nullList.Null = true, true, null.Null|columntypes.NullLists
	ids := columntypes.Column{Kind: program.Int64, List: true}
	words := columntypes.Column{Kind: program.Bytes, List: true}
	real64 := columntypes.Column{Kind: program.Float64, Nullable: true}
	const dense, sparse, hashed, words1 = "dense: [{columns: [c], ops: [fill_null: 0]}]", "sparse: [{columns: [c]}]",
		"sparse: [{columns: [c], ops: [sigrid_hash: {max: 100}]}]", "sparse: [{columns: [c], ops: [hash_bytes: xxh3]}]"
	const seconds, days = "sparse: [{columns: [c], ops: [to_seconds]}]", "sparse: [{columns: [c], ops: [to_days]}]"
	for name, c := range map[string]struct {
		a, b       columntypes.Column
		document   string
		want, fail string // the line of the column and its sink, or the error
	}{
		"one decimal in dense": {whole("DECIMAL(9, 2)"), whole("DECIMAL(9, 2)"), dense,
			"int64\n  dense 0: decimal scale 2 to float32 | fill_null 0", ""},
		"two scales in dense": {whole("DECIMAL(9, 2)"), whole("DECIMAL(9, 3)"), dense,
			"float32 by annotation\n  dense 0: fill_null 0", ""},
		"two scales, decimal": {whole("DECIMAL(9, 2)"), kept("DECIMAL(30, 3)"),
			"dense: [{columns: [c], ops: [decimal: float64, clamp: {min: 0}]}]",
			"float64 by annotation\n  dense 0: clamp min 0 max +Inf | convert float32", ""},
		"two scales as ids": {whole("DECIMAL(9, 2)"), whole("DECIMAL(9, 3)"), sparse, "",
			`it is DECIMAL(9, 2) in "a", DECIMAL(9, 3) in "b"`},
		"two scales in a step": {whole("DECIMAL(9, 2)"), whole("DECIMAL(9, 3)"),
			"generated: [{inputs: [c, k], as: x, ops: [hash_cross: {buckets: 9}]}]", "", `DECIMAL(9, 3) in "b"`},
		"a decimal in a value": {whole("DECIMAL(9, 2)"), whole("DECIMAL(9, 2)"),
			"values: [{as: v, from: c, ops: [fill_null: 0]}]\ndense: [{columns: [v]}]",
			"int64\n  dense 0: decimal scale 2 to float32 | fill_null 0", ""},
		"two scales in a value": {whole("DECIMAL(9, 2)"), whole("DECIMAL(9, 3)"),
			"values: [{as: v, from: c, ops: [fill_null: 0]}]\ndense: [{columns: [v]}]",
			"float32 by annotation\n  dense 0: fill_null 0", ""},
		"scores of two scales": {whole("DECIMAL(9, 2)"), whole("DECIMAL(9, 3)"),
			"generated: [{inputs: [k, c], as: x, ops: [with_scores]}]", "float32 by annotation\n", ""},
		"two scales to int64": {whole("DECIMAL(9, 2)"), whole("DECIMAL(9, 3)"),
			"sparse: [{columns: [c], ops: [decimal: int64]}]", "", `DECIMAL(9, 3) in "b"`},
		"one scale, two precisions": {whole("DECIMAL(9, 2)"), whole("DECIMAL(18, 2)"), sparse,
			"int64\n  sparse 0:", ""},
		"one scale in two storages": {whole("DECIMAL(9, 2)"), kept("DECIMAL(9, 2)"), sparse,
			"int64 by annotation\n  sparse 0:", ""},
		"decimal and real": {whole("DECIMAL(9, 2)"), real64, dense,
			"float32 by annotation\n  dense 0: fill_null 0", ""},
		"decimal and integers": {whole("DECIMAL(9, 2)"), whole(""), sparse, "",
			`DECIMAL(9, 2) in "a", int64 in "b"`},
		"integers and reals as ids": {whole(""), real64, hashed, "int64 by annotation\n  sparse 0: sigrid_hash", ""},
		"integers and reals in a step": {whole(""), real64,
			"generated: [{inputs: [c, k], as: x, ops: [hash_cross: {buckets: 9}]}]", "int64 by annotation\n", ""},
		"reals alone as ids":        {real64, real64, hashed, "int64 by annotation\n  sparse 0: sigrid_hash", ""},
		"integers and reals, dense": {whole(""), real64, dense, "float32 by annotation\n  dense 0: fill_null 0", ""},
		"units, to_seconds": {whole("TIMESTAMP(MILLIS)"), whole("TIMESTAMP(MICROS)"), seconds,
			"int64 by annotation in seconds\n  sparse 0:", ""},
		"date and time, to_days": {whole("DATE"), whole("TIMESTAMP(MICROS)"), days,
			"int64 by annotation in seconds\n  sparse 0: rescale multiplier 1 divisor 86400", ""},
		"INT96 and micros": {kept("INT96"), whole("TIMESTAMP(MICROS)"), seconds,
			"int64 by annotation in seconds\n  sparse 0:", ""},
		"units, no operator": {whole("TIMESTAMP(MILLIS)"), whole("TIMESTAMP(MICROS)"), sparse, "",
			`it is TIMESTAMP(MILLIS) in "a", TIMESTAMP(MICROS) in "b"; begin with to_seconds or to_days`},
		"date and time, no operator": {whole("DATE"), whole("TIMESTAMP(MICROS)"), dense, "",
			`it is DATE in "a", TIMESTAMP(MICROS) in "b"`},
		"units, said": {whole("TIMESTAMP(MILLIS)"), whole("TIMESTAMP(MICROS)"),
			"sparse: [{columns: [c], ops: [to_seconds: {unit: millis}]}]", "", "each partition says its own"},
		"clock and instant": {whole("TIME(MILLIS)"), whole("DATE"), seconds, "",
			"it is TIME(MILLIS) in a and DATE in b"},
		"instant and integer": {whole("DATE"), whole(""), seconds, "", "it is DATE in a and int64 in b"},
		"null alone":          {null, null, words1, "bytes may be absent\n  sparse 0: hash_bytes", ""},
		"null alone in dense": {null, null, dense, "int64 may be absent\n  dense 0: fill_null 0", ""},
		"null and text":       {null, kept(""), words1, "bytes may be absent\n  sparse 0: hash_bytes", ""},
		"real and null":       {real64, null, dense, "float64 may be absent\n  dense 0: fill_null 0", ""},
		"null and lists":      {null, ids, sparse, "list<int64> may be absent\n  sparse 0:", ""},
		"null lists and text": {nullList, words, words1,
			"list<bytes> may be absent by annotation\n  sparse 0: hash_bytes", ""},
		"null lists and numbers": {nullList, whole(""), sparse, "", "it is a list of null in a and int64 in b"},
	} {
		t.Run(name, func(t *testing.T) {
			c.a.Name, c.b.Name = "c", "c"
			key := columntypes.Column{Name: "k", Kind: program.Int64}
			var u columntypes.Union
			u.Add([]string{"a"}, []columntypes.Column{c.a, key})
			u.Add([]string{"b"}, []columntypes.Column{c.b, key})
			_, p, err := lower(c.document, u.Columns())
			if c.fail != "" {
				require.ErrorContains(t, err, c.fail)
				return
			}
			require.NoError(t, err)
			assert.Contains(t, p.String(), `"c" `+c.want)
			var parts columntypes.Union // a control plane unifies what nodes have unified
			parts.Add([]string{"a"}, u.Columns())
			parts.Add([]string{"b"}, u.Columns())
			assert.Equal(t, u.Columns()[0].Logical, parts.Columns()[0].Logical)
		})
	}
}

// mostTypes is the largest number of types that a column lists.
const mostTypes = 16

// TestManyScalesBesideATime checks that a column of more types than it lists is not read with a type of another class.
func TestManyScalesBesideATime(t *testing.T) {
	var u columntypes.Union
	for scale := range 2 * mostTypes {
		c := columntypes.Column{Name: "c", Kind: program.Bytes, Logical: fmt.Sprintf("DECIMAL(38, %d)", scale)}
		u.Add([]string{fmt.Sprint("s", scale)}, []columntypes.Column{c})
	}
	const document = "dense: [{columns: [c], ops: [fill_null: 0]}]"
	_, _, err := lower(document, u.Columns())
	require.NoError(t, err)
	u.Add([]string{"last"}, []columntypes.Column{{Name: "c", Kind: program.Int64, Logical: "TIMESTAMP(MICROS)"}})
	_, _, err = lower(document, u.Columns())
	require.ErrorContains(t, err, "TIMESTAMP(MICROS)")
}

// TestDecimalsOfManyPrecisions checks that precisions do not crowd another scale out of the types that a column lists.
func TestDecimalsOfManyPrecisions(t *testing.T) {
	var u columntypes.Union
	for precision := 10; precision < 10+2*mostTypes; precision++ {
		name := fmt.Sprint("p", precision)
		c := columntypes.Column{Name: "c", Kind: program.Bytes, Logical: fmt.Sprintf("DECIMAL(%d, 2)", precision)}
		if precision == 10 {
			c.Kind = program.Int64
		}
		u.Add([]string{name}, []columntypes.Column{c})
	}
	_, _, err := lower("sparse: [{columns: [c]}]", u.Columns())
	require.NoError(t, err)
	u.Add([]string{"last"}, []columntypes.Column{{Name: "c", Kind: program.Int64, Logical: "DECIMAL(9, 3)"}})
	_, _, err = lower("sparse: [{columns: [c]}]", u.Columns())
	require.ErrorContains(t, err, `DECIMAL(9, 3) in "last"`)
}
