package resolve

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/sdk/pipeline/problem"
)

// The number of borders is bounded over the whole pipeline, however few bytes ask for them.
func TestBordersAreBounded(t *testing.T) {
	for below, ok := range map[int]bool{2: true, 1: false} {
		r := &resolver{List: &problem.List{}, borders: maxTables - below}
		err := r.countNumbers("borders", 2)
		if ok {
			require.NoError(t, err)
			require.NoError(t, r.countNumbers("borders", 2), "the same borders count once")
			require.Error(t, r.countNumbers("others", 1))
			continue
		}
		require.EqualError(t, err, "the pipeline has more than 4194304 borders in all")
	}
}
