package stock

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/image"
	"github.com/millrace/millrace/fpga/operator"
)

// namedStockIDs pin the named stock images. One changes when a unit, its version, a known answer, the program's wire
// form or a parameter does; then look at what changed before writing the new one here.
var namedStockIDs = map[string]string{
	"presto":      "30fb19e89f5c57cd5718a0a7941436ed3509651975233d1be2f2bdb6dcc3e1b2",
	"piper":       "4ade54b6f0c3d469b5cb763cd8b2845c25b7706757d71b8794d8af8146e0eead",
	"minipipe":    "ad267ce188bba3877c79d3c6ad14edeb82a76924f8a6931167d9c1a1d2a0f54c",
	"passthrough": "85a34749d0026461705e55458ad6c619080eab0d03e9fb32c8b036cad4c45bfc",
}

// TestNamedStocks: each has its id, the same bytes every time, proves every unit, and says where each figure is from.
func TestNamedStocks(t *testing.T) {
	assert.Equal(t, []string{"presto", "piper", "minipipe", "passthrough"}, Names())
	for _, name := range Names() {
		b, err := Named(name)
		require.NoError(t, err)
		again, err := Named(name)
		require.NoError(t, err)
		require.Equal(t, b, again)
		m, err := image.Parse(b)
		require.NoError(t, err)
		assert.Equal(t, namedStockIDs[name], m.ID.String(), name)
		assert.Equal(t, Interface(), m.Interface())
		assert.Empty(t, m.Spec.Unsourced())
		assert.Equal(t, image.Resources{}, m.Spec.Resources)
		found, err := NameOf(m.ID)
		require.NoError(t, err)
		assert.Equal(t, name, found)
		proved := map[int]bool{}
		for _, v := range m.Spec.SelfTest {
			p, err := operator.Unmarshal(v.Program)
			require.NoError(t, err, v.Name)
			require.NoError(t, p.Validate(), v.Name)
			for _, u := range v.Units {
				proved[u] = true
			}
		}
		for _, u := range m.Spec.Units {
			assert.True(t, proved[int(u.Number)], "%s: no known answer for %s", name, u.Name)
		}
		assert.Len(t, proved, len(m.Spec.Units), "%s: an answer of a unit that the image lacks", name)
	}
	b, err := Image()
	require.NoError(t, err)
	m, err := image.Parse(b)
	require.NoError(t, err)
	found, err := NameOf(m.ID)
	require.NoError(t, err)
	assert.Empty(t, found, "the stock image of drives has no name")
	_, err = Named("prest")
	require.ErrorContains(t, err, "want one of presto, piper, minipipe, passthrough")
}
