package partition

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"sort"
	"strings"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
	"github.com/millrace/millrace/fpga/unit/text"
	"github.com/millrace/millrace/sdk/dataset"
)

// Options say where a partition's bytes are and how its text is read. The zero value suits a Parquet file.
type Options struct {
	// Text says how lines are read; it must agree with the pipeline's program. Only for program.CriteoTSV.
	Text text.Options
	// Every is the number of rows between two entries of a text's index, DefaultIndexRows if 0.
	Every int64
	// Bytes is the whole partition, where it is in this process's memory (mapped or read). It stays the caller's, must
	// not change, and must outlive every stream over the partition.
	Bytes []byte
	// Extents say where the partition lies on the drive that preprocesses it, in order, without holes. A drive needs
	// them.
	Extents []Extent
}

// DefaultIndexRows is the number of rows between two entries of a text's index.
const DefaultIndexRows = 1024

// Partition is an opened partition: the content of its footer or index, and the place of its bytes. Its fields are
// read-only. It is safe for concurrent use, as its reader must be. Streams note resume points in it.
type Partition struct {
	Name    string
	Source  program.Source
	Size    int64        // bytes
	Rows    int64        // rows in all
	File    *format.File // Parquet: the footer
	Index   *text.Index  // program.CriteoTSV: where rows lie
	Extents []Extent

	text    text.Options
	data    []byte
	reader  io.ReaderAt
	digest  [32]byte
	groups  []RowGroup
	resume  resumePoints
	indexes pageIndexes
}

// RowGroup is a row group's place among the partition's rows. Text is one row group.
type RowGroup struct{ First, Rows int64 }

// End returns the row behind the row group.
func (g RowGroup) End() int64 { return g.First + g.Rows }

// Open reads the part of a partition that says how many rows it has: the footer of a Parquet file, or all of a text,
// whose rows have to be counted. ctx ends the reading of a text, and of a partition that lies elsewhere. The error is
// an *UnreadableError.
func Open(
	ctx context.Context, name string, r io.ReaderAt, size int64, source program.Source, opts Options,
) (*Partition, error) {
	p := &Partition{
		Name: name, Source: source, Size: size, Extents: opts.Extents, text: opts.Text, data: opts.Bytes, reader: r,
	}
	fail := func(err error) (*Partition, error) {
		return nil, &UnreadableError{Partition: name, Err: err}
	}
	if size < 0 || p.data != nil && int64(len(p.data)) != size {
		return fail(fmt.Errorf("it has %d bytes, %d are given", size, len(p.data)))
	}
	if err := checkExtents(p.Extents, size); err != nil {
		return fail(err)
	}
	var err error
	switch source {
	case program.Parquet:
		err = p.openParquet(ctx)
	case program.CriteoTSV:
		every := opts.Every
		if every <= 0 {
			every = DefaultIndexRows
		}
		err = p.openText(ctx, every)
	case program.CriteoBinary:
		err = p.openBinary(ctx)
	default:
		err = fmt.Errorf("its format %d is not known", source)
	}
	if err != nil {
		return fail(err)
	}
	return p, nil
}

func (p *Partition) openParquet(ctx context.Context) error {
	f, err := format.ReadFooter(p.readerUntil(ctx), p.Size)
	if errors.Is(err, format.ErrCorrupt) {
		head := make([]byte, min(p.Size, HeadBytes))
		if format.ReadFull(p.readerUntil(ctx), head, 0) == nil {
			err = cmp.Or(p.foreign(head), err)
		}
	}
	if err != nil {
		return err
	}
	p.describe(f)
	p.digest, err = p.digestContent(ctx)
	return err
}

// foreign returns an error if a partition's first bytes show another format than its source.
func (p *Partition) foreign(head []byte) error {
	c := Recognize(head)
	switch {
	case c.Is == "" || c.Source == p.Source:
		return nil
	case p.Source == program.CriteoTSV && c.IsText(): // The parser says which row is malformed.
		return nil
	case p.Source != program.Parquet && len(head) == 0: // The partition has no rows.
		return nil
	}
	return &ForeignError{Partition: p.Name, Want: p.Source, Content: c}
}

// beginning keeps the first HeadBytes bytes that are written to it.
type beginning []byte

func (b *beginning) Write(p []byte) (int, error) {
	*b = append(*b, p[:min(len(p), HeadBytes-len(*b))]...)
	return len(p), nil
}

// describe takes rows and row groups from a footer.
func (p *Partition) describe(f *format.File) {
	p.File = f
	for i := range f.RowGroups {
		p.groups = append(p.groups, RowGroup{First: p.Rows, Rows: f.RowGroups[i].Rows})
		p.Rows += f.RowGroups[i].Rows
	}
}

// FromFooter describes a Parquet partition of size bytes by a footer that was read before. The partition's bytes cannot
// be read, and it has no digest, but it can be planned.
func FromFooter(name string, size int64, f *format.File, extents []Extent) *Partition {
	p := &Partition{Name: name, Source: program.Parquet, Size: size, Extents: extents, reader: strings.NewReader("")}
	p.describe(f)
	return p
}

func (p *Partition) openText(ctx context.Context, every int64) error {
	sum := sha256.New()
	var head beginning
	index, err := text.NewIndex(io.TeeReader(p.read(ctx), io.MultiWriter(sum, &head)), p.text, every)
	if err = cmp.Or(p.foreign(head), err); err != nil {
		return err
	}
	if index.Bytes != p.Size {
		return fmt.Errorf("%d of %d bytes could be read", index.Bytes, p.Size)
	}
	p.Index, p.Rows = index, index.Rows
	sum.Sum(p.digest[:0])
	p.groups = []RowGroup{{Rows: p.Rows}}
	return nil
}

func (p *Partition) openBinary(ctx context.Context) error {
	sum := sha256.New()
	var head beginning
	n, err := io.Copy(io.MultiWriter(sum, &head), p.read(ctx))
	switch foreign := p.foreign(head); {
	case foreign != nil:
		return foreign
	case err != nil || n != p.Size:
		return errors.Join(err, fmt.Errorf("%d of %d bytes could be read", n, p.Size))
	case p.Size%text.BinaryRow != 0:
		return fmt.Errorf("%d bytes are not a whole number of rows of %d bytes: %w", p.Size, text.BinaryRow,
			text.ErrPartialRow)
	}
	sum.Sum(p.digest[:0])
	p.Rows = p.Size / text.BinaryRow
	p.groups = []RowGroup{{Rows: p.Rows}}
	return nil
}

// read reads the partition from its start until ctx ends.
func (p *Partition) read(ctx context.Context) io.Reader {
	return &contextReader{ctx: ctx, r: io.NewSectionReader(p.reader, 0, p.Size)}
}

type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (c *contextReader) Read(b []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(b)
}

// Bytes is the whole partition where it is in memory, else nil.
func (p *Partition) Bytes() []byte { return p.data }

// ReadAt reads the partition's bytes through the reader it was opened with.
func (p *Partition) ReadAt(b []byte, off int64) (int, error) { return p.reader.ReadAt(b, off) }

// FarReader is a reader of a partition that lies elsewhere: reads wait for a network, and end when a context does.
type FarReader interface {
	io.ReaderAt
	// ReadAtContext reads as ReadAt does, until ctx ends.
	ReadAtContext(ctx context.Context, b []byte, off int64) (int, error)
}

// Remote reports whether the partition lies elsewhere: its reader is a FarReader.
func (p *Partition) Remote() bool {
	_, far := p.reader.(FarReader)
	return far
}

// ReadAtContext reads the partition's bytes as ReadAt does. Reads of a partition that lies elsewhere end with ctx.
func (p *Partition) ReadAtContext(ctx context.Context, b []byte, off int64) (int, error) {
	if far, ok := p.reader.(FarReader); ok {
		return far.ReadAtContext(ctx, b, off)
	}
	return p.reader.ReadAt(b, off)
}

// readerUntil returns the partition's reader. Reads of a partition that lies elsewhere end with ctx.
func (p *Partition) readerUntil(ctx context.Context) io.ReaderAt {
	if far, ok := p.reader.(FarReader); ok {
		return &boundReader{far, ctx}
	}
	return p.reader
}

// boundReader reads a partition that lies elsewhere until a context ends.
type boundReader struct {
	FarReader
	ctx context.Context
}

// ReadAt implements io.ReaderAt.
func (b *boundReader) ReadAt(p []byte, off int64) (int, error) { return b.ReadAtContext(b.ctx, p, off) }

// Digest is the SHA-256 over the bytes that DigestRuns names: the footer and samples of the row groups of a Parquet
// file, and all of a text.
func (p *Partition) Digest() [32]byte { return p.digest }

// DigestRuns returns the runs of the partition's bytes that its digest is over; see the function DigestRuns.
func (p *Partition) DigestRuns() []Run {
	if p.File != nil {
		return DigestRuns(p.File)
	}
	return []Run{{0, uint64(p.Size)}}
}

// Describe is the partition's entry of a manifest.
func (p *Partition) Describe() dataset.Partition {
	d := dataset.Partition{Name: p.Name, Bytes: p.Size, Rows: p.Rows, RowGroups: []int64{}, Content: p.digest}
	for _, g := range p.groups {
		d.RowGroups = append(d.RowGroups, g.Rows)
	}
	return d
}

// Text returns how lines are read that the index was made of.
func (p *Partition) Text() text.Options { return p.text }

// RowGroups returns the places of the row groups, in order. They are not to be changed.
func (p *Partition) RowGroups() []RowGroup { return p.groups }

// RowGroupOf returns the number of the row group that holds a row of the partition.
func (p *Partition) RowGroupOf(row int64) int {
	return sort.Search(len(p.groups), func(i int) bool { return p.groups[i].End() > row })
}
