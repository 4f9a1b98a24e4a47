package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const printed = `undisturbed
  mini-batch 0
  mini-batch 1
  mini-batch 2
  mini-batch 3
  mini-batch 4
killed in its fourth mini-batch
  mini-batch 0
  mini-batch 1
  mini-batch 2
started again
  mini-batch 3
  mini-batch 4
same model: true
`

func TestPrints(t *testing.T) {
	var out strings.Builder
	require.NoError(t, run(t.Context(), &out))
	assert.Equal(t, printed, out.String())
}
