// Package api has the types that the storage side and the training side exchange within a process, and the interface
// between them. It has no implementation.
//
// # Overview
//
// [Storage] is the storage side as a training job sees it. Package host implements it over the drives of one node. The
// order of calls follows PreSto IV-B: the train manager hands over the job ([Storage.Prepare]); the preprocess manager
// measures one drive's throughput P ([Storage.Measure]); for each allocated drive the train manager opens splits
// ([Storage.Open]) and pulls their mini-batches in order. Mini-batches are pulled, never pushed: a trainer that asks
// for fewer slows the drive down.
//
// # Concurrency
//
// A Storage may be used from any number of goroutines; a Stream has one user at a time.
//
// # Errors
//
// [ErrUnknownDrive], [ErrUnknownJob], [ErrBusy], [ErrTaken]; a fault of a drive or a partition comes wrapped in a type
// of its own.
package api

import (
	"context"
	"errors"
	"time"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/pipeline/columntypes"
	"github.com/millrace/millrace/sdk/pipeline/resolve"
	"github.com/millrace/millrace/sdk/tensor"
)

var (
	// ErrUnknownDrive says that no drive has the name.
	ErrUnknownDrive = errors.New("no such drive")
	// ErrUnknownJob says that the job was not prepared, or is finished.
	ErrUnknownJob = errors.New("no such job: prepare it first")
	// ErrBusy says that a drive runs as many streams as it can: close one first.
	ErrBusy = errors.New("the drive runs as many splits as it can")
	// ErrTaken says that others have a drive: another host owns its region, or its memory is all in use. It may be free
	// later.
	ErrTaken = errors.New("others have the drive now")
)

// Storage is the storage side.
type Storage interface {
	// Dataset returns what the drives hold.
	Dataset(ctx context.Context) (*Dataset, error)
	// Prepare hands a job over; every drive gets its program. Preparing a job again changes nothing.
	Prepare(ctx context.Context, job *Job) error
	// Measure measures one drive on mini-batches of its own partitions: P of PreSto IV-B. It delivers nothing.
	Measure(ctx context.Context, job dataset.Digest, drive string) (Measurement, error)
	// Open opens a stream of a split on a drive.
	Open(ctx context.Context, request SplitRequest) (Stream, error)
	// Report returns what the drives did for the job so far.
	Report(ctx context.Context, job dataset.Digest) ([]DriveReport, error)
	// Finish forgets the job and frees its memory on the drives. Streams must be closed before.
	Finish(ctx context.Context, job dataset.Digest) error
}

// Elastic is implemented by a Storage whose drives a job can give up, and take again, while it runs.
type Elastic interface {
	// Acquire takes what a job needs on a drive, unless the job has it already. The error wraps ErrTaken if others have
	// the drive.
	Acquire(ctx context.Context, job dataset.Digest, drive string) error
	// Release frees what a job holds on a drive, so that others can have the drive. Release fails with ErrBusy while the
	// job has streams open on the drive, or has not released a mini-batch that the drive lent.
	Release(ctx context.Context, job dataset.Digest, drive string) error
}

// Dataset is what the drives hold.
type Dataset struct {
	Manifest *dataset.Manifest
	Columns  []columntypes.Column // the partitions' common schema
	// Malformed says how malformed text rows are treated. It is part of every job over this data.
	Malformed program.Malformed
	// MeanLength is the mean number of elements a row of each list column, by name; from the footers.
	MeanLength map[string]float64
	Drives     []Drive
	// Stamps has the stamp of each partition's file, by the partition's name. Members of volumes have no stamp.
	Stamps map[string]Stamp
}

// Resolve resolves a pipeline against the data set. It refuses partitions that statistics by partition do not cover.
// The error is of type [problem.Errors], and it names the missing columns whose values stand in the partitions' names.
func (d *Dataset) Resolve(spec *pipeline.Spec) (*resolve.Resolved, error) {
	return resolve.Data(spec, d.Manifest, d.Columns, d.Malformed)
}

// FilesDrive is the name of a drive that is made of files of this machine. The user named files and
// knows of no drive, so errors do not name it.
const FilesDrive = "files"

// Drive is a drive as the training side knows it.
type Drive struct {
	Name       string
	Partitions []int // indices into the manifest of the partitions that it holds
	Compute    bool  // the drive preprocesses itself; otherwise its node's CPU does, with the same kernels
	Threads    int   // engine threads
	Streams    int   // A job may have this number of streams at once, at least 1.
	// Local says that it is the trainer's own CPUs, which make mini-batches beside the drives and workers elsewhere.
	Local bool
}

// Job is the part of a job that the storage side must know.
type Job struct {
	Digest   dataset.Digest
	Pipeline *pipeline.Spec
	Plan     dataset.Options
	// Manifest is the job's, over all nodes: requests name its partitions, and those that the drives here hold must be
	// the same files. nil: the job is over all partitions that are held here, which must have one schema.
	Manifest *dataset.Manifest
	// Columns are those of all partitions of the manifest, if their columns differ. nil: the partitions that are held
	// here have the columns of all.
	Columns []columntypes.Column
	// Sources say where partitions of the manifest can be read, for workers that hold none. They may name some
	// partitions or none; a worker asks for the sources that it lacks.
	Sources []Source
	// Elastic says that the job takes drives and gives them up while it runs (interface Elastic): a drive that others
	// have when the job is prepared is not an error.
	Elastic bool
	// Rows is how many rows a drive makes of the job, in all epochs, as far as that is known: P of a drive is not measured
	// to the end if the job takes less than ShortJob times as long. 0: P is measured.
	Rows int64
}

// ShortJob is how many times as long as a measurement a job has to take, to be worth it: the measurement of P, or a
// profile, would take more than a fifth of a shorter job.
const ShortJob = 5

// Source says where the bytes of a partition can be read. The job's manifest says which bytes they must be.
type Source struct {
	Partition string // its name
	Copies    []Copy // on drives of nodes
	URL       string // URL is in a store that every worker reaches in the same way; "": only nodes hold it.
	Identity  string // the identity that pins the content at URL (package host/source); "": none
}

// Copy is a partition on a drive of a node.
type Copy struct {
	Node  string
	URLs  []string // URLs are the addresses of the node.
	Drive string
}

// Measurement is one drive's throughput for one pipeline.
type Measurement struct {
	RowsPerSecond float64
	Rows          int64         // RowsPerSecond was measured over these rows: those of the steady state.
	Elapsed       time.Duration // for them
	// Spread is half the width of the 95 % confidence interval of RowsPerSecond, as a share of it; 1 if unknown.
	Spread float64
	// Settled reports whether Spread is small enough (steadyrate.Goal); if not, the measurement ended at its limit.
	Settled bool
	// Short says that the job is too short to measure P (ShortJob): P is that of its first mini-batches, and not kept.
	Short bool
}

// SplitRequest asks for a split, or the rest of one, from a drive.
type SplitRequest struct {
	Job   dataset.Digest
	Drive string
	Epoch uint64
	Split dataset.Split
	From  int // first fragment of the split that is wanted, 0 for all
}

// Stream yields the fragments that a SplitRequest asked for, in ascending order; io.EOF ends it. The caller releases
// each. A fragment that is not a whole mini-batch says so (tensor.MiniBatch.Fragment), and tensor.Memory.Join makes the
// mini-batch.
type Stream interface {
	Next(ctx context.Context) (*tensor.MiniBatch, error)
	Close() error
}

// DriveReport says what one drive did for one job. Times of streams that overlap add up, so their sum may exceed the
// elapsed time.
type DriveReport struct {
	Name string `json:"name"`
	// the engine that computed: "drive (vendor)", "drive (standard)", "cpu", "reference"; a drive whose windows the node
	// reads and stores: "drive (vendor), fed by the host"
	Engine        string  `json:"engine"`
	RowsPerSecond float64 `json:"p_rows_per_second"`
	Spread        float64 `json:"p_spread_share"` // Measurement.Spread; 0 if unknown
	// Rows and Fragments are those that the drive made; a whole mini-batch is one fragment. In the report of a training
	// job, they are those that the trainer got from the drive.
	Rows      int64 `json:"rows"`
	Fragments int64 `json:"fragments"`
	// MiniBatches is set in the report of a training job: the mini-batches whose first row the trainer got from the
	// drive, so that the sum over all drives is the number of mini-batches.
	MiniBatches int64 `json:"mini_batches"`
	// CountedRows is set in the report of a training job: the rows that the times, bytes and counters cover. The drive
	// made them, for all ranks, since its node was started.
	CountedRows   int64         `json:"counted_rows,omitempty"`
	Wait          time.Duration `json:"wait_ns"` // for an engine thread
	Move          time.Duration `json:"move_ns"`
	Decode        time.Duration `json:"decode_ns"`
	Transform     time.Duration `json:"transform_ns"`
	Fetch         time.Duration `json:"fetch_ns"`
	BytesMoved    int64         `json:"moved_bytes"`    // flash to device memory, or read by the node
	BytesUnneeded int64         `json:"unneeded_bytes"` // moved and needed by none of the rows, see processor.Stats
	BytesStored   int64         `json:"stored_bytes"`   // The node read these and stored them in device memory.
	BytesAhead    int64         `json:"ahead_bytes"`    // The node stored these while the device executed.
	BytesFetched  int64         `json:"fetched_bytes"`  // Tensors were copied from device memory to the node.
	BytesOut      int64         `json:"out_bytes"`      // Tensors have these bytes.
	RowsDropped   int64         `json:"rows_dropped"`   // malformed text rows
	// LookedUpInDrive and LookedUpByHost name the keys whose ids were looked up in vocabularies: by the drive, whose
	// memory holds their tables, and by this host behind it.
	LookedUpInDrive []string  `json:"drive_lookup_keys,omitempty"`
	LookedUpByHost  []string  `json:"host_lookup_keys,omitempty"`
	Counters        *Counters `json:"counters,omitempty"`
	// Source counts the reads of partitions that lie elsewhere (HTTP, S3), by all jobs since the partitions were opened.
	Source  *SourceCounters `json:"source,omitempty"`
	Problem string          `json:"problem,omitempty"` // why Counters is nil although the drive computed
}

// SourceCounters count the requests for partitions that no drive of the machine holds.
type SourceCounters struct {
	Requests      int64         `json:"requests"` // Requests counts those that were answered, or failed.
	Bytes         int64         `json:"received_bytes"`
	BytesUnneeded int64         `json:"unneeded_bytes"` // received and given up before anything read them
	Retries       int64         `json:"retries"`
	Waited        time.Duration `json:"waited_ns"`  // between attempts
	Stalled       time.Duration `json:"stalled_ns"` // Reads stood still for bytes for this time, all streams together.
}

// Counters are the drive's own (vendor log C0h), for all of the drive's users. In a DriveReport they count since the
// job's P was measured, or since the job was prepared if it was not; elsewhere since the drive was opened.
type Counters struct {
	Backend          string `json:"backend"`
	Programs         uint64 `json:"programs_run"`
	Rows             uint64 `json:"rows"`
	FlashToDRAMBytes uint64 `json:"flash_to_dram_bytes"` // copied
	FlashLentBytes   uint64 `json:"flash_lent_bytes"`    // read on the flash, where they lie
	DRAMToHostBytes  uint64 `json:"dram_to_host_bytes"`
	HostToDRAMBytes  uint64 `json:"host_to_dram_bytes"`
	BusyNanoseconds  uint64 `json:"busy_ns"`
}
