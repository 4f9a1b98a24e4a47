package papers

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/millrace/millrace/bench/rm"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/text"
	"github.com/millrace/millrace/host/workload"
	"github.com/millrace/millrace/internal/processors"
	"github.com/millrace/millrace/sdk/cpu"
	"github.com/millrace/millrace/sdk/partition"
	"github.com/millrace/millrace/sdk/partition/schema"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/pipeline/lowering"
	"github.com/millrace/millrace/sdk/pipeline/resolve"
	"github.com/millrace/millrace/sdk/processor"
)

// generate returns the only file of a data set. The options' folder is set here.
func generate(ctx context.Context, o *Options, w workload.Options) (data []byte, err error) {
	dir, err := os.MkdirTemp(o.Folder, "millrace-papers-")
	if err != nil {
		return nil, err
	}
	w.Out = filepath.Join(dir, "table")
	files, err := workload.Generate(ctx, w)
	if err == nil {
		data, err = os.ReadFile(files[0].Path)
	}
	return data, errors.Join(err, os.RemoveAll(dir))
}

// pass is what a measurement of a pipeline gives.
type pass struct {
	rowsPerCPUSecond float64
	operators        float64 // the operators' share of moving, decoding and operators, by the engine's clock
	bytesIn          int64   // decoded, of one pass
	rows             int64
}

// operatorSeconds is the processor time of the operators for a row.
func (p *pass) operatorSeconds() float64 { return p.operators / p.rowsPerCPUSecond }

// measurePipeline makes the mini-batches of a Parquet file in memory again and again, with one thread, for some time.
func measurePipeline(ctx context.Context, data []byte, spec *pipeline.Spec, least time.Duration) (_ *pass, err error) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	p, err := partition.Open(ctx, spec.Name, bytes.NewReader(data), int64(len(data)), program.Parquet,
		partition.Options{Bytes: data})
	if err != nil {
		return nil, err
	}
	columns, _ := schema.Columns(p, text.Options{})
	resolved, err := resolve.Pipeline(spec, columns)
	if err != nil {
		return nil, err
	}
	lowered, schema, err := lowering.Lower(resolved)
	if err != nil {
		return nil, err
	}
	engine, err := cpu.New(ctx, lowered, schema, cpu.Options{Threads: 1})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	run := processor.Run{Partition: p, Rows: p.Rows, Batch: resolved.Batch}
	if err := rm.ReadAll(ctx, engine, run); err != nil { // warms caches
		return nil, err
	}
	first := engine.Stats()
	begin, used := time.Now(), processors.Time()
	for again := true; again; again = time.Since(begin) < least {
		if err := rm.ReadAll(ctx, engine, run); err != nil {
			return nil, err
		}
	}
	seconds := (processors.Time() - used).Seconds()
	if seconds <= 0 {
		seconds = time.Since(begin).Seconds() // the system does not tell
	}
	s := engine.Stats().Sub(first)
	return &pass{rowsPerCPUSecond: float64(s.Rows) / seconds, bytesIn: first.BytesIn, rows: p.Rows,
		operators: float64(s.Transform) / float64(s.Move+s.Decode+s.Transform)}, nil
}
