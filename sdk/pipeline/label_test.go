package pipeline_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/pipeline/problem"
)

// The label's "null: VALUE" is fill_null written shortly: the same spec, so the same job.
func TestLabelNullIsFillNull(t *testing.T) {
	for short, long := range map[string]string{
		"label: {column: i_null, null: 0}":  "label: {column: i_null, ops: [fill_null: 0]}",
		"label: {column: i_null, null: -3}": "label: {column: i_null, ops: [fill_null: -3]}",
		"label: {column: f_null, null: 0.5}": "label: {column: f_null, ops: [fill_null: " +
			"0.5]}",
		"label: {null: 2, ops: [clamp: {max: 1}], column: f}": "label: {column: f, ops: [fill_null: 2, " +
			"clamp: {max: 1}]}",
		"label: {column: i, null: fail}":             "label: {column: i}",
		`{"label": {"column": "i_null", "null": 7}}`: "label: {column: i_null, ops: [fill_null: 7]}",
		"label: {column: f_null, nan: 0.5, null: 1}": "label: {column: f_null, ops: [fill_null: 1, fill_nan: 0.5]}",
		"label: {column: f, nan: fail}":              "label: {column: f}",
		"label: {column: i_null, \"null\": 7, ops: [clamp: {min: 0}]}": "label: {column: i_null, ops: [fill_null: 7, " +
			"clamp: {min: 0}]}",
	} {
		a, err := pipeline.Parse([]byte(short))
		require.NoError(t, err, short)
		b, err := pipeline.Parse([]byte(long))
		require.NoError(t, err, long)
		assert.Equal(t, string(b.YAML()), string(a.YAML()), short)
	}
	_, err := pipeline.Parse([]byte("label: {column: i, null: 0, null: 1}"))
	assert.ErrorIs(t, err, problem.ErrDuplicate)
}
