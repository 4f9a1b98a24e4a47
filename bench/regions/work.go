package regions

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/millrace/millrace/bench/workload"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/text"
	"github.com/millrace/millrace/host"
	"github.com/millrace/millrace/sdk/partition"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/tensor"
)

// work is a workload: a partition, and the pipeline that its mini-batches go through.
type work struct {
	model string
	image string // the named stock image that has the pipeline's units
	data  []byte // the partition
	at    int64  // first byte of the partition on the drive

	partition *partition.Partition
	program   *program.Program
	schema    *tensor.Schema
	batch     int
}

// find returns the data of a workload and the name of its pipeline: MiniPipe's first one for its data sets.
func find(model string) (workload.Model, string, error) {
	m, err := workload.Find(model)
	if err != nil {
		return m, "", err
	}
	if m.Text {
		return m, "minipipe-1", nil
	}
	return m, m.Name, nil
}

// defaultRows are some 40 MB.
func defaultRows(m workload.Model) int64 {
	if m.Dense > 100 {
		return 8_192
	}
	return 131_072
}

// generate makes a partition of each workload, and lays them out one behind the other from byte 0 of a drive on.
func generate(ctx context.Context, o *Options, dir string) ([]*work, error) {
	var works []*work
	var at int64
	for _, name := range o.Models {
		w, err := o.generate(ctx, name, dir)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		w.at = at
		at = wholeUnits(at + int64(len(w.data)))
		if err := w.lower(ctx); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		works = append(works, w)
	}
	return works, nil
}

// unit is what places on the drive are multiples of: whole blocks of every size.
const unit = 1 << 20

func wholeUnits(n int64) int64 { return (n + unit - 1) / unit * unit }

func (o *Options) generate(ctx context.Context, name, dir string) (*work, error) {
	m, _, err := find(name)
	if err != nil {
		return nil, err
	}
	w := &work{model: name, image: "presto"}
	if m.Text {
		w.image = "minipipe"
	}
	rows := o.Rows
	setDefault(&rows, defaultRows(m))
	o.Progress(fmt.Sprintf("%s: generate %d rows", name, rows))
	files, err := workload.Generate(ctx, workload.Options{Model: m, Rows: rows, Out: filepath.Join(dir, m.Name),
		Seed: o.Seed})
	if err != nil {
		return nil, err
	}
	w.data, err = os.ReadFile(files[0].Path)
	return w, err
}

// lower opens the partition, and lowers the pipeline for its columns.
func (w *work) lower(ctx context.Context) error {
	_, named, err := find(w.model)
	if err != nil {
		return err
	}
	spec, err := pipeline.Named(named)
	if err != nil {
		return err
	}
	n := int64(len(w.data))
	w.partition, err = partition.Open(ctx, w.model, bytes.NewReader(w.data), n, program.Parquet,
		partition.Options{Extents: []partition.Extent{{Device: w.at, Len: n}}})
	if err != nil {
		return err
	}
	columns, _ := host.Columns(w.partition, text.Options{})
	resolved, err := spec.Resolve(columns)
	if err != nil {
		return err
	}
	w.batch = resolved.Batch
	w.program, w.schema, err = pipeline.Lower(resolved)
	return err
}
