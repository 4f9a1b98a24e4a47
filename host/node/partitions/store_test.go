package partitions

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/partition"
)

// TestSumsAreKept over restarts; a file that cannot be read or written costs what was kept and nothing else.
func TestSumsAreKept(t *testing.T) {
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	dir := filepath.Join(t.TempDir(), "state")
	s := openSums(dir, logger)
	assert.Nil(t, s.get("d", "a"))
	s.put("d", "a", []byte{1, 2})
	s.put("d", "day 1/a", []byte{3})
	s = openSums(dir, logger)
	assert.Equal(t, []byte{1, 2}, s.get("d", "a"))
	assert.Equal(t, []byte{3}, s.get("d", "day 1/a"))
	assert.Nil(t, s.get("e", "a"))
	assert.Empty(t, log.String())

	for _, junk := range []string{"", "null", "[]", `{"d/a": 1}`, `{"d/a": "xyz"}`} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "sums.json"), []byte(junk), 0o600))
		s = openSums(dir, logger)
		assert.Nil(t, s.get("d", "a"), "%q", junk)
		s.put("d", "a", []byte{9})
		assert.Equal(t, []byte{9}, openSums(dir, logger).get("d", "a"))
	}
	log.Reset()
	s = openSums(filepath.Join(dir, "sums.json", "no folder"), logger)
	s.put("d", "a", []byte{1})
	assert.Equal(t, []byte{1}, s.get("d", "a"))
	assert.Contains(t, log.String(), "not kept")
	openSums("", logger).put("d", "a", []byte{1})
}

// TestCheckedReader checks that the reader ends without an error only if all bytes came and are right, for pieces of
// every size.
func TestCheckedReader(t *testing.T) {
	body := []byte("rows and rows, and then the footer")
	runs := []partition.Run{{From: 1, Len: 2}, {From: 5, Len: 3}, {From: 24, Len: 10}}
	var digested []byte
	for _, r := range runs {
		digested = append(digested, body[r.From:r.From+r.Len]...)
	}
	want := dataset.Partition{Name: "p", Bytes: int64(len(body)), Content: dataset.Digest(sha256.Sum256(digested))}
	right := sha256.Sum256(body)
	flipped := bytes.Clone(body)
	flipped[3] ^= 1
	flippedFooter := bytes.Clone(body)
	flippedFooter[25] ^= 1
	flippedSample := bytes.Clone(body)
	flippedSample[7] ^= 1
	sumOf := func(b []byte) string { s := sha256.Sum256(b); return hex.EncodeToString(s[:]) }
	for name, c := range map[string]struct {
		body []byte
		sent string
		says string // "" ends well
	}{
		"right":                     {body, hex.EncodeToString(right[:]), ""},
		"changed on its way":        {flipped, hex.EncodeToString(right[:]), "changed on their way"},
		"no digest behind it":       {body, "", "changed on their way"},
		"another footer, well sent": {flippedFooter, sumOf(flippedFooter), "its digest is"},
		"another sample, well sent": {flippedSample, sumOf(flippedSample), "its digest is"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, cut := range []func(io.Reader) io.Reader{func(r io.Reader) io.Reader { return r },
				iotest.OneByteReader, iotest.HalfReader, iotest.DataErrReader} {
				r := newCheckedReader(cut(bytes.NewReader(c.body)), want, runs, func() string { return c.sent })
				got, err := io.ReadAll(r)
				assert.Equal(t, c.body, got)
				if c.says == "" {
					require.NoError(t, err)
					continue
				}
				require.ErrorIs(t, err, ErrCopy)
				assert.ErrorContains(t, err, c.says)
				_, again := r.Read(make([]byte, 1))
				assert.Equal(t, err, again)
			}
		})
	}
	_, err := io.ReadAll(newCheckedReader(iotest.ErrReader(io.ErrUnexpectedEOF), want, runs,
		func() string { return "" }))
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
}

func TestHashAll(t *testing.T) {
	b := bytes.Repeat([]byte("x"), 3*readAhead+7)
	want := sha256.Sum256(b)
	sum, err := hashAll(t.Context(), bytes.NewReader(b), int64(len(b)))
	require.NoError(t, err)
	assert.Equal(t, want[:], sum)
	_, err = hashAll(t.Context(), bytes.NewReader(b), int64(len(b))+1)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	ended := errors.New("ended")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(ended)
	_, err = hashAll(ctx, bytes.NewReader(b), int64(len(b)))
	require.ErrorIs(t, err, ended)
}
