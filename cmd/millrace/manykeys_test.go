package main

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/unit/text"
)

// freshRows writes packed rows of which each has a key in every column that no row before it has, anywhere in 32 bits.
func freshRows(t *testing.T, path string, rows int) {
	t.Helper()
	const spread = 0x9e3779b1 // odd, so that the keys of a column differ
	f, err := os.Create(path)
	require.NoError(t, err)
	w := bufio.NewWriterSize(f, 1<<20)
	var row []byte
	for r := range rows {
		row = row[:0]
		for range 1 + text.Dense {
			row = binary.LittleEndian.AppendUint32(row, 1)
		}
		for column := range text.Sparse {
			row = binary.LittleEndian.AppendUint32(row, uint32(r*spread+column*7919))
		}
		_, err = w.Write(row)
		require.NoError(t, err)
	}
	require.NoError(t, w.Flush())
	require.NoError(t, f.Close())
}

// requireRowNumbers checks that the ids of every key of npy tensors are the numbers of the rows.
func requireRowNumbers(t *testing.T, folder string, rows int) {
	t.Helper()
	f, err := os.Open(filepath.Join(folder, "values.npy"))
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	info, err := f.Stat()
	require.NoError(t, err)
	header := info.Size() - int64(rows)*text.Sparse*4
	require.Positive(t, header)
	_, err = f.Seek(header, io.SeekStart)
	require.NoError(t, err)
	block := make([]byte, 1<<20)
	row, key := uint32(0), 0
	for left := int64(rows) * text.Sparse * 4; left > 0; {
		part := block[:min(left, int64(len(block)))]
		_, err = io.ReadFull(f, part)
		require.NoError(t, err)
		left -= int64(len(part))
		for ; len(part) > 0; part = part[4:] {
			if got := binary.LittleEndian.Uint32(part); got != row {
				require.FailNow(t, "a wrong id", "key %d of row %d has id %d", key, row, got)
			}
			if row++; row == uint32(rows) {
				row, key = 0, key+1
			}
		}
	}
}

// TestAVocabularyOfManyKeys builds a vocabulary of 26 columns whose keys are all new, of which memory holds a part
// only, and applies it, in two processes that stay small. With MILLRACE_LONG=1 it has as many keys as Criteo's rows of
// 24 days: 3 x 10^8, in less than 6 GiB.
func TestAVocabularyOfManyKeys(t *testing.T) {
	skipMemory(t)
	rows, memory, bound := 12_000, "1MiB", int64(256<<20)
	if os.Getenv("MILLRACE_LONG") != "" {
		rows, memory, bound = 11_600_000, "512MiB", 6<<30
	}
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	freshRows(t, in("day.bin"), rows)
	document := "batch: 8192\nids: int32\nlabel: {column: label}\nsparse:\n" +
		"  - {columns: [cat_0..cat_25], ops: [fill_null: 0, vocabulary: keys]}\nvocabularies: {keys: {}}\n"
	require.NoError(t, os.WriteFile(in("p.yaml"), []byte(document), 0o600))
	data := []string{"--pipeline", in("p.yaml"), "--in", in("day.bin"), "--input-format", "criteo-bin", "--progress",
		"none"}
	built := apart(t, append([]string{"vocabulary", "build", "--out", in("keys.vocab"), "--memory", memory, "--temporary",
		dir}, data...)...)
	t.Logf("%d keys: build: VmHWM %.0f MiB of %.0f, file %.1f MiB", rows*text.Sparse, float64(built)/(1<<20),
		float64(bound)/(1<<20), float64(mustStat(t, in("keys.vocab")).Size())/(1<<20))
	assert.Less(t, built, bound)
	require.NoError(t, os.Remove(in("keys.vocab.counts")))
	applied := apart(t, append([]string{"preprocess", "--vocabulary", fmt.Sprint("keys=", in("keys.vocab")), "--out",
		in("tensors")}, data...)...)
	t.Logf("apply: VmHWM %.0f MiB of %.0f", float64(applied)/(1<<20), float64(bound)/(1<<20))
	assert.Less(t, applied, bound)
	requireRowNumbers(t, in("tensors"), rows)
}
