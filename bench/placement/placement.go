package placement

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/millrace/millrace/fpga/csd"
	"github.com/millrace/millrace/host/workload"
	"github.com/millrace/millrace/internal/scratch"
	"github.com/millrace/millrace/sdk/pipeline"
)

// Errors of Run.
var (
	ErrOptions = errors.New("cannot be measured")
	ErrDiffers = errors.New("makes other mini-batches than the mode before")
)

// Mode is where preprocessing is placed.
type Mode string

// The modes.
const (
	InStorage Mode = "in-storage"
	NodeCPU   Mode = "node-cpu"
	Card      Mode = "card"
	Pool      Mode = "pool"
	Trainer   Mode = "trainer"
)

// Modes returns all modes, in the order of the table.
func Modes() []Mode { return []Mode{InStorage, NodeCPU, Card, Pool, Trainer} }

// Options select the measurement. The zero value measures RM1 in every mode.
type Options struct {
	Model      string // rm1 to rm5; empty: rm1
	Modes      []Mode // empty: all
	Rows       int64  // 0 means about 50 MB of data.
	Partitions int    // files; 0: 2
	Batch      int    // rows of a mini-batch; 0: the pipeline's
	Codec      string // The files have this codec; empty means none.
	Coverage   float64
	Seed       uint64
	SLM        int64         // memory of a drive; 0: csd.DefaultSLM
	Time       time.Duration // Each mode takes this time; 0 means 2 s.
	Progress   func(string)  // each step in words; nil: none
}

// Links are the bytes that crossed each link while every mini-batch was made once. A link that a mode has not is 0.
type Links struct {
	FlashToDrive    int64 `json:"flash_to_drive_bytes"`    // moves inside the drive that holds the partitions
	FlashToNode     int64 `json:"flash_to_node_bytes"`     // NVMe Reads of the storage node
	NodeToWorker    int64 `json:"node_to_worker_bytes"`    // column chunks over HTTP, to a worker or the trainer
	HostToCard      int64 `json:"host_to_card_bytes"`      // windows, stored in the card
	CardToHost      int64 `json:"card_to_host_bytes"`      // tensors and results, fetched from the card
	DriveToNode     int64 `json:"drive_to_node_bytes"`     // tensors and results, fetched from the drive
	WorkerToTrainer int64 `json:"worker_to_trainer_bytes"` // frames over HTTP
}

// Steps are the times of one mini-batch's steps in one stream, in seconds. They overlap where a mode overlaps them.
type Steps struct {
	Move      float64 `json:"move_seconds"` // windows, from wherever they are
	Decode    float64 `json:"decode_seconds"`
	Transform float64 `json:"transform_seconds"`
	Fetch     float64 `json:"fetch_seconds"` // results and tensors
}

// Result is one line of the table.
type Result struct {
	Mode         Mode   `json:"mode"`
	Model        string `json:"model"`
	Engine       string `json:"engine"` // the part that computes
	Rows         int64  `json:"rows"`   // Links count one pass over these rows.
	MiniBatches  int64  `json:"mini_batches"`
	ChunkBytes   int64  `json:"chunk_bytes"`  // ChunkBytes counts the column chunks that the pipeline reads.
	TensorBytes  int64  `json:"tensor_bytes"` // TensorBytes counts the tensors of all mini-batches.
	Links        Links  `json:"links"`
	NetworkBytes int64  `json:"network_bytes"` // between machines: to the worker, to and from the card, to the trainer

	RowsPerSecond float64 `json:"rows_per_second"`
	// CPUSeconds is of the whole process; 0 where the system does not say.
	CPUSeconds float64 `json:"cpu_seconds"`
	// EngineSeconds is the part of CPUSeconds that a software drive's engine took.
	EngineSeconds    float64  `json:"engine_cpu_seconds"`
	RowsPerCPUSecond float64  `json:"cpu_rows_per_second"` // without the engine's
	Steps            Steps    `json:"steps"`
	Digest           string   `json:"mini_batches_sha256"`
	Notes            []string `json:"notes"`

	digestReads int64 // bytes that the digests of the partitions read
}

// withDefaults replaces zeroes by their defaults, and refuses impossible options.
func (o Options) withDefaults() (Options, error) {
	if o.Model == "" {
		o.Model = "rm1"
	}
	if len(o.Modes) == 0 {
		o.Modes = Modes()
	}
	for _, m := range o.Modes {
		if !slices.Contains(Modes(), m) {
			return o, fmt.Errorf("%w: mode %q: want one of %v", ErrOptions, m, Modes())
		}
	}
	m, err := workload.Find(o.Model)
	if err != nil {
		return o, fmt.Errorf("%w: %w", ErrOptions, err)
	}
	if o.Rows == 0 {
		if o.Rows = 262_144; m.Lists {
			o.Rows = 8_192
		}
	}
	if o.Partitions == 0 {
		o.Partitions = 2
	}
	if o.Rows < int64(o.Partitions) || o.Partitions < 1 || o.Batch < 0 || o.SLM < 0 || o.Time < 0 {
		return o, fmt.Errorf("%w: %d rows in %d partitions, mini-batches of %d rows, %d bytes of memory, %v: want a "+
			"row in each partition and nothing below 0", ErrOptions, o.Rows, o.Partitions, o.Batch, o.SLM, o.Time)
	}
	if o.Coverage == 0 {
		o.Coverage = 1
	}
	if o.SLM == 0 {
		o.SLM = csd.DefaultSLM
	}
	if o.Time == 0 {
		o.Time = 2 * time.Second
	}
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	return o, nil
}

// Run measures every mode in turn, over the same files.
func Run(ctx context.Context, o Options) (results []Result, err error) {
	if o, err = o.withDefaults(); err != nil {
		return nil, err
	}
	temporary, err := scratch.Make("", "millrace-bench-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, temporary.Close()) }()
	dir := temporary.Path
	m, err := workload.Find(o.Model)
	if err != nil {
		return nil, err
	}
	spec, err := pipeline.Named(m.Name)
	if err != nil {
		return nil, err
	}
	if o.Batch > 0 {
		spec.Batch = o.Batch
	}
	o.Progress(fmt.Sprintf("%s: generate %d rows", m.Name, o.Rows))
	files, err := workload.Generate(ctx, workload.Options{
		Model: m, Rows: o.Rows, Partitions: o.Partitions, Out: filepath.Join(dir, "data"), Codec: o.Codec, Seed: o.Seed,
		Coverage: o.Coverage,
	})
	if err != nil {
		return nil, err
	}
	paths := make([]string, len(files))
	for i, f := range files {
		paths[i] = f.Path
	}
	for _, mode := range o.Modes {
		r, err := o.measure(ctx, mode, spec, paths)
		if err != nil {
			return results, fmt.Errorf("placement %s: %w", mode, err)
		}
		if len(results) > 0 && results[0].Digest != r.Digest {
			return results, fmt.Errorf("placement %s: it %w: %s, %s makes %s", mode, ErrDiffers, r.Digest,
				results[0].Mode, results[0].Digest)
		}
		results = append(results, *r)
	}
	return results, nil
}

// measure measures one mode.
func (o *Options) measure(ctx context.Context, mode Mode, spec *pipeline.Spec, paths []string) (r *Result, err error) {
	s := &stage{o: o, mode: mode, paths: paths}
	defer func() { err = errors.Join(err, s.close()) }()
	if err := s.open(ctx, spec); err != nil {
		return nil, err
	}
	o.Progress(fmt.Sprintf("%s: count", mode))
	r = &Result{Mode: mode, Model: o.Model, Engine: s.engine(), ChunkBytes: s.chunkBytes, Notes: s.notes(),
		digestReads: s.digestReads}
	if err := s.count(ctx, r); err != nil {
		return nil, err
	}
	o.Progress(fmt.Sprintf("%s: measure for %v", mode, o.Time))
	return r, s.time(ctx, r)
}
