package schema

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/unit/parquet/format"
	"github.com/millrace/millrace/fpga/unit/text"
	"github.com/millrace/millrace/sdk/partition"
	"github.com/millrace/millrace/sdk/pipeline/columntypes"
)

// TestTwoColumnsOfOneName checks that the error blames the file with such columns, and not the other partitions.
func TestTwoColumnsOfOneName(t *testing.T) {
	leaf := format.Leaf{Path: "a", Name: "a", Physical: format.Int64}
	file := &format.File{Leaves: []format.Leaf{leaf, leaf}}
	columns, _ := Columns(partition.FromFooter("p", 9, file, nil), text.Options{})
	require.Len(t, columns, 2)
	require.ErrorContains(t, columns[1].Unsupported, "two columns of the file are called a: rename one")
	require.NotErrorIs(t, columns[1].Unsupported, columntypes.ErrDisagree)
}
