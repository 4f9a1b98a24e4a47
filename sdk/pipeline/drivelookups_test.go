package pipeline_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/pipeline/lowering"
	"github.com/millrace/millrace/sdk/pipeline/resolve"
	"github.com/millrace/millrace/sdk/selection"
	"github.com/millrace/millrace/sdk/tensor"
)

// TestLookUpInDrive lowers a pipeline for drives with room for all tables, for all but a byte, for one and for none.
func TestLookUpInDrive(t *testing.T) {
	s, err := pipeline.Parse([]byte(vocabularyDocument))
	require.NoError(t, err)
	r, err := resolve.Pipeline(bindAll(t, s), zoo())
	require.NoError(t, err)
	l, err := lowering.LowerWithLookups(r)
	require.NoError(t, err)
	assert.Empty(t, l.InDrive)
	behind := []string{"i", "u32", "i_null", "l_list", "b_f"}
	assert.Equal(t, behind, l.Behind())

	all, err := l.LookUpInDrive(1 << 20)
	require.NoError(t, err)
	assert.Equal(t, behind, all.InDrive)
	assert.Empty(t, all.Behind())
	assert.Nil(t, all.Lookups)
	assert.Same(t, all.Made, all.Schema)
	assert.Equal(t, l.Schema, all.Schema)
	assert.Equal(t, program.IDs32, all.Program.Output.IDs)
	assert.Empty(t, l.Program.LookupTables, "the first form is as it was")
	assert.Contains(t, all.Program.String(), "| vocabulary ")
	for i := range all.Program.LookupTables {
		table := &all.Program.LookupTables[i]
		assert.EqualValues(t, table.Bytes(), len(table.Stored))
		assert.Len(t, table.Listed, int(table.Keys))
	}

	bytes := (all.Program.TablesBytes() + program.Align - 1) / program.Align * program.Align
	whole, err := l.LookUpInDrive(bytes)
	require.NoError(t, err)
	assert.Equal(t, behind, whole.InDrive)
	part, err := l.LookUpInDrive(bytes - 1)
	require.NoError(t, err)
	assert.Len(t, part.Program.LookupTables, len(all.Program.LookupTables)-1)
	assert.NotEmpty(t, part.InDrive)
	assert.NotEmpty(t, part.Behind())
	assert.ElementsMatch(t, behind, append(part.Behind(), part.InDrive...))
	assert.Equal(t, l.Schema, part.Schema)
	assert.Len(t, part.Lookups, len(l.Lookups))
	none, err := l.LookUpInDrive(program.Align - 1)
	require.NoError(t, err)
	assert.Same(t, l, none)
}

// TestLookupsThatStayBehind checks which lookups a drive never makes: those that drop keys, and behind a filter those
// that fail.
func TestLookupsThatStayBehind(t *testing.T) {
	const document = `ids: int64
sparse:
  - {columns: [i], ops: [vocabulary: dropping]}
  - {columns: [u32], ops: [vocabulary: failing]}
  - {columns: [i8], ops: [vocabulary: rare]}
vocabularies:
  dropping: {unknown: drop}
  failing: {}
  rare: {base: 1, rare_id: 0}
`
	s, err := pipeline.Parse([]byte(document))
	require.NoError(t, err)
	for _, name := range []string{"dropping", "failing", "rare"} {
		s, err = s.Bind(name, vocabularyOf(t, s, name, zoo()))
		require.NoError(t, err)
	}
	r, err := resolve.Pipeline(s, zoo())
	require.NoError(t, err)
	l, err := lowering.LowerWithLookups(r)
	require.NoError(t, err)
	in, err := l.LookUpInDrive(1 << 20)
	require.NoError(t, err)
	assert.Equal(t, []string{"u32", "i8"}, in.InDrive)
	assert.Equal(t, []string{"i"}, in.Behind())
	assert.Equal(t, tensor.Int64, in.Schema.IDs)
	l.Selection = &selection.Selection{}
	in, err = l.LookUpInDrive(1 << 20)
	require.NoError(t, err)
	assert.Equal(t, []string{"i8"}, in.InDrive)
	assert.Equal(t, []string{"i", "u32"}, in.Behind())
}
