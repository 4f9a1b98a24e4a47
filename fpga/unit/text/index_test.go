package text_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/unit/text"
)

func TestIndexCountsWhatTheDecoderYields(t *testing.T) {
	var data []byte
	for i, name := range []string{"bom", "blank", "crlf", "41 fields", "longest", "bad hex", "plain", "blank cr",
		"empty last"} {
		data = append(data, lines[name]...)
		data = append(data, criteoLike(uint64(i), 13)...)
	}
	data = append(data, lines["no newline"]...)
	for name, policy := range policies {
		for _, every := range []int64{0, 1, 2, 7, 64, 1000} {
			t.Run(fmt.Sprintf("%s/every %d", name, every), func(t *testing.T) {
				o := text.Options{Policy: policy}
				rows, counts, err := decodeAll(data, o, 64)
				index, indexErr := text.NewIndex(iotest.OneByteReader(bytes.NewReader(data)), o, every)
				if err != nil {
					require.Nil(t, index)
					require.ErrorContains(t, indexErr, err.Error())
					return
				}
				require.NoError(t, indexErr)
				require.Equal(t, int64(len(rows)), index.Rows)
				require.Equal(t, int64(len(data)), index.Bytes)
				require.Equal(t, counts, index.Counts)
				if every == 0 {
					require.Empty(t, index.At)
					return
				}
				require.Len(t, index.At, (len(rows)+int(every)-1)/int(every))
				c := text.NewColumns(1)
				for k, at := range index.At {
					d, err := text.NewDecoder(o)
					require.NoError(t, err)
					d.Reset(at)
					res, err := d.Decode(c, 0, 1, data[at.Offset:], true)
					require.NoError(t, err)
					require.Equal(t, rows[int64(k)*every:][:1], collect(c, res.Rows))
					require.Equal(t, bytes.Count(data[:at.Offset], []byte("\n")), int(at.Line))
				}
			})
		}
	}
}

func TestIndexOverManyWindows(t *testing.T) {
	data := bytes.Repeat(criteoLike(5, 1000), 12) // about 2.5 MB
	index, err := text.NewIndex(iotest.HalfReader(bytes.NewReader(data)), text.Options{}, 5000)
	require.NoError(t, err)
	require.Equal(t, int64(12000), index.Rows)
	require.Len(t, index.At, 3)
	require.Equal(t, int64(10000), index.At[2].Line)
	require.Equal(t, bytes.Repeat([]byte("\n"), 10000), bytes.Map(func(r rune) rune {
		if r == '\n' {
			return r
		}
		return -1
	}, data[:index.At[2].Offset]))
}

func TestIndexOfNothing(t *testing.T) {
	index, err := text.NewIndex(strings.NewReader(""), text.Options{}, 4)
	require.NoError(t, err)
	require.Equal(t, &text.Index{Every: 4}, index)
}

func TestIndexErrors(t *testing.T) {
	broken := errors.New("the disk is gone")
	_, err := text.NewIndex(iotest.ErrReader(broken), text.Options{}, 1)
	require.ErrorIs(t, err, broken)
	_, err = text.NewIndex(strings.NewReader(tail+strings.Repeat("1", 3<<20)), text.Options{Policy: text.Drop}, 1)
	require.ErrorIs(t, err, text.ErrLineTooLong)
	require.ErrorContains(t, err, "line 9")
}
