package offload

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// ErrTable says that the bytes of a table of metrics are damaged, too many, or of another version.
var ErrTable = errors.New("table of offload metrics")

const (
	tableVersion = 1
	// MaxTableBytes bounds the bytes of a table. A table with tableEntries entries takes a quarter of it.
	MaxTableBytes = 1 << 20
	tableEntries  = 256 // entries of each key; the entry that was used longest ago is dropped first
	maxCandidates = 3   // one of each cut
)

// Keys are the three keys of FastFlow's Table 2, as digests. If a key differs, its metrics are measured again.
type Keys struct {
	// Model is the model with its batch size and the trainer's machine: Gthp and Tcycle.
	Model Key
	// Pipeline is the pipeline and the model: Lthp, Pcycle and the local supply.
	Pipeline Key
	// Remote is the pipeline, the model and the workers: Rthp, Ocycle, the cut, and the workers' supply.
	Remote Key
}

// Key is a digest.
type Key [sha256.Size]byte

// String returns the key in hexadecimal digits.
func (k Key) String() string { return hex.EncodeToString(k[:]) }

// MarshalText returns the key in hexadecimal digits.
func (k Key) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads hexadecimal digits.
func (k *Key) UnmarshalText(text []byte) error {
	if len(text) != hex.EncodedLen(len(k)) {
		return fmt.Errorf("%w: a key of %d characters", ErrTable, len(text))
	}
	if _, err := hex.Decode(k[:], text); err != nil {
		return fmt.Errorf("%w: key: %w", ErrTable, err)
	}
	return nil
}

// KeyParts are the values that the keys are digests of.
type KeyParts struct {
	Model    string   // the launcher's name for the model; a model of another architecture has another name
	Batch    int      // rows of a mini-batch
	Machine  string   // the trainer's machine: processors, cores that it may use
	Pipeline []byte   // canonical form of the pipeline
	Workers  []string // in any order: name, engine and threads of each worker elsewhere
}

// Keys hashes the parts.
func (p KeyParts) Keys() Keys {
	batch := binary.LittleEndian.AppendUint64(nil, uint64(p.Batch))
	var k Keys
	k.Model = hashParts([]byte("model"), []byte(p.Model), batch, []byte(p.Machine))
	k.Pipeline = hashParts([]byte("pipeline"), k.Model[:], p.Pipeline)
	workers := [][]byte{[]byte("remote"), k.Pipeline[:]}
	for _, name := range slices.Sorted(slices.Values(p.Workers)) {
		workers = append(workers, []byte(name))
	}
	k.Remote = hashParts(workers...)
	return k
}

// hashParts hashes parts with their lengths, so that no two lists of parts have one digest.
func hashParts(parts ...[]byte) Key {
	h := sha256.New()
	for _, part := range parts {
		h.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(part))))
		h.Write(part)
	}
	return Key(h.Sum(nil))
}

// modelEntry, pipelineEntry and remoteEntry are the values of the three keys.
type (
	modelEntry struct {
		Key    Key     `json:"key"`
		Gthp   float64 `json:"gthp_rows_per_second"`
		Tcycle float64 `json:"tcycle_row_cpu_seconds"`
		Cores  float64 `json:"cores"`
	}
	pipelineEntry struct {
		Key    Key     `json:"key"`
		Lthp   float64 `json:"lthp_rows_per_second"`
		Pcycle float64 `json:"pcycle_row_cpu_seconds"`
		Supply float64 `json:"supply_rows_per_second"`
	}
	remoteEntry struct {
		Key        Key         `json:"key"`
		Candidates []Candidate `json:"candidates"`
	}
)

// Table holds metrics by their keys. Entries are in the order of their use, the last used last.
type Table struct {
	models    []modelEntry
	pipelines []pipelineEntry
	remotes   []remoteEntry
}

// tableForm is a table in JSON.
type tableForm struct {
	Version   int             `json:"version"`
	Models    []modelEntry    `json:"models"`
	Pipelines []pipelineEntry `json:"pipelines"`
	Remotes   []remoteEntry   `json:"remotes"`
}

// Known reports which metrics a table contained.
type Known struct {
	Model    bool `json:"model"`
	Pipeline bool `json:"pipeline"`
	Remote   bool `json:"remote"`
}

// All reports whether the table contained all metrics.
func (k Known) All() bool { return k.Model && k.Pipeline && k.Remote }

// Lookup returns the table's metrics for the keys. Metrics that the table does not contain are 0.
func (t *Table) Lookup(k Keys) (m Metrics, known Known) {
	if i := slices.IndexFunc(t.models, func(e modelEntry) bool { return e.Key == k.Model }); i >= 0 {
		e := t.models[i]
		m.Gthp, m.Tcycle, m.Cores, known.Model = e.Gthp, e.Tcycle, e.Cores, true
		t.models = append(slices.Delete(t.models, i, i+1), e)
	}
	if i := slices.IndexFunc(t.pipelines, func(e pipelineEntry) bool { return e.Key == k.Pipeline }); i >= 0 {
		e := t.pipelines[i]
		m.Lthp, m.Pcycle, m.Supply, known.Pipeline = e.Lthp, e.Pcycle, e.Supply, true
		t.pipelines = append(slices.Delete(t.pipelines, i, i+1), e)
	}
	if i := slices.IndexFunc(t.remotes, func(e remoteEntry) bool { return e.Key == k.Remote }); i >= 0 {
		e := t.remotes[i]
		m.Candidates, known.Remote = slices.Clone(e.Candidates), true
		t.remotes = append(slices.Delete(t.remotes, i, i+1), e)
	}
	return m, known
}

// Put stores the metrics that have names. It refuses metrics that Decide would refuse.
func (t *Table) Put(k Keys, m Metrics, have Known) error {
	if err := m.checkMetrics(); err != nil {
		return err
	}
	if len(m.Candidates) > maxCandidates {
		return fmt.Errorf("%w: %d candidates: want one of each cut at most", ErrMetrics, len(m.Candidates))
	}
	if have.Model {
		t.models = putEntry(t.models, modelEntry{k.Model, m.Gthp, m.Tcycle, m.Cores},
			func(e modelEntry) bool { return e.Key == k.Model })
	}
	if have.Pipeline {
		t.pipelines = putEntry(t.pipelines, pipelineEntry{k.Pipeline, m.Lthp, m.Pcycle, m.Supply},
			func(e pipelineEntry) bool { return e.Key == k.Pipeline })
	}
	if have.Remote {
		t.remotes = putEntry(t.remotes, remoteEntry{k.Remote, slices.Clone(m.Candidates)},
			func(e remoteEntry) bool { return e.Key == k.Remote })
	}
	return nil
}

// putEntry appends an entry, removes the earlier entry with the same key, and drops the entry that was used longest ago
// if there are too many.
func putEntry[E any](entries []E, entry E, same func(E) bool) []E {
	entries = append(slices.DeleteFunc(entries, same), entry)
	return entries[max(0, len(entries)-tableEntries):]
}

// Encode returns the table as bytes.
func (t *Table) Encode() ([]byte, error) {
	return json.MarshalIndent(tableForm{tableVersion, t.models, t.pipelines, t.remotes}, "", " ")
}

// DecodeTable reads a table that Encode wrote. It returns ErrTable for bytes of another version, with too many
// entries, or with metrics that contradict each other: the caller measures again.
func DecodeTable(b []byte) (*Table, error) {
	if len(b) > MaxTableBytes {
		return nil, fmt.Errorf("%w: %d bytes: at most %d are read", ErrTable, len(b), MaxTableBytes)
	}
	var form tableForm
	decoder := json.NewDecoder(bytes.NewReader(b))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&form); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrTable, err)
	}
	if form.Version != tableVersion {
		return nil, fmt.Errorf("%w: version %d: this program reads version %d", ErrTable, form.Version, tableVersion)
	}
	t := &Table{form.Models, form.Pipelines, form.Remotes}
	if n := max(len(t.models), len(t.pipelines), len(t.remotes)); n > tableEntries {
		return nil, fmt.Errorf("%w: %d entries: at most %d are kept", ErrTable, n, tableEntries)
	}
	for _, e := range t.models {
		if err := (&Metrics{Gthp: e.Gthp, Tcycle: e.Tcycle, Cores: e.Cores}).checkMetrics(); err != nil {
			return nil, fmt.Errorf("%w: model %v: %w", ErrTable, e.Key, err)
		}
	}
	for _, e := range t.pipelines {
		if err := (&Metrics{Lthp: e.Lthp, Pcycle: e.Pcycle, Supply: e.Supply}).checkMetrics(); err != nil {
			return nil, fmt.Errorf("%w: pipeline %v: %w", ErrTable, e.Key, err)
		}
	}
	for _, e := range t.remotes {
		if len(e.Candidates) > maxCandidates {
			return nil, fmt.Errorf("%w: workers %v: %d candidates", ErrTable, e.Key, len(e.Candidates))
		}
		// Pcycle is in another entry, and Decide compares both values.
		if err := (&Metrics{Pcycle: 1, Candidates: e.Candidates}).checkMetrics(); err != nil {
			return nil, fmt.Errorf("%w: workers %v: %w", ErrTable, e.Key, err)
		}
	}
	return t, nil
}
