package rm

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/millrace/millrace/fpga/unit/text"
	"github.com/millrace/millrace/host/workload"
)

// The workloads over rows of Criteo's own, of which Options.Criteo names a file: text and packed rows beside
// [CriteoTSV] and [CriteoBinary], and Parquet beside rm1.
const (
	RealTSV    = "criteo-real-tsv"
	RealBinary = "criteo-real-bin"
	RealRM1    = "rm1-real"
)

// isReal reports whether a workload's data are rows of Options.Criteo.
func isReal(data string) bool { return data == RealTSV || data == RealBinary || data == RealRM1 }

// tileReal writes a partition of the rows of Options.Criteo, repeated.
func tileReal(ctx context.Context, o Options, data, dir string, rows int64) (path string, err error) {
	if o.Criteo == "" {
		return "", fmt.Errorf("%w: workload %s takes its rows from a file of Criteo's text: name it with --criteo",
			workload.ErrOptions, data)
	}
	tiled, distinct, err := Tile(o.Criteo, rows)
	if err != nil {
		return "", err
	}
	o.Progress(fmt.Sprintf("%s: %d different rows", data, distinct))
	if data == RealRM1 {
		files, _, err := workload.Import(ctx, bytes.NewReader(tiled), workload.ImportOptions{
			Out: filepath.Join(dir, data), PartitionRows: rows, Codec: o.Codec, Encoding: o.Encoding})
		if err != nil {
			return "", err
		}
		return files[0].Path, nil
	}
	if data == RealBinary {
		if tiled, err = pack(tiled); err != nil {
			return "", fmt.Errorf("%s: %w", filepath.Base(o.Criteo), err)
		}
	}
	path = filepath.Join(dir, data)
	if err := os.WriteFile(path, tiled, 0o600); err != nil {
		return "", fmt.Errorf("write %s: %w", data, err)
	}
	return path, nil
}

// packedAtOnce are the rows that pack decodes at a time.
const packedAtOnce = 4096

// pack makes packed rows of text. Missing cells are 0.
func pack(lines []byte) ([]byte, error) {
	d, err := text.NewDecoder(text.Options{})
	if err != nil {
		return nil, err
	}
	cells := text.NewColumns(packedAtOnce)
	var packed []byte
	var f criteoFeatures
	for i := range f.ok {
		f.ok[i] = true // the decoder's value of a missing cell is 0
	}
	for len(lines) > 0 {
		r, err := d.Decode(cells, 0, packedAtOnce, lines, true)
		if err != nil {
			return nil, err
		}
		for row := range r.Rows {
			f.label = int32(cells.Label[row])
			for i := range f.dense {
				f.dense[i] = int32(cells.Dense[i][row])
			}
			for i := range f.sparse {
				f.sparse[i] = uint32(cells.Sparse[i][row])
			}
			packed = f.appendBinary(packed)
		}
		lines = lines[r.Consumed:]
	}
	return packed, nil
}
