package draft

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/host/source"
	"github.com/millrace/millrace/sdk/pipeline"
)

// visitor has UUIDs, and bytes that stand for documents.
type visitor struct {
	ID    [16]byte `parquet:"id,uuid"`
	Maybe [16]byte `parquet:"maybe,optional,uuid"`
	About string   `parquet:"about,json"`
}

// UUIDs become hashed keys, and JSON documents are left out with what would make a feature of them.
func TestUUIDs(t *testing.T) {
	path := writeRows(t, []visitor{{ID: [16]byte{1}, Maybe: [16]byte{2}, About: `{"a": 1}`}, {ID: [16]byte{0xff}}})
	d, err := New(t.Context(), source.ParseLocations(path), Options{})
	require.NoError(t, err)
	features := map[string][]pipeline.Op{}
	for _, g := range d.Spec.Sparse {
		for _, c := range g.Columns {
			features[c.Text] = g.Ops
		}
	}
	for column, ops := range map[string][]string{
		"id": {"hash_bytes", "sigrid_hash"}, "maybe": {"hash_bytes", "fill_null", "sigrid_hash"},
	} {
		require.Len(t, features[column], len(ops), column)
		for i, op := range features[column] {
			assert.Equal(t, ops[i], op.Name, column)
		}
	}
	assert.Contains(t, string(d.Document), "UUIDs, whose bytes are hashed")
	var about string
	for _, c := range d.LeftOut {
		if c.Column == "about" {
			about = c.Why
		}
	}
	assert.Equal(t, "its values are JSON documents: hash_bytes makes an id of a whole document", about)
}
