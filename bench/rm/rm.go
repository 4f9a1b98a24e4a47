// Package rm measures RM1 to RM5 (PreSto, Table I), and Criteo's rows, on this machine: how many rows a second one
// engine preprocesses, and which stage takes the time.
//
// # What is measured
//
// A data set of the workload is generated (int64 ids, every feature present unless Options.Coverage says otherwise, so
// that a row of RM5 has the 8,908 bytes that the models assume), read into memory, and preprocessed again and again by
// one stream a thread until enough time has passed. With the drive engine the partition lies on a drive in a file.
// Files are PLAIN and uncompressed unless Options say otherwise. Two workloads are not Parquet: Criteo's rows as text
// ([CriteoTSV]) and packed ([CriteoBinary]), through MiniPipe's stateless pipeline; bytes in are then those of the
// partition. [RealTSV], [RealBinary] and [RealRM1] are over rows of Criteo's own, which Options.Criteo names, beside
// the generated ones. Workloads with vocabularies (criteo-5k, criteo-512k and criteo-1m over packed rows, criteo-5k-tsv
// and criteo-1m-tsv over text, d1-2 to d2-3 over MiniPipe's data sets) run both loops, each of which reads all rows: a
// pass that builds the vocabularies in memory, and a pass that applies them; the second decodes no keys whose ids the
// first kept. A row counts once for both, and folding and looking ids up is other time. With Options.Threads threads
// the Go scheduler gets the same number of processors, so that nothing runs beside the threads. Bytes in are the column
// chunk bytes that were decoded, bytes out the tensors' bytes.
//
// # Errors
//
// Errors name the model and the engine.
package rm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/millrace/millrace/fpga/csd"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/timing"
	"github.com/millrace/millrace/fpga/unit/text"
	"github.com/millrace/millrace/host"
	"github.com/millrace/millrace/host/workload"
	"github.com/millrace/millrace/internal/power"
	"github.com/millrace/millrace/internal/quantity"
	"github.com/millrace/millrace/internal/scratch"
	"github.com/millrace/millrace/internal/steadyrate"
	"github.com/millrace/millrace/sdk"
	"github.com/millrace/millrace/sdk/cpu"
	"github.com/millrace/millrace/sdk/partition"
	"github.com/millrace/millrace/sdk/partition/schema"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/pipeline/lowering"
	"github.com/millrace/millrace/sdk/pipeline/resolve"
	"github.com/millrace/millrace/sdk/processor"
)

// Options select the measurement.
type Options struct {
	Models   []string
	Engine   host.Engine // cpu (default), drive or reference
	Threads  int         // 0 means 1
	Rows     int64       // 0 means a default by model.
	Time     time.Duration
	Codec    string
	Encoding string
	Coverage float64 // 0 means 1: every feature present
	Seed     uint64
	Commands sdk.Commands
	// Criteo is a file of Criteo's rows as text, for the workloads over them ([RealTSV] and others), whose names say
	// real. Its first rows are repeated until there are Rows.
	Criteo string
	// Folder is where data and vocabularies are written; "" is the system's folder for temporary files.
	Folder string
	// VocabularyMemory bounds the memory of keys while a vocabulary is built; 0 is that of vocabulary.BuilderOptions.
	VocabularyMemory int64
	// Timing makes the drive take modelled time, on whose clock Time and the rates are. nil: as fast as the machine.
	// Only for the engine drive, and Parquet without vocabularies.
	Timing *timing.Pacing
	// Power measures the energy of each workload; nil: nothing is measured.
	Power *power.Meter
	// Progress, if not nil, receives each step in words.
	Progress func(string)
}

// Result is one line of the table.
type Result struct {
	Model          string  `json:"model"`
	Engine         string  `json:"engine"`
	Threads        int     `json:"threads"`
	Codec          string  `json:"codec"`
	Encoding       string  `json:"encoding"`
	Rows           int64   `json:"rows"`
	ElapsedSeconds float64 `json:"elapsed_seconds"`
	RowsPerSecond  float64 `json:"rows_per_second"`
	// CPUSeconds is of the whole process; 0 where the system does not say.
	CPUSeconds           float64 `json:"cpu_seconds"`
	CPURowsPerSecond     float64 `json:"cpu_rows_per_second"` // rows a second of processor time
	Spread               float64 `json:"p_spread_share"`      // Spread is that of the turns' rates; see steadyrate.Rate.
	InputBytesPerSecond  float64 `json:"input_bytes_per_second"`
	OutputBytesPerSecond float64 `json:"output_bytes_per_second"`
	WaitShare            float64 `json:"wait_share"` // for an engine thread
	MoveShare            float64 `json:"move_share"`
	DecodeShare          float64 `json:"decode_share"`
	TransformShare       float64 `json:"transform_share"`
	FetchShare           float64 `json:"fetch_share"`
	OtherShare           float64 `json:"other_share"` // planning, handing over, the clock's own reads

	Energy *power.Energy `json:"energy,omitempty"` // Energy is what the machine used while the rows were preprocessed.
	Timing timing.Report `json:"timing"`           // It holds for ElapsedSeconds and rates, not for shares.
}

// defaultRows keeps a data set near 100 MB.
func defaultRows(m workload.Model) int64 {
	if m.Lists || m.Dense > 100 {
		return 16_384
	}
	return 524_288
}

// withDefaults fills in what is not given.
func (o Options) withDefaults() Options {
	if o.Threads == 0 {
		o.Threads = 1
	}
	if o.Time == 0 {
		o.Time = 3 * time.Second
	}
	if o.Engine == host.EngineAuto {
		o.Engine = host.EngineCPU
	}
	if o.Coverage == 0 {
		o.Coverage = 1
	}
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	return o
}

// Run measures every model in turn.
func Run(ctx context.Context, o Options) ([]Result, error) {
	o = o.withDefaults()
	var results []Result
	for _, name := range o.Models {
		r, err := run(ctx, o, name)
		if err != nil {
			return results, fmt.Errorf("bench %s on %s: %w", name, o.Engine, err)
		}
		results = append(results, r)
	}
	return results, nil
}

func run(ctx context.Context, o Options, name string) (r Result, err error) {
	if err := Known(name); err != nil {
		return r, err
	}
	temporary, err := scratch.Make(o.Folder, "millrace-bench-")
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, temporary.Close()) }()
	dir := temporary.Path
	data, named, _ := pairOf(name)
	path, err := generateData(ctx, o, name, data, dir)
	if err != nil {
		return r, err
	}
	spec, err := specOf(data, named)
	if err != nil {
		return r, err
	}
	b := &bench{o: o, spec: spec, source: sourceOf(data)}
	if o.Timing != nil && (o.Engine != host.EngineDrive || b.source != program.Parquet || len(spec.Vocabularies) > 0) {
		return r, fmt.Errorf("%w: modelled timing is that of engine drive over Parquet without vocabularies: rm1 to "+
			"rm5", workload.ErrOptions)
	}
	measure, open := b.measure, b.open
	if len(spec.Vocabularies) > 0 { // each loop has a processor of its own
		measure, open = (&Loops{bench: b, dir: temporary}).measure, b.openPartition
	}
	if err := open(ctx, path); err != nil {
		return r, errors.Join(err, b.close())
	}
	o.Progress(fmt.Sprintf("%s: measure for %v", name, o.Time))
	r, err = measure(ctx)
	r.Model, r.Timing = name, o.Timing.Report()
	if b.source != program.Parquet {
		r.Codec, r.Encoding = "none", name
	}
	return r, errors.Join(err, b.close())
}

// generateData writes a partition of a data set to dir.
func generateData(ctx context.Context, o Options, name, data, dir string) (path string, err error) {
	rows := o.Rows
	if isCriteo(data) {
		if rows == 0 {
			rows = criteoRows
		}
		o.Progress(fmt.Sprintf("%s: generate %s", name, quantity.Of(rows, "row")))
		return generateCriteo(dir, data, rows, o.Seed)
	}
	if isReal(data) {
		if rows == 0 {
			rows = criteoRows
		}
		return tileReal(ctx, o, data, dir, rows)
	}
	m, err := workload.Find(data)
	if err != nil {
		return "", err
	}
	if rows == 0 {
		rows = defaultRows(m)
	}
	o.Progress(fmt.Sprintf("%s: generate %s", name, quantity.Of(rows, "row")))
	files, err := workload.Generate(ctx, workload.Options{Model: m, Rows: rows, Out: filepath.Join(dir, m.Name),
		Codec: o.Codec, Encoding: o.Encoding, Seed: o.Seed, Coverage: o.Coverage})
	if err != nil {
		return "", err
	}
	return files[0].Path, nil
}

// bench is one measurement in the making.
type bench struct {
	o         Options
	spec      *pipeline.Spec
	source    program.Source
	partition *partition.Partition
	processor processor.Processor
	device    *sdk.Device
	batch     int
}

// openPartition reads the file into memory, and with the drive engine writes it to a drive in a file beside it.
func (b *bench) openPartition(ctx context.Context, path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	po := partition.Options{Bytes: data}
	if b.o.Engine == host.EngineDrive {
		if b.device, err = createDrive(ctx, path+".flash", data, b.o); err != nil {
			return err
		}
		po.Extents = []partition.Extent{{Len: int64(len(data))}}
	}
	b.partition, err = partition.Open(ctx, filepath.Base(path), bytes.NewReader(data), int64(len(data)), b.source,
		po)
	return err
}

// createDrive makes a drive in a file that holds data from its first block on.
func createDrive(ctx context.Context, path string, data []byte, o Options) (*sdk.Device, error) {
	size := (len(data) + csd.LBA512 - 1) / csd.LBA512 * csd.LBA512
	uri := fmt.Sprintf("file:%s?size=%dB&threads=%d", url.PathEscape(path), size, max(o.Threads, 1))
	if o.Commands != "" {
		uri += "&commands=" + string(o.Commands)
	}
	dev, err := sdk.Create(ctx, uri, sdk.DeviceOptions{Timing: o.Timing})
	if err != nil {
		return nil, err
	}
	blocks := make([]byte, size)
	copy(blocks, data)
	if err := dev.WriteBlocks(ctx, blocks, 0, false); err != nil {
		return nil, errors.Join(err, dev.Close())
	}
	return dev, nil
}

// open opens the partition and starts a processor.
func (b *bench) open(ctx context.Context, path string) error {
	if err := b.openPartition(ctx, path); err != nil {
		return err
	}
	columns, _ := schema.Columns(b.partition, text.Options{})
	resolved, err := resolve.Pipeline(b.spec, columns)
	if err != nil {
		return err
	}
	b.batch = resolved.Batch
	prog, schema, err := lowering.Lower(resolved)
	if err != nil {
		return err
	}
	switch b.o.Engine {
	case host.EngineReference:
		b.processor, err = cpu.NewReference(prog, schema)
	case host.EngineDrive:
		b.processor, err = sdk.NewProcessor(ctx, b.device, prog, schema, processor.Options{})
	default:
		b.processor, err = cpu.New(ctx, prog, schema, cpu.Options{Threads: b.o.Threads})
	}
	return err
}

// measure runs the streams until the time has passed, after a first turn that warms caches and is not counted.
func (b *bench) measure(ctx context.Context) (Result, error) {
	if b.o.Engine != host.EngineDrive {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(b.o.Threads))
	}
	if _, err := b.turns(ctx, 0); err != nil {
		return Result{}, err
	}
	before := b.processor.Stats()
	var s processor.Stats
	var elapsed, cpu, spread float64
	energy, err := b.o.Power.Measure(ctx, func() (_ power.Use, err error) {
		begin, used := b.now(), processorTime()
		if spread, err = b.turns(ctx, b.o.Time); err != nil {
			return power.Use{}, err
		}
		elapsed, cpu = b.now().Sub(begin).Seconds(), (processorTime() - used).Seconds()
		s = b.processor.Stats().Sub(before)
		return b.use(s.Rows, elapsed, cpu), b.timingErr()
	})
	if err != nil {
		return Result{}, err
	}
	r := Result{Engine: string(b.o.Engine), Threads: b.o.Threads, Codec: or(b.o.Codec, "none"),
		Encoding: or(b.o.Encoding, "plain"), Rows: s.Rows, Spread: spread,
		Timing: b.o.Timing.Report(), Energy: energy}
	r.setTimes(s, elapsed, cpu)
	return r, nil
}

// use is what rows used of processors, or of a modelled drive.
func (b *bench) use(rows int64, elapsed, cpu float64) power.Use {
	u := power.Use{Rows: rows, CPUSeconds: cpu}
	if b.o.Timing != nil {
		u.DriveSeconds = elapsed
	}
	return u
}

// timingErr returns the error of the modelled timing, if there is one.
func (b *bench) timingErr() error {
	if b.o.Timing == nil {
		return nil
	}
	return b.o.Timing.Err()
}

// now returns the time of the drive's clock.
func (b *bench) now() time.Time {
	if b.o.Timing == nil {
		return time.Now()
	}
	return b.o.Timing.Clock().Now()
}

// streams is how many streams run at once: a modelled drive overlaps its stages when it has two commands at a time.
func (b *bench) streams() int {
	if b.o.Timing == nil {
		return b.o.Threads
	}
	return max(2, b.o.Threads)
}

// setTimes sets what follows from the counters, the elapsed and the processor's seconds, for r.Rows rows.
func (r *Result) setTimes(s processor.Stats, elapsed, cpu float64) {
	busy := elapsed * float64(r.Threads) * float64(max(r.Timing.Dilate, 1)) // of the machine
	r.ElapsedSeconds, r.RowsPerSecond, r.CPUSeconds = elapsed, float64(r.Rows)/elapsed, cpu
	r.InputBytesPerSecond, r.OutputBytesPerSecond = float64(s.BytesIn)/elapsed, float64(s.BytesOut)/elapsed
	r.WaitShare, r.MoveShare, r.DecodeShare = s.Wait.Seconds()/busy, s.Move.Seconds()/busy, s.Decode.Seconds()/busy
	r.TransformShare, r.FetchShare = s.Transform.Seconds()/busy, s.Fetch.Seconds()/busy
	if cpu > 0 {
		r.CPURowsPerSecond = float64(r.Rows) / cpu
	}
	r.OtherShare = max(0, 1-r.WaitShare-r.MoveShare-r.DecodeShare-r.TransformShare-r.FetchShare)
}

// turns runs the whole partition in every stream, at least once, until the time has passed. It returns the spread of
// the turns' rate.
func (b *bench) turns(ctx context.Context, least time.Duration) (spread float64, err error) {
	begin := b.now()
	errs := make([]error, b.streams())
	var wg sync.WaitGroup
	var mu sync.Mutex // guards meter
	meter := steadyrate.New(least, len(errs))
	for i := range errs {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for first := true; first || b.now().Sub(begin) < least; first = false {
				if errs[i] = b.turn(ctx); errs[i] != nil {
					return
				}
				mu.Lock()
				meter.Add(b.now().Sub(begin), b.partition.Rows)
				mu.Unlock()
			}
		}()
	}
	wg.Wait()
	return meter.Rate().Spread, errors.Join(errs...)
}

func (b *bench) turn(ctx context.Context) error {
	return ReadAll(ctx, b.processor, processor.Run{Partition: b.partition, Rows: b.partition.Rows, Batch: b.batch})
}

// ReadAll makes all mini-batches of a run and drops them.
func ReadAll(ctx context.Context, p processor.Processor, run processor.Run) error {
	s, err := p.Open(ctx, run)
	if err != nil {
		return err
	}
	for {
		mb, err := s.Next(ctx)
		if errors.Is(err, io.EOF) {
			return s.Close()
		}
		if err != nil {
			return errors.Join(err, s.Close())
		}
		mb.Release()
	}
}

func (b *bench) close() error {
	var errs []error
	if b.processor != nil {
		errs = append(errs, b.processor.Close())
	}
	if b.device != nil {
		errs = append(errs, b.device.Close())
	}
	return errors.Join(errs...)
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}
