package pipeline_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/internal/goldenfile"
)

// TestFormOfThePipeline holds the canonical form of a pipeline with every operator: a job's digest is taken over it, so
// tokens and mini-batches lose their names where it changes.
func TestFormOfThePipeline(t *testing.T) {
	r, _, err := lower(goodDocuments(t)["every_operator"], zoo())
	require.NoError(t, err)
	goldenfile.Text(t, "resolve/testdata/canonical.v2.json", string(r.Canonical())+"\n")
}
