package rm

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/millrace/millrace/fpga/unit/text"
	"github.com/millrace/millrace/host/workload"
)

// maxTiledLine bounds a line that Tile reads, with its end.
const maxTiledLine = text.MaxLine + 4

// Tile reads the first rows of a file of Criteo text, as many as rows, and repeats them until there are that many. The
// values and their skew are the file's; a file that is repeated has fewer different ids than as many rows of its source
// would have. Empty lines are left out. The rows are not checked: that is the decoder's task.
func Tile(path string, rows int64) (tiled []byte, distinct int64, err error) {
	if rows < 1 {
		return nil, 0, fmt.Errorf("%w: %d rows of %s", workload.ErrOptions, rows, path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, 0, fmt.Errorf("rows of Criteo: %w", err)
	}
	defer f.Close() // it was only read
	for r := bufio.NewReaderSize(f, maxTiledLine); distinct < rows && err == nil; {
		var line []byte
		line, err = r.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			return nil, 0, fmt.Errorf("rows of Criteo: %s: row %d: %w", path, distinct+1, text.ErrLineTooLong)
		}
		if line = bytes.TrimRight(line, "\r\n"); len(line) > 0 {
			tiled = append(append(tiled, line...), '\n')
			distinct++
		}
	}
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		return nil, 0, fmt.Errorf("rows of Criteo: %w", err)
	case distinct == 0:
		return nil, 0, fmt.Errorf("%w: %s has no rows", workload.ErrOptions, path)
	}
	whole := tiled
	for n := distinct; n < rows; n += distinct {
		if rows-n < distinct {
			whole = firstLines(whole, rows-n)
		}
		tiled = append(tiled, whole...)
	}
	return tiled, distinct, nil
}

// firstLines returns the first n lines, each of which ends.
func firstLines(lines []byte, n int64) []byte {
	end := 0
	for range n {
		end += bytes.IndexByte(lines[end:], '\n') + 1
	}
	return lines[:end]
}
