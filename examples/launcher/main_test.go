package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const printed = `dense [price], sparse [item], label true
mini-batch 0: 200 rows, click rate 0.250
mini-batch 1: 200 rows, click rate 0.250
mini-batch 2: 100 rows, click rate 0.250
mini-batch 3: 200 rows, click rate 0.250
mini-batch 4: 200 rows, click rate 0.250
mini-batch 5: 100 rows, click rate 0.250
500 rows by the drive (vendor)
500 rows by the drive (vendor)
`

func TestPrints(t *testing.T) {
	var out strings.Builder
	require.NoError(t, run(t.Context(), &out))
	assert.Equal(t, printed, out.String())
}
