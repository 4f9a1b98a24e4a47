package pipeline_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/operator/bucketize"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/pipeline/problem"
)

func TestErrorsAreBounded(t *testing.T) {
	var doc strings.Builder
	doc.WriteString("dense:\n")
	for range 10 * problem.MaxErrors {
		doc.WriteString("  - {columns: [i], ops: [nonsense]}\n")
	}
	_, err := pipeline.Parse([]byte(doc.String()))
	var list problem.Errors
	require.ErrorAs(t, err, &list)
	assert.Len(t, list, problem.MaxErrors)

	doc.Reset()
	doc.WriteString("dense:\n")
	for i := range 10 * problem.MaxErrors {
		fmt.Fprintf(&doc, "  - {columns: [missing_%d]}\n", i)
	}
	_, _, err = lower(doc.String(), zoo())
	require.ErrorAs(t, err, &list)
	assert.Len(t, list, problem.MaxErrors)
}

func TestErrorsKeepForeignTextShort(t *testing.T) {
	_, err := pipeline.Parse([]byte("dense: [{columns: [i], ops: [" + strings.Repeat("x", 100000) + "]}]"))
	require.ErrorIs(t, err, problem.ErrUnknownOperator)
	assert.ErrorContains(t, err, "want one of "+strings.Join(catalogueNames(), ", "))
	assert.Less(t, len(err.Error()), 1024) // it lists the operators
	_, err = pipeline.Parse([]byte(`dense: [{columns: [i], "a\nb": 1}]`))
	require.ErrorIs(t, err, problem.ErrUnknownKey)
	assert.NotContains(t, err.Error(), "\n", "a name cannot forge a line")
}

func TestAliases(t *testing.T) {
	t.Run("share a list of operators", func(t *testing.T) {
		_, p, err := lower("dense: [{columns: [i], ops: &ops [clamp: {min: 0}]}]\nsparse: [{columns: [c_0], ops: "+
			"*ops}]", zoo())
		require.NoError(t, err)
		assert.Equal(t, p.Columns[0].Sinks[0].Ops[0], p.Columns[1].Sinks[0].Ops[0])
	})
	t.Run("to an unknown anchor", func(t *testing.T) {
		_, err := pipeline.Parse([]byte("dense: *nothing"))
		require.ErrorIs(t, err, problem.ErrSyntax)
	})
	t.Run("to what holds them", func(t *testing.T) {
		_, err := pipeline.Parse([]byte("dense: &a [{columns: *a}]"))
		require.Error(t, err)
	})
	t.Run("a bomb", func(t *testing.T) {
		var doc strings.Builder
		doc.WriteString("sparse:\n  - columns: [i]\n    ops:\n      - bucketize: {borders: &b [" + strings.Repeat("1,",
			100000) + "1]}\n")
		for range 1000 {
			doc.WriteString("  - {columns: [i], ops: [bucketize: {borders: *b}]}\n")
		}
		_, err := pipeline.Parse([]byte(doc.String()))
		require.ErrorIs(t, err, problem.ErrSyntax)
		assert.ErrorContains(t, err, "the document comes to more than 1048576 values")
	})
}

func TestDocumentThatIsTooLarge(t *testing.T) {
	const most = 4 << 20
	doc := []byte("label: {column: label}\n" + strings.Repeat("\n", most))
	_, err := pipeline.Parse(doc[:most])
	require.NoError(t, err)
	_, err = pipeline.Parse(doc[:most+1])
	require.EqualError(t, err, "pipeline: syntax error: the document has 4194305 bytes, want at most 4194304")
}

// Features of the same borders share one operator.
func TestBordersAreShared(t *testing.T) {
	_, p, err := lower("generated: [{columns: [i, f], ops: [bucketize: {borders: "+
		"{log_spaced: {from: 1, to: 9, count: 4}}}]}]", zoo())
	require.NoError(t, err)
	var made []*bucketize.Op
	for _, c := range p.Columns {
		for _, op := range c.Sinks[0].Ops {
			if b, ok := op.(*bucketize.Op); ok {
				made = append(made, b)
			}
		}
	}
	require.Len(t, made, 2)
	assert.Same(t, made[0], made[1])
}

// readsText is the end of the errors about text, in front of which an operator stands that does not take it.
const readsText = "hash_bytes for categories, text_to_int for decimal numbers, hex_to_int for hexadecimal ones, or " +
	"text_to_seconds for times"
