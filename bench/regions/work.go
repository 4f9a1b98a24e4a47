package regions

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/text"
	"github.com/millrace/millrace/host/workload"
	"github.com/millrace/millrace/internal/quantity"
	"github.com/millrace/millrace/sdk/cpu"
	"github.com/millrace/millrace/sdk/partition"
	"github.com/millrace/millrace/sdk/partition/schema"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/pipeline/columntypes"
	"github.com/millrace/millrace/sdk/pipeline/lowering"
	"github.com/millrace/millrace/sdk/pipeline/resolve"
	"github.com/millrace/millrace/sdk/processor"
	"github.com/millrace/millrace/sdk/tensor"
	"github.com/millrace/millrace/sdk/vocabulary"
)

// work is a workload: a partition, and the pipeline that its mini-batches go through.
type work struct {
	model string
	set   string // the data set
	image string // the named stock image that has the pipeline's units
	data  []byte // the partition
	at    int64  // first byte of the partition on the drive; below 0: it has no place yet

	partition *partition.Partition
	program   *program.Program
	schema    *tensor.Schema
	batch     int
}

// findWorkload returns the data of a workload and the name of its pipeline: of d2-3 the data set d2 and MiniPipe's
// third pipeline. A data set without a number has the first.
func findWorkload(model string) (workload.Model, string, error) {
	data, number, numbered := strings.Cut(model, "-")
	m, err := workload.Find(data)
	switch {
	case err != nil:
		return m, "", err
	case !m.Text && numbered || numbered && !slices.Contains([]string{"1", "2", "3"}, number):
		return m, "", fmt.Errorf("no workload %q: a data set of MiniPipe's has the pipelines -1 to -3", model)
	case m.Text:
		return m, "minipipe-" + cmp.Or(number, "1"), nil
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

// generatePartitions makes a partition of each workload, and lays them out one behind the other from byte 0 of a drive
// on.
func generatePartitions(ctx context.Context, o *Options, dir string) ([]*work, error) {
	var works []*work
	var at int64
	for _, name := range o.Models {
		w, err := o.generatePartition(ctx, name, dir, works)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if w.at < 0 {
			w.at = at
			at = wholeUnits(at + int64(len(w.data)))
		}
		if err := w.lowerPipeline(ctx); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		works = append(works, w)
	}
	return works, nil
}

// unit is what places on the drive are multiples of: whole blocks of every size.
const unit = 1 << 20

func wholeUnits(n int64) int64 { return (n + unit - 1) / unit * unit }

// generatePartition makes the partition of a workload, which is that of an earlier one with the same data set. It has
// no place on the drive yet if it is new.
func (o *Options) generatePartition(ctx context.Context, name, dir string, earlier []*work) (*work, error) {
	m, _, err := findWorkload(name)
	if err != nil {
		return nil, err
	}
	w := &work{model: name, set: m.Name, image: "presto", at: -1}
	if m.Text {
		w.image = "minipipe"
	}
	for _, e := range earlier {
		if e.set == w.set {
			w.data, w.at = e.data, e.at
			return w, nil
		}
	}
	rows := o.Rows
	setDefault(&rows, defaultRows(m))
	o.Progress(fmt.Sprintf("%s: generate %s", name, quantity.Of(rows, "row")))
	files, err := workload.Generate(ctx, workload.Options{Model: m, Rows: rows, Out: filepath.Join(dir, m.Name),
		Seed: o.Seed})
	if err != nil {
		return nil, err
	}
	w.data, err = os.ReadFile(files[0].Path)
	return w, err
}

// lowerPipeline opens the partition, and lowers the pipeline for its columns.
func (w *work) lowerPipeline(ctx context.Context) error {
	_, named, err := findWorkload(w.model)
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
	columns, _ := schema.Columns(w.partition, text.Options{})
	for i := range spec.Vocabularies {
		if spec, err = w.bindVocabulary(ctx, spec, spec.Vocabularies[i].Name, columns); err != nil {
			return err
		}
	}
	resolved, err := resolve.Pipeline(spec, columns)
	if err != nil {
		return err
	}
	lowered, err := lowering.LowerWithLookups(resolved)
	if err != nil {
		return err
	}
	if lowered.Lookups != nil {
		if lowered, err = lowered.LookUpInDrive(math.MaxUint64); err != nil {
			return err
		}
		if behind := lowered.Behind(); len(behind) > 0 {
			return fmt.Errorf("the ids of %d features cannot be looked up in a drive, of %s first", len(behind),
				behind[0])
		}
	}
	w.batch, w.program, w.schema = resolved.Batch, lowered.Program, lowered.Made
	return nil
}

// bindVocabulary builds a vocabulary of the partition on this machine, and returns the pipeline with it.
func (w *work) bindVocabulary(ctx context.Context, spec *pipeline.Spec, name string, columns []columntypes.Column,
) (_ *pipeline.Spec, err error) {
	keys, declared, err := spec.VocabularyKeys(name)
	if err != nil {
		return nil, err
	}
	resolved, err := resolve.Pipeline(keys, columns)
	if err != nil {
		return nil, err
	}
	prog, schema, err := lowering.Lower(resolved)
	if err != nil {
		return nil, err
	}
	b, err := vocabulary.NewMemoryBuilder(resolved.VocabularyColumns(), declared.Rules, vocabulary.BuilderOptions{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	p, err := cpu.New(ctx, prog, schema, cpu.Options{Threads: 1})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	s, err := p.Open(ctx, processor.Run{Partition: w.partition, Rows: w.partition.Rows, Batch: resolved.Batch})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	for row := uint64(0); ; {
		mb, err := s.Next(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		err = b.AddMiniBatch(row, mb)
		row += uint64(mb.Rows)
		mb.Release()
		if err != nil {
			return nil, err
		}
	}
	made, err := b.Vocabulary()
	if err != nil {
		return nil, err
	}
	return spec.Bind(name, made)
}
