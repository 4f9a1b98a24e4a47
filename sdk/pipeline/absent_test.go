package pipeline_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/pipeline/columntypes"
	"github.com/millrace/millrace/sdk/pipeline/lowering"
	"github.com/millrace/millrace/sdk/pipeline/resolve"
)

// lackingSchema is the columns of three partitions, the first of which lacks most.
func lackingSchema() []columntypes.Column {
	label := columntypes.Column{Name: "label", Source: program.Parquet, Kind: program.Int64, Bits: 32}
	id := columntypes.Column{Name: "id", Source: program.Parquet, Kind: program.Int64}
	rate := columntypes.Column{Name: "rate", Source: program.Parquet, Kind: program.Float32}
	list := columntypes.Column{Name: "list", Source: program.Parquet, Kind: program.Int64, List: true}
	mapped := columntypes.Column{Name: "map", Source: program.Parquet, Kind: program.Int64, List: true, Nullable: true,
		Map: columntypes.Map{Keys: "map.k", Values: "map.v", Scores: "map.s", ScoreKind: program.Float32}}
	var u columntypes.Union
	u.Add([]string{"a.parquet"}, []columntypes.Column{id})
	u.Add([]string{"b.parquet"}, []columntypes.Column{label, id, rate, list, mapped})
	u.Add([]string{"c.parquet"}, []columntypes.Column{label, id, rate})
	return u.Columns()
}

// TestAbsentColumns checks that groups that allow it read columns that partitions lack, and how the program says so.
func TestAbsentColumns(t *testing.T) {
	const doc = `label: {column: label, null: -1}
values:
  - as: crossed
    inputs: [id, list]
    absent: allow
    ops: [cartesian: {max_length: 10}]
dense:
  - columns: [rate]
    absent: allow
    ops: [fill_null: 0]
sparse:
  - columns: [list]
    absent: allow
  - columns: ["map[3, 4]"]
    absent: allow
  - columns: [id]
  - columns: [crossed]
`
	s, err := pipeline.Parse([]byte(doc))
	require.NoError(t, err)
	again, err := pipeline.Parse(s.YAML())
	require.NoError(t, err)
	assert.Equal(t, string(s.YAML()), string(again.YAML()))
	assert.Contains(t, string(s.JSON()), `"absent":"allow"`)
	r, err := resolve.Pipeline(s, lackingSchema())
	require.NoError(t, err)
	p, _, err := lowering.Lower(r)
	require.NoError(t, err)
	absent := map[string]bool{}
	for i := range p.Columns {
		absent[p.Columns[i].Name] = absent[p.Columns[i].Name] || p.Columns[i].Absent
	}
	assert.Equal(t, map[string]bool{"label": true, "rate": true, "list": true, "map.k": true, "map.v": true,
		"map.s": true, "id": true}, absent, "id is an input of a value that allows it")
	assert.False(t, p.Output.Fixed)
}

// TestAbsentIsNoIdentity checks that a group that allows absent columns makes the same job whether partitions lack
// them, and that an allowed column is nullable in any data set, so that new partitions do not change the tensors.
func TestAbsentIsNoIdentity(t *testing.T) {
	s, err := pipeline.Parse([]byte("sparse: [{columns: [id], absent: allow, ops: [positive_modulus: 7]}]"))
	require.NoError(t, err)
	id := columntypes.Column{Name: "id", Source: program.Parquet, Kind: program.Int64}
	whole, err := resolve.Pipeline(s, []columntypes.Column{id})
	require.NoError(t, err)
	id.Absent = columntypes.Absence{Partitions: 1, Names: "a.parquet"}
	lacking, err := resolve.Pipeline(s, []columntypes.Column{id})
	require.NoError(t, err)
	assert.Equal(t, string(whole.Canonical()), string(lacking.Canonical()))
	assert.False(t, whole.Fixed())
	p, _, err := lowering.Lower(whole)
	require.NoError(t, err)
	assert.True(t, p.Columns[0].Absent)
}

func TestUnion(t *testing.T) {
	column := func(kind program.Kind, change func(*columntypes.Column)) columntypes.Column {
		c := columntypes.Column{Name: "c", Source: program.Parquet, Kind: kind}
		if change != nil {
			change(&c)
		}
		return c
	}
	bits := func(n uint8, unsigned bool) columntypes.Column {
		return column(program.Int64, func(c *columntypes.Column) { c.Bits, c.Unsigned = n, unsigned })
	}
	null := column(program.Int64, func(c *columntypes.Column) { c.Nullable = true })
	list := column(program.Int64, func(c *columntypes.Column) { c.List = true })
	for name, c := range map[string]struct {
		a, b, want columntypes.Column
		says       string
	}{
		"float and double":  {column(program.Float32, nil), column(program.Float64, nil), column(program.Float64, nil), ""},
		"int32 and int64":   {bits(32, false), bits(0, false), bits(0, false), ""},
		"int8 and int16":    {bits(8, false), bits(16, false), bits(16, false), ""},
		"required and not":  {column(program.Int64, nil), null, null, ""},
		"uint8 and int8":    {bits(8, true), bits(8, false), bits(16, false), ""},
		"uint16 and int8":   {bits(16, true), bits(8, false), bits(32, false), ""},
		"uint32 and int32":  {bits(32, true), bits(32, false), bits(0, false), ""},
		"uint8 and int64":   {bits(8, true), bits(0, false), bits(0, false), ""},
		"boolean and uint8": {bits(1, false), bits(8, true), bits(8, true), ""},
		"boolean and int32": {bits(1, false), bits(32, false), bits(32, false), ""},
		"uint64 and int32":  {bits(0, true), bits(32, false), columntypes.Column{}, "it is uint64 in a and int32 in b"},
		"list and scalar": {list, column(program.Int64, nil), columntypes.Column{},
			"it is a list of int64 in a and int64 in b"},
		"text and times": {column(program.Bytes, nil),
			column(program.Int64, func(c *columntypes.Column) { c.Logical = "DATE" }), columntypes.Column{},
			"it is bytes in a and DATE in b"},
		"text and integers": {column(program.Bytes, nil), bits(16, true), columntypes.Column{},
			"it is bytes in a and uint16 in b"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, swap := range []bool{false, true} {
				a, b := c.a, c.b
				if swap && c.says == "" {
					a, b = b, a
				}
				var u columntypes.Union
				u.Add([]string{"a"}, []columntypes.Column{a})
				u.Add([]string{"b"}, []columntypes.Column{b})
				got := u.Columns()
				require.Len(t, got, 1)
				if c.says == "" {
					assert.Equal(t, c.want, got[0])
					continue
				}
				require.ErrorIs(t, got[0].Unsupported, columntypes.ErrDisagree)
				assert.ErrorContains(t, got[0].Unsupported, c.says)
			}
		})
	}
}

// TestUnionNamesAbsences checks which partitions an absence names, and the order of columns.
func TestUnionNamesAbsences(t *testing.T) {
	x, y, z := columntypes.Column{Name: "x", Kind: program.Int64}, columntypes.Column{Name: "y", Kind: program.Int64},
		columntypes.Column{Name: "z", Kind: program.Int64, Unsupported: errors.New("too odd")}
	var u columntypes.Union
	u.Add([]string{"a", "b"}, []columntypes.Column{x})
	u.Add([]string{"c"}, []columntypes.Column{x})
	u.Add([]string{"d", "e"}, []columntypes.Column{z, y, x})
	u.Add([]string{"f", "g"}, []columntypes.Column{y})
	got := u.Columns()
	require.Len(t, got, 3)
	assert.Equal(t, []string{"x", "z", "y"}, []string{got[0].Name, got[1].Name, got[2].Name})
	assert.Equal(t, columntypes.Absence{Partitions: 2, Names: "f, g"}, got[0].Absent)
	assert.Equal(t, columntypes.Absence{Partitions: 5, Names: "a, b, c"}, got[1].Absent)
	assert.Equal(t, "a, b, c and 2 more", got[1].Absent.String())
	assert.Equal(t, "no partition", columntypes.Absence{}.String())
	require.EqualError(t, got[1].Unsupported, "d: too odd")

	var job columntypes.Union // a union is added to another, as a job's new partitions are
	job.Add([]string{"a", "b", "c", "d", "e", "f", "g"}, got)
	job.Add([]string{"h"}, []columntypes.Column{x, {Name: "new", Kind: program.Float32}})
	all := job.Columns()
	assert.Equal(t, columntypes.Absence{Partitions: 2, Names: "f, g"}, all[0].Absent)
	assert.Equal(t, 6, all[1].Absent.Partitions)
	require.EqualError(t, all[1].Unsupported, "d: too odd")
	assert.Equal(t, columntypes.Absence{Partitions: 7, Names: "a, b, c"}, all[3].Absent)
}
