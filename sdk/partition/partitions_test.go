package partition_test

import (
	"bytes"
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk/partition"
	"github.com/millrace/millrace/sdk/processor/processortest"
)

// TestPartitions opens what is no partition, and describes one that is.
func TestPartitions(t *testing.T) {
	ctx := context.Background()
	data := processortest.WriteParquet(t, processortest.Layout{Rows: 100, Group: 30, Page: 1 << 10, Seed: 64})
	part := processortest.Open(t, data, false)
	d := part.Describe()
	assert.Equal(t, int64(len(data)), d.Bytes)
	assert.Equal(t, int64(100), d.Rows)
	assert.Equal(t, []int64{30, 30, 30, 10}, d.RowGroups)
	assert.Equal(t, part.File.FooterSHA256, [32]byte(d.Footer))
	for name, c := range map[string]struct {
		data   []byte
		size   int64
		source program.Source
		o      partition.Options
	}{
		"no footer":            {data[:len(data)-1], int64(len(data) - 1), program.Parquet, partition.Options{}},
		"empty":                {nil, 0, program.Parquet, partition.Options{}},
		"shorter than it says": {data, int64(len(data)) + 1, program.Parquet, partition.Options{}},
		"other bytes":          {data, int64(len(data)), program.Parquet, partition.Options{Bytes: data[1:]}},
		"no such format":       {data, int64(len(data)), 9, partition.Options{}},
		"a negative size":      {data, -1, program.Parquet, partition.Options{}},
		"bad extents": {
			data, int64(len(data)), program.Parquet, partition.Options{Extents: []partition.Extent{{Len: 10}}},
		},
	} {
		_, err := partition.Open(ctx, "p", bytes.NewReader(c.data), c.size, c.source, c.o)
		require.ErrorIs(t, err, partition.ErrUnreadable, name)
		assert.ErrorContains(t, err, "p: ", name)
	}
}
