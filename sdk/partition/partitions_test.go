package partition_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/text"
	"github.com/millrace/millrace/sdk/partition"
	"github.com/millrace/millrace/sdk/processor/processortest"
)

// TestPartitions opens what is not a partition, and describes one that is.
func TestPartitions(t *testing.T) {
	ctx := context.Background()
	data := processortest.WriteParquet(t, processortest.Layout{Rows: 100, Group: 30, Page: 1 << 10, Seed: 64})
	part := processortest.Open(t, data, false)
	d := part.Describe()
	assert.Equal(t, int64(len(data)), d.Bytes)
	assert.Equal(t, int64(100), d.Rows)
	assert.Equal(t, []int64{30, 30, 30, 10}, d.RowGroups)
	assert.Equal(t, sha256.Sum256(data), [32]byte(d.Content), "of a small file")
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

// TestForeign opens files of other formats as each source, and expects errors that name the format and say what to do.
func TestForeign(t *testing.T) {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, err := w.Write([]byte("PAR1 and more"))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	row := "1" + strings.Repeat("\t7", 39) + "\n"
	for content, says := range map[string][]string{
		"": {"it is empty (0 bytes)"},
		"\x1f\x8b\x08 and more bytes": {"compressed by gzip",
			"zcat p | millrace dataset import --input-format criteo-tsv"},
		packed.String():                {"Parquet packed by gzip", "zcat p > rows.parquet"},
		"\x28\xb5\x2f\xfd and more":    {"compressed by zstd", "zstdcat p | millrace dataset import"},
		"<!DOCTYPE html>\n<html>":      {"an HTML page", "download the file again"},
		"<?xml version='1.0'?><Error>": {"an XML document"},
		"version https://git-lfs.github.com/spec/v1\noid sha256:0\n": {"a pointer of git-lfs", "git lfs pull"},
		"ORC and more bytes": {"an ORC file", "pyarrow.orc"}, "ARROW1 and more bytes": {"an Arrow file", "feather"},
		"Obj\x01 and more bytes": {"an Avro file", "read_avro('p')"}, "{\"a\": [1, 2, 3]}": {"JSON", "read_json('p')"},
		"a,b\n1,2\n3,4\n5,6\n": {"it is text", "read_csv('p')"}, row: {"Criteo's text", "--input-format criteo-tsv"},
	} {
		for source, kind := range map[program.Source]string{
			program.Parquet: "not Parquet", program.CriteoTSV: "not Criteo's text", program.CriteoBinary: "binary rows",
		} {
			if source == program.CriteoTSV && (content == row || says[0] == "it is text") ||
				source != program.Parquet && content == "" {
				continue
			}
			o := partition.Options{Text: text.Options{Policy: text.Drop}}
			_, err := partition.Open(t.Context(), "p", strings.NewReader(content), int64(len(content)), source, o)
			var foreign *partition.ForeignError
			require.ErrorAs(t, err, &foreign, "%q as %v", content, source)
			for _, part := range append(says, kind) {
				require.ErrorContains(t, err, part)
			}
		}
	}
	_, err = partition.Open(t.Context(), "p", strings.NewReader(row), int64(len(row)), program.CriteoTSV,
		partition.Options{})
	require.NoError(t, err)
}

func FuzzRecognize(f *testing.F) {
	for _, head := range []string{"", "PAR1", "\x1f\x8b\x08\x00", "<html>", "{", "\xff\xfe", "a\tb\n"} {
		f.Add([]byte(head))
	}
	f.Fuzz(func(t *testing.T, head []byte) {
		c := partition.Recognize(head)
		assert.Equal(t, c.Is != "", c.Advice("p") != "")
	})
}
