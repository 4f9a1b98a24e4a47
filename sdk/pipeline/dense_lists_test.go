package pipeline_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/pipeline/columntypes"
	"github.com/millrace/millrace/sdk/pipeline/lowering"
	"github.com/millrace/millrace/sdk/pipeline/resolve"
)

// listColumns are lists that become dense columns.
func listColumns() []columntypes.Column {
	return []columntypes.Column{
		{Name: "user", Kind: program.Float32, List: true, Nullable: true, ElementNullable: true},
		{Name: "item", Kind: program.Int64, List: true},
		{Name: "words", Kind: program.Bytes, List: true},
		{Name: "price", Kind: program.Float32},
		{Name: "packed", Kind: program.Bytes},
		{Name: "user.1", Kind: program.Float32},
		{Name: "lists", Kind: program.Float32, List: true, Map: columntypes.Map{Keys: "k", Values: "v"}},
	}
}

func TestDenseLists(t *testing.T) {
	s, err := pipeline.Parse([]byte(`dense:
  - {columns: [price]}
  - {columns: [user], ops: [fill_null: 0, log: {add: 1}, fixed_length: {length: 3}]}
  - {columns: [item], as: short, ops: [firstx: 2, fixed_length: {length: 2, pad: -0.5}]}
  - {columns: [price], as: again}
sparse: [{columns: [item]}]
`))
	require.NoError(t, err)
	r, err := resolve.Pipeline(s, listColumns())
	require.NoError(t, err)
	p, schema, err := lowering.Lower(r)
	require.NoError(t, err)
	require.NoError(t, schema.Validate())
	assert.Equal(t, []string{"price", "user.0", "user.1", "user.2", "short.0", "short.1", "again"}, schema.Dense)
	assert.Equal(t, `source parquet
column 0 "item" list<int64>
  sparse 0:
column 1 "price" float32
  dense 0: refuses nan
  dense 6: refuses nan
column 2 "user" list<float32>
  dense 1: fill_null 0 | log 1 | fixed_length 3 refuses nan
column 3 "item" list<int64>
  dense 4: firstx 2 | convert float32 | fixed_length length 2 pad -0.5
output label false, dense 7, keys 1, ids int64, fixed false
`, p.String())
	assert.Contains(t, string(r.Canonical()), `{"fixed_length":{"length":3}}`)
	assert.Contains(t, string(r.Canonical()), `{"fixed_length":{"length":2,"pad":"bf000000"}}`)
}
