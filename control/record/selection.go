package record

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/millrace/millrace/host/jobfiles"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/vocabulary"
)

// Selection names the selection of an edition: which rows of its partitions pass the filter of the job's pipeline. How
// many rows of each partition pass is under PassingKey.
type Selection struct {
	Digest dataset.Digest `json:"digest"`
	Bytes  int64          `json:"bytes"`  // Bytes is the length of the selection's file.
	Pieces int            `json:"pieces"` // Pieces is how many the numbers of passing rows have.
}

// File returns the selection's file.
func (s *Selection) File() jobfiles.File {
	return jobfiles.File{Digest: vocabulary.Digest(s.Digest), Bytes: s.Bytes, Kind: jobfiles.Selection}
}

// PassingPrefix begins the keys of a job's numbers of passing rows, behind the job's own prefix.
const PassingPrefix = "passing/"

// PassingKey names piece n of the numbers of passing rows of edition g of a job.
func PassingKey(id string, g, n int) string {
	return Key(id, fmt.Sprintf("%s%d/%04d", PassingPrefix, g, n))
}

// PackPassing compresses the numbers of passing rows of an edition's partitions, and cuts them into pieces.
func PackPassing(passing []int64) ([][]byte, error) {
	var raw []byte
	for _, n := range passing {
		raw = binary.AppendUvarint(raw, uint64(n))
	}
	var b bytes.Buffer
	w, err := flate.NewWriter(&b, flate.BestSpeed)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(raw); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	var pieces [][]byte
	for rest := b.Bytes(); len(rest) > 0; {
		n := min(len(rest), PieceBytes)
		pieces, rest = append(pieces, rest[:n]), rest[n:]
	}
	return pieces, nil
}

// UnpackPassing is the inverse of PackPassing, for the partitions of a manifest.
func UnpackPassing(pieces [][]byte, m *dataset.Manifest) ([]int64, error) {
	most := int64(len(m.Partitions)) * binary.MaxVarintLen64
	raw, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(bytes.Join(pieces, nil))), most+1))
	if err != nil {
		return nil, fmt.Errorf("numbers of passing rows: %w", err)
	}
	passing := make([]int64, len(m.Partitions))
	for i := range passing {
		n, size := binary.Uvarint(raw)
		if size <= 0 || n > uint64(m.Partitions[i].Rows) {
			return nil, fmt.Errorf("numbers of passing rows: that of partition %s is damaged", m.Partitions[i].Name)
		}
		passing[i], raw = int64(n), raw[size:]
	}
	if len(raw) > 0 {
		return nil, errors.New("numbers of passing rows: there are more than partitions")
	}
	return passing, nil
}
