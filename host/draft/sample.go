package draft

import (
	"context"
	"errors"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/hextoint"
	"github.com/millrace/millrace/host/api"
	"github.com/millrace/millrace/sdk/cpu"
	"github.com/millrace/millrace/sdk/partition"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/pipeline/columntypes"
	"github.com/millrace/millrace/sdk/pipeline/lowering"
	"github.com/millrace/millrace/sdk/pipeline/resolve"
	"github.com/millrace/millrace/sdk/processor"
	"github.com/millrace/millrace/sdk/slicer"
	"github.com/millrace/millrace/sdk/tensor"
)

// Bounds of a sample.
const (
	maxSampleRows   = 8192
	maxSampleValues = 4 << 20
	// sampleMemory is the memory with which columns are tried first: several hundred trials of a wide file would
	// otherwise clear DefaultMemory each.
	sampleMemory = 32 << 20
)

// sampler makes mini-batches of the first rows of a file, so that a draft rests on values and not on names alone.
type sampler struct {
	partition *partition.Partition // the first that has rows; nil if none has rows
	columns   []columntypes.Column
	malformed program.Malformed
	rows      int
}

func newSampler(partitions []*partition.Partition, data *api.Dataset) *sampler {
	s := &sampler{columns: data.Columns, malformed: data.Malformed}
	values := 1.0 // of a row
	for i := range data.Columns {
		values += max(1, data.MeanLength[data.Columns[i].Name])
	}
	for _, p := range partitions {
		if p.Rows > 0 {
			s.partition = p
			s.rows = int(min(p.Rows, maxSampleRows, int64(max(1, maxSampleValues/values))))
			break
		}
	}
	return s
}

// look reads the first rows of the columns that are used. A column that cannot be decoded is left out. It returns the
// number of rows.
func (s *sampler) look(ctx context.Context, guesses []*guess) (int, error) {
	if s.partition == nil {
		return 0, nil
	}
	var used []*guess
	for _, g := range guesses {
		if g.role != roleLeftOut {
			used = append(used, g)
		}
	}
	return s.rows, s.lookAt(ctx, used)
}

// lookAt reads columns together. If that fails, it reads the two halves by themselves, and so on, until each column
// that fails is read alone.
func (s *sampler) lookAt(ctx context.Context, guesses []*guess) error {
	if len(guesses) == 0 {
		return nil
	}
	err := s.readTogether(ctx, guesses, sampleMemory)
	if memory := (*slicer.MemoryError)(nil); errors.As(err, &memory) {
		err = s.readTogether(ctx, guesses, cpu.DefaultMemory)
	}
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return err
	case len(guesses) > 1:
		half := len(guesses) / 2
		if err := s.lookAt(ctx, guesses[:half]); err != nil {
			return err
		}
		return s.lookAt(ctx, guesses[half:])
	}
	reason := strings.ReplaceAll(err.Error(), "\n", "; ")
	// A slice's result carries the text of an engine's error, and not the error itself.
	if g := guesses[0]; g.isText() && !g.hashed && strings.Contains(reason, hextoint.ErrToken.Error()) {
		g.takeForCategories()
		return s.lookAt(ctx, guesses)
	}
	guesses[0].leaveOut("it cannot be read: %s", reason)
	return nil
}

// readTogether makes one mini-batch of columns, and notes the ranges of their values.
func (s *sampler) readTogether(ctx context.Context, guesses []*guess, memory uint64) error {
	spec := &pipeline.Spec{Name: "sample", Batch: s.rows}
	for i, g := range guesses {
		group := pipeline.Group{Columns: pipeline.Columns(g.column.Name), As: strconv.Itoa(i)}
		if !g.isText() && (g.isDecimal() || g.column.Kind != program.Int64) {
			group.KeepNaN = true
		}
		switch {
		case g.isText():
			group.Ops = []pipeline.Op{g.readsText()}
			spec.Sparse = append(spec.Sparse, group)
		case g.isDecimal():
			group.Ops = []pipeline.Op{pipeline.Decimal("float32"), pipeline.FillNull(pipeline.Int(0))}
			spec.Dense = append(spec.Dense, group)
		case g.column.Kind == program.Int64:
			spec.Sparse = append(spec.Sparse, group)
		default:
			group.Ops = []pipeline.Op{pipeline.FillNull(pipeline.Int(0))}
			spec.Dense = append(spec.Dense, group)
		}
	}
	mb, err := s.makeMiniBatch(ctx, spec, memory)
	if err != nil {
		return err
	}
	defer mb.Release()
	key, dense, offsets := 0, 0, mb.OffsetPerKey()
	for _, g := range guesses {
		if g.column.Kind == program.Int64 && !g.isDecimal() || g.isText() {
			for _, id := range mb.Values64[offsets[key]:offsets[key+1]] {
				if !g.hashed { // a hash says nothing of the text
					g.seen.add(float64(id))
				}
			}
			key++
			continue
		}
		for row := range mb.Rows {
			g.seen.add(float64(mb.Dense[row*len(spec.Dense)+dense]))
		}
		dense++
	}
	return nil
}

// add widens the range by a value.
func (r *valueRange) add(x float64) {
	if math.IsNaN(x) {
		r.nan = true
		return
	}
	if !r.known {
		r.known, r.least, r.greatest = true, x, x
	}
	r.least, r.greatest = min(r.least, x), max(r.greatest, x)
}

// makeMiniBatch makes the first mini-batch of the partition. The caller releases it.
func (s *sampler) makeMiniBatch(ctx context.Context, spec *pipeline.Spec,
	memory uint64) (_ *tensor.MiniBatch, err error) {
	resolved, err := resolve.Pipeline(spec, s.columns)
	if err != nil {
		return nil, err
	}
	resolved.Malformed = s.malformed
	lowered, schema, err := lowering.Lower(resolved)
	if err != nil {
		return nil, err
	}
	processing, err := cpu.New(ctx, lowered, schema, cpu.Options{Processor: processor.Options{SLM: memory}})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, processing.Close()) }()
	stream, err := processing.Open(ctx, processor.Run{
		Partition: s.partition, Rows: int64(s.rows), Batch: s.rows,
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stream.Close()) }()
	mb, err := stream.Next(ctx)
	if errors.Is(err, io.EOF) {
		return nil, io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, err
	}
	defer mb.Release()
	return mb.Clone(), nil
}
