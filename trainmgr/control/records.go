package control

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

	"github.com/millrace/millrace/host/api"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/trainmgr"
	"github.com/millrace/millrace/trainmgr/control/fleet"
	"github.com/millrace/millrace/trainmgr/control/store"
)

// Keys of the store.
const (
	nodePrefix = "node/"
	jobPrefix  = "job/"
	clusterKey = "key"
)

func jobKey(id, rest string) string { return jobPrefix + id + "/" + rest }

// dataKey names piece n of what generation g of a job is made of.
func dataKey(id string, g, n int) string { return jobKey(id, fmt.Sprintf("data/%d/%04d", g, n)) }

// storedSpec is job/ID/spec.
type storedSpec struct {
	ID        string    `json:"id"`
	Owner     string    `json:"owner,omitempty"`
	Submitted time.Time `json:"submitted"`
	Spec      []byte    `json:"spec"` // apiv1.JobSpec, protobuf
}

// storedState is job/ID/state.
type storedState struct {
	Phase       phase               `json:"phase"`
	Why         string              `json:"why,omitempty"`
	Generations []storedGeneration  `json:"generations"` // those that ranks may still be in
	Taken       int                 `json:"taken"`       // generations ever
	P           map[string]float64  `json:"p_rows_per_second,omitempty"`
	T           float64             `json:"t_rows_per_second,omitempty"`
	Allocation  trainmgr.Allocation `json:"allocation"`
	Redelivered uint64              `json:"redelivered,omitempty"` // before the present leader
	Stays       string              `json:"stays,omitempty"`       // see job.staying
	Ended       time.Time           `json:"ended,omitzero"`
	Final       []byte              `json:"final,omitempty"` // apiv1.JobStatus of an ended job
}

// storedGeneration says which epochs are of a generation; its data are under dataKey.
type storedGeneration struct {
	Number int            `json:"number"`
	First  uint64         `json:"first_epoch"`
	Digest dataset.Digest `json:"digest"`
	Pieces int            `json:"pieces"`
}

// generationData is what a generation is made of: all that a leader must know without asking a node.
type generationData struct {
	Manifest   json.RawMessage    `json:"manifest"`
	Columns    json.RawMessage    `json:"columns"`
	Malformed  uint32             `json:"malformed,omitempty"`
	MeanLength map[string]float64 `json:"mean_length,omitempty"`
	Schema     []byte             `json:"schema"`
}

// Bounds of a generation's data.
const (
	pieceBytes = 128 << 10
	maxPieces  = 512       // 64 MiB compressed
	maxData    = 512 << 20 // unpacked
)

// pack compresses a generation's data and cuts it into pieces.
func pack(s *fleet.Selection) ([][]byte, error) {
	manifest, err := s.Manifest.MarshalJSON()
	if err != nil {
		return nil, err
	}
	columns, err := api.EncodeColumns(s.Columns)
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(generationData{Manifest: manifest, Columns: columns, Malformed: s.Malformed, MeanLength: s.MeanLength, Schema: s.Schema})
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
		n := min(len(rest), pieceBytes)
		pieces, rest = append(pieces, rest[:n]), rest[n:]
	}
	if len(pieces) > maxPieces {
		return nil, fmt.Errorf("a manifest of %d bytes compressed, at most %d: choose fewer partitions", b.Len(), maxPieces*pieceBytes)
	}
	return pieces, nil
}

// unpack is pack's inverse; holders are not stored.
func unpack(pieces [][]byte) (*fleet.Selection, error) {
	raw, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(bytes.Join(pieces, nil))), maxData+1))
	if err != nil {
		return nil, err
	}
	if len(raw) > maxData {
		return nil, errors.New("it is too large")
	}
	var d generationData
	if err := json.Unmarshal(raw, &d); err != nil {
		return nil, err
	}
	s := &fleet.Selection{Schema: d.Schema, Malformed: d.Malformed, MeanLength: d.MeanLength}
	if s.Manifest, err = dataset.ReadManifest(d.Manifest); err != nil {
		return nil, err
	}
	s.Columns, err = api.DecodeColumns(d.Columns)
	return s, err
}

// put renders a JSON record.
func put(key string, v any) (store.Op, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return store.Op{}, fmt.Errorf("%s: %w", key, err)
	}
	return store.Put(key, b), nil
}

// readSpec reads job/ID/spec.
func readSpec(b []byte) (storedSpec, *apiv1.JobSpec, error) {
	var s storedSpec
	if err := json.Unmarshal(b, &s); err != nil {
		return s, nil, err
	}
	spec := &apiv1.JobSpec{}
	return s, spec, proto.Unmarshal(s.Spec, spec)
}

// splitJobKey cuts "job/ID/REST".
func splitJobKey(key string) (id, rest string, ok bool) {
	key, ok = strings.CutPrefix(key, jobPrefix)
	if !ok {
		return "", "", false
	}
	return strings.Cut(key, "/")
}
