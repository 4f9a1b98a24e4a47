package pipeline_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/pipeline/columntypes"
	"github.com/millrace/millrace/sdk/pipeline/resolve"
)

// TestSuggestionsAreTaken: what is proposed would be taken where it is proposed.
func TestSuggestionsAreTaken(t *testing.T) {
	schema := []columntypes.Column{
		{Name: "log", Kind: program.Int64, List: true},                           // dense takes no lists
		{Name: "lot", Kind: program.Int64, Nullable: true},                       // nor nulls
		{Name: "los_angeles", Kind: program.Float32},                             // far off
		{Name: "loss", Kind: program.Bytes, Logical: "INTERVAL", Nullable: true}, // no operator reads it
		{Name: "lost", Kind: program.Float32},
	}
	for _, c := range []struct{ doc, want string }{
		{
			"dense: [{columns: [los]}]",
			`pipeline: line 1:20: dense[0].columns[0]: missing column: "los" is not in the dataset; did you mean "lost"?`,
		},
		{
			"dense: [{columns: [los], ops: [fill_null: 0]}]",
			`pipeline: line 1:20: dense[0].columns[0]: missing column: "los" is not in the dataset; did you mean "lot"?`,
		},
		{
			"sparse: [{columns: [los]}]",
			`pipeline: line 1:21: sparse[0].columns[0]: missing column: "los" is not in the dataset; did you mean "log"?`,
		},
		{
			"label: {column: los}",
			`pipeline: line 1:8: label.column: missing column: "los" is not in the dataset; did you mean "lost"?`,
		},
		{
			"dense: [{columns: [lost], ops: [los: {add: 1}]}]",
			`pipeline: line 1:33: dense[0].ops[0]: unknown operator: "los"; did you mean "log"?`,
		},
		{
			"dense: [{columns: [lost], ops: [los: {max: 1}]}]",
			`pipeline: line 1:33: dense[0].ops[0]: unknown operator: "los"; want one of ` +
				strings.Join(catalogueNames(), ", "),
		},
		{
			"dense: [{columns: [lost], ops: [fil_null]}]",
			`pipeline: line 1:33: dense[0].ops[0]: unknown operator: "fil_null"; want one of ` +
				strings.Join(catalogueNames(), ", "),
		},
		{
			"dense: [{columns: [lost], ops: [log], opss: [clamp: {}]}]",
			`pipeline: line 1:39: dense[0].opss: unknown key: "opss"; want one of columns, inputs, ops, as, scores, ` +
				"deduplicate, absent, nan",
		},
	} {
		t.Run(c.doc, func(t *testing.T) {
			s, err := pipeline.Parse([]byte(c.doc))
			if err == nil {
				_, err = resolve.Pipeline(s, schema)
			}
			require.Error(t, err)
			assert.Equal(t, c.want, err.Error())
		})
	}
}
