package record

import (
	"bytes"
	"compress/flate"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/millrace/millrace/control/fleet"
	"github.com/millrace/millrace/host/api"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/trainmgr/allocation"
)

// Keys of the store.
const (
	NodePrefix   = "node/"
	JobPrefix    = "job/"
	CopiesPrefix = "copies/" // + partition: apiv1.PartitionCopies, protobuf
	PoolPrefix   = "pool/"   // + name: PooledWorker, JSON
	ClusterKey   = "key"
)

// Key names a record of a job.
func Key(id, rest string) string { return JobPrefix + id + "/" + rest }

// DataKey names piece n of the data of edition g of a job.
func DataKey(id string, g, n int) string { return Key(id, fmt.Sprintf("data/%d/%04d", g, n)) }

// PooledWorker is pool/NAME: a worker that the operator's hook is started for and that has not joined yet.
type PooledWorker struct {
	Started bool      `json:"started,omitempty"` // the hook has succeeded
	Until   time.Time `json:"until"`             // when the worker is given up
	Jobs    []string  `json:"jobs,omitempty"`    // ids of the jobs that wanted the worker
}

// Submission is job/ID/spec.
type Submission struct {
	ID        string    `json:"id"`
	Owner     string    `json:"owner,omitempty"`
	Submitted time.Time `json:"submitted"`
	Spec      []byte    `json:"spec"` // apiv1.JobSpec, protobuf
}

// State is job/ID/state.
type State struct {
	Phase       Phase                 `json:"phase"`
	Why         string                `json:"why,omitempty"`
	Editions    []Edition             `json:"generations"` // Ranks may still be in these editions.
	Taken       int                   `json:"taken"`       // how many editions the job has had
	P           map[string]float64    `json:"p_rows_per_second,omitempty"`
	T           float64               `json:"t_rows_per_second,omitempty"`
	Allocation  allocation.Allocation `json:"allocation"`
	Redelivered uint64                `json:"redelivered,omitempty"` // before the present leader
	// for each rank a character: 1 if the rank will announce its end, 0 if not, ? if that is not known
	Stays string `json:"stays,omitempty"`
	// for each rank RunBytes: the training run that attached last
	Runs []byte `json:"runs,omitempty"`
	// since when no rank has called; zero: a rank is attached
	Unattended time.Time `json:"unattended,omitzero"`
	// no rank has attached yet
	Unattached bool `json:"unattached,omitempty"`
	// the nodes have forgotten the job, since another one needed its room
	Suspended bool `json:"suspended,omitempty"`
	// Token has the acknowledged mini-batches of an abandoned job, for Checkpoint.
	Token []byte `json:"token,omitempty"`
	// the rows that the ranks get of each epoch that has begun
	EpochRows []EpochRows `json:"epoch_rows,omitempty"`

	Ended time.Time `json:"ended,omitzero"`
	Final []byte    `json:"final,omitempty"` // apiv1.JobStatus of an ended job
}

// EpochRows are the rows that the ranks of a job get of every epoch from First to the next entry.
type EpochRows struct {
	First uint64 `json:"first_epoch"`
	Rows  int64  `json:"rows"`
}

// RunBytes is the length of the hash that stands for a training run in State.Runs: two runs of one job do not coincide
// by chance.
const RunBytes = 8

// Edition has the epochs of an edition; its data are under DataKey.
type Edition struct {
	Number int            `json:"number"`
	First  uint64         `json:"first_epoch"`
	Digest dataset.Digest `json:"digest"`
	Pieces int            `json:"pieces"`
	// Selection is that of a pipeline with a filter, once it is made. Before, the edition has no digest.
	Selection *Selection `json:"selection,omitempty"`
}

// editionData is the stored data of an edition, so that a later leader needs no node to know them.
type editionData struct {
	Manifest   json.RawMessage    `json:"manifest"`
	Columns    json.RawMessage    `json:"columns"`
	Malformed  uint32             `json:"malformed,omitempty"`
	MeanLength map[string]float64 `json:"mean_length,omitempty"`
	Schema     []byte             `json:"schema"`
	Several    bool               `json:"several_schemas,omitempty"`
}

// Bounds of an edition's data.
const (
	PieceBytes = 128 << 10
	maxPieces  = 512       // 64 MiB compressed
	maxData    = 512 << 20 // unpacked
)

// Pack compresses an edition's data and cuts it into pieces.
func Pack(s *fleet.Dataset) ([][]byte, error) {
	manifest, err := s.Manifest.MarshalJSON()
	if err != nil {
		return nil, err
	}
	columns, err := api.EncodeColumns(s.Columns)
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(editionData{Manifest: manifest, Columns: columns, Malformed: s.Malformed,
		MeanLength: s.MeanLength, Schema: s.Schema, Several: s.Several})
	if err != nil {
		return nil, err
	}
	if len(raw) > maxData {
		return nil, fmt.Errorf("a manifest of %d bytes, at most %d: choose fewer partitions", len(raw), maxData)
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
	if len(pieces) > maxPieces {
		return nil, fmt.Errorf("a manifest of %d bytes compressed, at most %d: choose fewer partitions", b.Len(),
			maxPieces*PieceBytes)
	}
	return pieces, nil
}

// Unpack is the inverse of Pack. Holders are not stored.
func Unpack(pieces [][]byte) (*fleet.Dataset, error) {
	raw, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(bytes.Join(pieces, nil))), maxData+1))
	if err != nil {
		return nil, err
	}
	if len(raw) > maxData {
		return nil, errors.New("it is too large")
	}
	var d editionData
	if err := json.Unmarshal(raw, &d); err != nil {
		return nil, err
	}
	s := &fleet.Dataset{Schema: d.Schema, Malformed: d.Malformed, MeanLength: d.MeanLength,
		Several: d.Several}
	if s.Manifest, err = dataset.ReadManifest(d.Manifest); err != nil {
		return nil, err
	}
	s.Columns, err = api.DecodeColumns(d.Columns)
	return s, err
}

// ReadSubmission reads job/ID/spec.
func ReadSubmission(b []byte) (Submission, *apiv1.JobSpec, error) {
	var s Submission
	if err := json.Unmarshal(b, &s); err != nil {
		return s, nil, err
	}
	spec := &apiv1.JobSpec{}
	return s, spec, proto.Unmarshal(s.Spec, spec)
}

// SplitKey cuts "job/ID/REST".
func SplitKey(key string) (id, rest string, ok bool) {
	key, ok = strings.CutPrefix(key, JobPrefix)
	if !ok {
		return "", "", false
	}
	return strings.Cut(key, "/")
}
