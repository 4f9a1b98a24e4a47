package rm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"
	"time"

	"github.com/millrace/millrace/fpga/unit/text"
	"github.com/millrace/millrace/host"
	"github.com/millrace/millrace/host/workload"
	"github.com/millrace/millrace/internal/power"
	"github.com/millrace/millrace/internal/scratch"
	"github.com/millrace/millrace/internal/steadyrate"
	"github.com/millrace/millrace/sdk"
	"github.com/millrace/millrace/sdk/cpu"
	"github.com/millrace/millrace/sdk/partition/schema"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/pipeline/lowering"
	"github.com/millrace/millrace/sdk/pipeline/resolve"
	"github.com/millrace/millrace/sdk/processor"
	"github.com/millrace/millrace/sdk/tensor"
	"github.com/millrace/millrace/sdk/vocabulary"
)

// pairs are the workloads whose data set and pipeline have names of their own: Piper's pipelines over Criteo's rows,
// and MiniPipe's over its data sets; RM1's over Criteo's own rows.
var pairs = []struct{ name, data, pipeline string }{
	{"criteo-5k", CriteoBinary, "piper-5k"},
	{"criteo-512k", CriteoBinary, "piper-512k"},
	{"criteo-1m", CriteoBinary, "piper-1m"},
	{"criteo-zipf", criteoZipf, "piper-5k"},
	{"criteo-5k-tsv", CriteoTSV, "piper-5k"},
	{"criteo-1m-tsv", CriteoTSV, "piper-1m"},
	{"criteo-real-5k", RealBinary, "piper-5k"},
	{"criteo-real-5k-tsv", RealTSV, "piper-5k"},
	{RealRM1, RealRM1, "rm1"},
	{"d1-1", "d1", "minipipe-1"}, {"d1-2", "d1", "minipipe-2"}, {"d1-3", "d1", "minipipe-3"},
	{"d2-1", "d2", "minipipe-1"}, {"d2-2", "d2", "minipipe-2"}, {"d2-3", "d2", "minipipe-3"},
}

// pairOf returns the data set and the pipeline of a workload. Most workloads have one name for both.
func pairOf(name string) (data, named string, ok bool) {
	for _, p := range pairs {
		if p.name == name {
			return p.data, p.pipeline, true
		}
	}
	for _, d := range workload.DataSets() {
		if d.Name == name {
			return "", "", false // it has three pipelines
		}
	}
	if isCriteo(name) || isReal(name) {
		return name, criteoPipeline, true
	}
	m, err := workload.Find(name)
	return m.Name, m.Name, err == nil
}

// Loops are both loops of a pipeline with vocabularies: a pass that builds them in memory, and one that applies them.
// Processors start with the first turn and stay, but for those of a drive, whose memory holds one at a time.
type Loops struct {
	*bench
	dir        *scratch.Folder
	path       string                         // path is where the partition lies.
	processors map[string]processor.Processor // Each vocabulary's keys have a processor, and the whole pipeline has one.
	ended      processor.Stats                // ended is the sum of the processors that ended.
}

// wholePipeline names the processor of the second loop. No vocabulary has an empty name.
const wholePipeline = ""

// withoutKept names that of the pipeline without the keys whose ids the first loop kept. No vocabulary has the name.
const withoutKept = "\x00"

// OpenLoops generates the data of a workload and opens it. A workload without vocabularies has the second loop only.
// Close removes the data.
func OpenLoops(ctx context.Context, o Options, name string) (*Loops, error) {
	o = o.withDefaults()
	data, named, ok := pairOf(name)
	if !ok {
		return nil, Known(name)
	}
	spec, err := specOf(data, named)
	if err != nil {
		return nil, err
	}
	dir, err := scratch.Make(o.Folder, "millrace-bench-")
	if err != nil {
		return nil, err
	}
	l := &Loops{bench: &bench{o: o, spec: spec, source: sourceOf(data)}, dir: dir}
	if l.path, err = generateData(ctx, o, name, data, dir.Path); err == nil {
		err = l.openPartition(ctx, l.path)
	}
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// Path names the partition's file.
func (l *Loops) Path() string { return l.path }

// Rows returns the rows of the partition.
func (l *Loops) Rows() int64 { return l.partition.Rows }

// Close ends the processors and removes the data.
func (l *Loops) Close() error {
	return errors.Join(l.closeProcessors(), l.close(), l.dir.Close())
}

func (l *Loops) closeProcessors() error {
	var errs []error
	for _, p := range l.processors {
		l.ended = l.ended.Add(p.Stats())
		errs = append(errs, p.Close())
	}
	l.processors = nil
	return errors.Join(errs...)
}

// freeDrive ends the processors of a drive.
func (l *Loops) freeDrive() error {
	if l.o.Engine != host.EngineDrive {
		return nil
	}
	return l.closeProcessors()
}

// lower returns the processor of a pipeline over the benchmark's partition, by a name, without lookups.
func (l *Loops) lower(
	ctx context.Context, name string, spec *pipeline.Spec,
) (processor.Processor, *lowering.Lowered, *resolve.Resolved, error) {
	columns, _ := schema.Columns(l.partition, text.Options{})
	resolved, err := resolve.Pipeline(spec, columns)
	if err != nil {
		return nil, nil, nil, err
	}
	lowered, err := lowering.LowerWithLookups(resolved)
	if err != nil {
		return nil, nil, nil, err
	}
	if name == wholePipeline && len(lowered.Made.Keys) < len(lowered.Schema.Keys) {
		name = withoutKept
	}
	if p := l.processors[name]; p != nil { // else the program does not depend on the vocabularies' keys
		return p, lowered, resolved, nil
	}
	var p processor.Processor
	switch l.o.Engine {
	case host.EngineReference:
		p, err = cpu.NewReference(lowered.Program, lowered.Made)
	case host.EngineDrive:
		p, err = sdk.NewProcessor(ctx, l.device, lowered.Program, lowered.Made, processor.Options{})
	default:
		p, err = cpu.New(ctx, lowered.Program, lowered.Made, cpu.Options{Threads: l.o.Threads})
	}
	if err != nil {
		return nil, nil, nil, err
	}
	if l.processors == nil {
		l.processors = map[string]processor.Processor{}
	}
	l.processors[name] = p
	return p, lowered, resolved, nil
}

// stats adds the counters of all processors up.
func (l *Loops) stats() processor.Stats {
	s := l.ended
	for _, p := range l.processors {
		s = s.Add(p.Stats())
	}
	return s
}

// measure runs both loops until the time has passed, after a first turn that is not counted.
func (l *Loops) measure(ctx context.Context) (_ Result, err error) {
	if l.o.Engine != host.EngineDrive {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(l.o.Threads))
	}
	defer func() { err = errors.Join(err, l.closeProcessors()) }()
	drop := func(int, int64, *tensor.MiniBatch) error { return nil }
	if err := l.Turn(ctx, drop); err != nil {
		return Result{}, err
	}
	r := Result{Engine: string(l.o.Engine), Threads: l.o.Threads, Codec: or(l.o.Codec, "none"),
		Encoding: or(l.o.Encoding, "plain")}
	before := l.stats()
	var elapsed, cpu float64
	r.Energy, err = l.o.Power.Measure(ctx, func() (power.Use, error) {
		begin, used := time.Now(), processorTime()
		meter := steadyrate.New(l.o.Time, 1)
		for first := true; first || time.Since(begin) < l.o.Time; first = false {
			if err := l.Turn(ctx, drop); err != nil {
				return power.Use{}, err
			}
			r.Rows += l.partition.Rows
			meter.Add(time.Since(begin), l.partition.Rows)
		}
		r.Spread = meter.Rate().Spread
		elapsed, cpu = time.Since(begin).Seconds(), (processorTime() - used).Seconds()
		return l.use(r.Rows, elapsed, cpu), nil
	})
	if err != nil {
		return Result{}, err
	}
	r.setTimes(l.stats().Sub(before), elapsed, cpu)
	return r, nil
}

// Turn carries both loops out once. take gets the mini-batches of the second, of several threads.
func (l *Loops) Turn(
	ctx context.Context, take func(thread int, first int64, mb *tensor.MiniBatch) error,
) (err error) {
	defer func() { err = errors.Join(err, l.freeDrive()) }()
	bound := l.spec
	for i := range l.spec.Vocabularies {
		name := l.spec.Vocabularies[i].Name
		made, err := l.build(ctx, name)
		if err != nil {
			return err
		}
		if bound, err = bound.Bind(name, made); err != nil {
			return err
		}
	}
	p, lowered, resolved, err := l.lower(ctx, wholePipeline, bound)
	if err != nil {
		return err
	}
	if lowered.Lookups == nil {
		return l.streams(ctx, p, resolved.Batch, take)
	}
	applier, err := vocabulary.NewApplier(lowered.Made, lowered.Schema, lowered.Lookups)
	if err != nil {
		return err
	}
	return l.streams(ctx, processor.WithAppliers(p, processor.Appliers{Lookups: applier}), resolved.Batch, take)
}

// build carries the first loop out.
func (l *Loops) build(ctx context.Context, name string) (_ *vocabulary.Vocabulary, err error) {
	keys, declared, err := l.spec.VocabularyKeys(name)
	if err != nil {
		return nil, err
	}
	p, _, resolved, err := l.lower(ctx, name, keys)
	if err != nil {
		return nil, err
	}
	b, err := vocabulary.NewMemoryBuilder(resolved.VocabularyColumns(), declared.Rules,
		vocabulary.BuilderOptions{Folder: l.dir.Path, Memory: l.o.VocabularyMemory})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	err = l.streams(ctx, p, resolved.Batch, func(thread int, first int64, mb *tensor.MiniBatch) error {
		n := len(mb.Schema.Keys)
		for i := range n {
			// Each thread begins with another column, so that threads do not wait for each other's tables.
			column := (i + thread*n/l.o.Threads) % n
			if err := b.Add(column, uint64(first), mb.Values64[column*mb.Rows:][:mb.Rows], nil); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	b.KeepIDs([]vocabulary.PartitionRows{{Name: l.partition.Name, Digest: l.partition.Digest(),
		Rows: l.partition.Rows}})
	made, err := b.Vocabulary()
	return made, errors.Join(err, l.freeDrive())
}

// streams runs the partition through a processor, a part of it in each thread.
func (l *Loops) streams(ctx context.Context, p processor.Processor, batch int,
	take func(thread int, first int64, mb *tensor.MiniBatch) error) error {
	errs := make([]error, l.o.Threads)
	var group sync.WaitGroup
	share := (l.partition.Rows + int64(l.o.Threads) - 1) / int64(l.o.Threads)
	for i := range l.o.Threads {
		first := int64(i) * share
		rows := min(share, l.partition.Rows-first)
		if rows < 1 {
			continue
		}
		group.Go(func() {
			run := processor.Run{Partition: l.partition, First: first, Rows: rows, Batch: batch}
			errs[i] = l.stream(ctx, p, run, func(first int64, mb *tensor.MiniBatch) error { return take(i, first, mb) })
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

// stream takes all mini-batches of a run.
func (l *Loops) stream(ctx context.Context, p processor.Processor, run processor.Run,
	take func(first int64, mb *tensor.MiniBatch) error) error {
	s, err := p.Open(ctx, run)
	if err != nil {
		return err
	}
	for row := run.First; ; {
		mb, err := s.Next(ctx)
		if errors.Is(err, io.EOF) {
			return s.Close()
		}
		if err != nil {
			return errors.Join(err, s.Close())
		}
		rows := int64(mb.Rows)
		err = take(row, mb)
		mb.Release()
		if err != nil {
			return errors.Join(fmt.Errorf("rows from %d: %w", row, err), s.Close())
		}
		row += rows
	}
}
