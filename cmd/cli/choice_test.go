package cli

import (
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestChoice(t *testing.T) {
	var order string
	f := pflag.NewFlagSet("test", pflag.ContinueOnError)
	AddChoice(f, &order, "order", "first", "usage", "first", "last", "none")
	assert.Equal(t, "first", order)
	assert.Equal(t, "first", f.Lookup("order").DefValue)
	require.NoError(t, f.Parse([]string{"--order", "last"}))
	assert.Equal(t, "last", order)
	require.ErrorContains(t, f.Parse([]string{"--order", "lat"}), `"lat": want first, last or none`)
	assert.Equal(t, "last", order)
}
