package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const printed = `4194304 bytes of flash in blocks of 512, 67108864 bytes of memory, 1 engine thread
day_0.tsv: 78600 bytes at byte 512
mini-batch 0: 128 rows, dense [128, 13], 3328 ids
mini-batch 1: 128 rows, dense [128, 13], 3328 ids
mini-batch 2: 44 rows, dense [44, 13], 1144 ids
`

func TestPrints(t *testing.T) {
	var out strings.Builder
	require.NoError(t, run(t.Context(), &out))
	assert.Equal(t, printed, out.String())
}
