package rm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/millrace/millrace/bench/workload"
	"github.com/millrace/millrace/fpga/unit/text"
	"github.com/millrace/millrace/host"
	"github.com/millrace/millrace/sdk"
	"github.com/millrace/millrace/sdk/cpu"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/processor"
	"github.com/millrace/millrace/sdk/tensor"
	"github.com/millrace/millrace/sdk/vocabulary"
)

// pairs are the workloads whose data set and pipeline have names of their own: Piper's pipelines over Criteo's rows,
// and MiniPipe's over its data sets.
var pairs = []struct{ name, data, pipeline string }{
	{"criteo-5k", CriteoBinary, "piper-5k"},
	{"criteo-512k", CriteoBinary, "piper-512k"},
	{"criteo-1m", CriteoBinary, "piper-1m"},
	{"criteo-5k-tsv", CriteoTSV, "piper-5k"},
	{"criteo-1m-tsv", CriteoTSV, "piper-1m"},
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
	if isCriteo(name) {
		return name, criteoPipeline, true
	}
	m, err := workload.Find(name)
	return m.Name, m.Name, err == nil
}

// loops measures both loops of a pipeline with vocabularies: a pass that builds them, and a pass that applies them.
type loops struct {
	*bench
	dir string
}

// newProcessor starts a processor of a pipeline over the benchmark's partition.
func (l *loops) newProcessor(
	ctx context.Context, spec *pipeline.Spec,
) (processor.Processor, *pipeline.Resolved, error) {
	columns, _ := host.Columns(l.partition, text.Options{})
	resolved, err := spec.Resolve(columns)
	if err != nil {
		return nil, nil, err
	}
	lowered, err := pipeline.LowerWithLookups(resolved)
	if err != nil {
		return nil, nil, err
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
	if err != nil || lowered.Lookups == nil {
		return p, resolved, err
	}
	applier, err := vocabulary.NewApplier(lowered.Made, lowered.Schema, lowered.Lookups)
	if err != nil {
		return nil, nil, errors.Join(err, p.Close())
	}
	return processor.WithLookups(p, applier), resolved, nil
}

// measure runs both loops until the time has passed, after a first turn that is not counted.
func (l *loops) measure(ctx context.Context) (Result, error) {
	if l.o.Engine != host.EngineDrive {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(l.o.Threads))
	}
	drop := func(int, int64, *tensor.MiniBatch) error { return nil }
	if _, err := l.turn(ctx, drop); err != nil {
		return Result{}, err
	}
	r := Result{Engine: string(l.o.Engine), Threads: l.o.Threads, Codec: or(l.o.Codec, "none"),
		Encoding: or(l.o.Encoding, "plain")}
	var s processor.Stats
	begin, used := time.Now(), processorTime()
	for first := true; first || time.Since(begin) < l.o.Time; first = false {
		stats, err := l.turn(ctx, drop)
		if err != nil {
			return Result{}, err
		}
		s = s.Add(stats)
		r.Rows += l.partition.Rows
	}
	elapsed, cpu := time.Since(begin).Seconds(), (processorTime() - used).Seconds()
	r.setTimes(s, elapsed, cpu)
	return r, nil
}

// turn carries both loops out once. take gets the mini-batches of the second, of several threads.
func (l *loops) turn(
	ctx context.Context, take func(thread int, first int64, mb *tensor.MiniBatch) error,
) (processor.Stats, error) {
	built, bound := processor.Stats{}, l.spec
	for i := range l.spec.Vocabularies {
		name := l.spec.Vocabularies[i].Name
		path := filepath.Join(l.dir, name+".vocab")
		s, err := l.build(ctx, name, path)
		if err != nil {
			return built, err
		}
		built = built.Add(s)
		file, err := vocabulary.Load(path)
		if err != nil {
			return built, err
		}
		if bound, err = bound.Bind(name, file); err != nil {
			return built, err
		}
	}
	p, resolved, err := l.newProcessor(ctx, bound)
	if err != nil {
		return built, err
	}
	err = l.streams(ctx, p, resolved.Batch, take)
	return built.Add(p.Stats()), errors.Join(err, p.Close())
}

// build carries the first loop out.
func (l *loops) build(ctx context.Context, name, path string) (s processor.Stats, err error) {
	keys, declared, err := l.spec.VocabularyKeys(name)
	if err != nil {
		return s, err
	}
	p, resolved, err := l.newProcessor(ctx, keys)
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	b, err := vocabulary.NewBuilder(resolved.VocabularyColumns(), declared.Rules,
		vocabulary.BuilderOptions{Folder: l.dir})
	if err != nil {
		return s, err
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
		return s, err
	}
	_, err = b.Finish(path)
	return p.Stats(), err
}

// streams runs the partition through a processor, a part of it in each thread.
func (l *loops) streams(ctx context.Context, p processor.Processor, batch int,
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
func (l *loops) stream(ctx context.Context, p processor.Processor, run processor.Run,
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
