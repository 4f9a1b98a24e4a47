package workload

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"

	"github.com/millrace/millrace/internal/wholefile"
)

// ErrOptions says that options are out of range.
var ErrOptions = errors.New("workload: options")

// Defaults and bounds of Options.
const (
	DefaultScalarRowGroup = 262_144 // rows of a row group of RM1, about 50 MB
	DefaultListRowGroup   = 16_384  // of RM2 to RM5, about 75 MB, and of D-II, about 40 MB
	DefaultPageBytes      = 1 << 20 // parquet-mr's
	MaxPageBytes          = 1 << 30
	MaxPartitions         = 1 << 20
	maxRowGroupRows       = 1 << 30
	dictionaryMaxBytes    = 1 << 20 // above it a column goes on with plain pages, as other writers do
)

// Options describe the data set that Generate makes. Model, Rows and Out are required.
type Options struct {
	Model        Model
	Rows         int64  // All partitions together have them.
	Out          string // folder, made if absent; partitions are part-00000.parquet ...
	Partitions   int    // 0 means 1; rows are spread evenly
	RowGroupRows int    // 0 means a default by model
	// bytes of a data page before compression, about; 0 means 1 MiB. MaxPageBytes makes a column chunk one page
	PageBytes   int
	PageVersion int    // Data pages have this version, 1 or 2; 0 means 1.
	Codec       string // none (or empty), snappy, gzip, zstd, lz4_raw
	Encoding    string // plain (or empty), dictionary: plain pages follow where a dictionary passes 1 MiB
	Seed        uint64
	Coverage    float64 // share of rows that have a feature, in (0, 1]; 0 means the model's
	// features in two maps, FloatFeatures and IDListFeatures, and not in a column each; RM2 to RM5 only
	Maps bool
	// replace the numbered partitions that exist, all of them, when the new ones are whole
	Overwrite bool

	// Progress, if not nil, receives the rows written so far and the rows in all. It is called from one goroutine at a
	// time.
	Progress func(done, total int64)
}

// File is a partition that was written.
type File struct {
	Path      string
	Rows      int64
	Bytes     int64
	RowGroups []int64 // rows of each
}

// codecs by name.
func codecOf(name string) (compress.Codec, error) {
	switch name {
	case "", "none":
		return &parquet.Uncompressed, nil
	case "snappy":
		return &parquet.Snappy, nil
	case "gzip":
		return &parquet.Gzip, nil
	case "zstd":
		return &parquet.Zstd, nil
	case "lz4_raw":
		return &parquet.Lz4Raw, nil
	}
	return nil, fmt.Errorf("%w: codec %q, want none, snappy, gzip, zstd or lz4_raw", ErrOptions, name)
}

// withDefaults fills zeroes in and checks ranges.
func (o Options) withDefaults() (Options, error) {
	if o.Partitions == 0 {
		o.Partitions = 1
	}
	if o.RowGroupRows == 0 {
		o.RowGroupRows = DefaultScalarRowGroup
		if o.Model.Lists || o.Model.Dense > 100 {
			o.RowGroupRows = DefaultListRowGroup
		}
	}
	if o.PageBytes == 0 {
		o.PageBytes = DefaultPageBytes
	}
	if o.PageVersion == 0 {
		o.PageVersion = 1
	}
	if o.Coverage != 0 {
		o.Model.Coverage = o.Coverage
	}
	if o.Encoding == "" {
		o.Encoding = "plain"
	}
	if o.Codec == "" {
		o.Codec = "none"
	}
	if _, err := codecOf(o.Codec); err != nil {
		return o, err
	}
	switch {
	case o.Maps && (!o.Model.Lists || o.Model.Dense == 0 || o.Model.Sparse == 0):
		return o, fmt.Errorf("%w: maps of %s: its features are scalars; want rm2 to rm5", ErrOptions, o.Model.Name)
	case o.Model.Dense < 0 || o.Model.Sparse < 0 || o.Model.Name == "":
		return o, fmt.Errorf("%w: no model; see Find", ErrOptions)
	case o.Rows < 0:
		return o, fmt.Errorf("%w: %d rows", ErrOptions, o.Rows)
	case o.Out == "":
		return o, fmt.Errorf("%w: no folder to write to", ErrOptions)
	case o.Partitions < 1 || o.Partitions > MaxPartitions:
		return o, fmt.Errorf("%w: %d partitions, want 1 to %d", ErrOptions, o.Partitions, MaxPartitions)
	case o.RowGroupRows < 1 || o.RowGroupRows > maxRowGroupRows:
		return o, fmt.Errorf("%w: %d rows a row group, want 1 to %d", ErrOptions, o.RowGroupRows, maxRowGroupRows)
	case o.PageBytes < 64 || o.PageBytes > MaxPageBytes:
		return o, fmt.Errorf("%w: pages of %d bytes, want 64 to %d", ErrOptions, o.PageBytes, MaxPageBytes)
	case o.PageVersion != 1 && o.PageVersion != 2:
		return o, fmt.Errorf("%w: data pages of version %d, want 1 or 2", ErrOptions, o.PageVersion)
	case o.Encoding != "plain" && o.Encoding != "dictionary":
		return o, fmt.Errorf("%w: encoding %q, want plain or dictionary", ErrOptions, o.Encoding)
	case !(o.Model.Coverage >= 0 && o.Model.Coverage <= 1):
		return o, fmt.Errorf("%w: coverage %v, want above 0, at most 1", ErrOptions, o.Model.Coverage)
	}
	return o, nil
}

// Generate writes a data set and returns its partitions in order. Partitions get their names together, when all are
// whole: on an error, or when ctx ends, the folder holds what it held before.
func Generate(ctx context.Context, o Options) ([]File, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	g := &generator{Options: o, columns: columns(o.Model, o.Seed), files: make([]File, o.Partitions)}
	if o.Maps {
		g.columns = mapped(o.Model, g.columns)
	}
	if g.schema, err = schemaOf(o.Model.Name, g.columns, o.Codec, o.Encoding); err != nil {
		return nil, err
	}
	files, err := writePartitions(o.Out, o.Overwrite, func(set *wholefile.Set) ([]File, error) {
		g.set = set
		return g.run(ctx)
	})
	if err != nil {
		return nil, fmt.Errorf("generate: %w", err)
	}
	return files, nil
}

// run writes the partitions, several at once.
func (g *generator) run(ctx context.Context) ([]File, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan int)
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), g.Partitions) {
		wg.Go(func() {
			for i := range next {
				if err := g.partition(ctx, i); err != nil {
					cancel(err)
				}
			}
		})
	}
	for i := range g.Partitions {
		if ctx.Err() != nil {
			break
		}
		next <- i
	}
	close(next)
	wg.Wait()
	return g.files, context.Cause(ctx)
}

// generator is one run of Generate.
type generator struct {
	Options
	set     *wholefile.Set
	schema  *parquet.Schema
	columns []column

	mu    sync.Mutex // guards the fields below
	files []File
	done  int64
}

// progress counts rows that were written.
func (g *generator) progress(rows int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.done += rows
	if g.Progress != nil {
		g.Progress(g.done, g.Rows)
	}
}

// share returns the first row of partition i; rows are spread so that partitions differ by one row at most.
func (g *generator) share(i int) int64 {
	n := int64(g.Partitions)
	return g.Rows/n*int64(i) + min(int64(i), g.Rows%n)
}

// partition writes one partition.
func (g *generator) partition(ctx context.Context, i int) error {
	first, end := g.share(i), g.share(i+1)
	f, err := createPartition(g.set, i)
	if err != nil {
		return err
	}
	groups, err := g.write(ctx, f, first, end)
	file, err := f.finish(end-first, groups, err)
	if err != nil {
		return err
	}
	g.mu.Lock()
	g.files[i] = file
	g.mu.Unlock()
	return nil
}
