package workload

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go"

	"github.com/millrace/millrace/fpga/unit/text"
	"github.com/millrace/millrace/internal/wholefile"
)

// DefaultImportRows is the rows of an imported partition, 16 default row groups.
const DefaultImportRows = 16 * DefaultScalarRowGroup

// ImportOptions configure how Criteo rows become partitions. Out is required.
type ImportOptions struct {
	Binary      bool   // packed rows of 160 bytes instead of text
	LabelAbsent bool   // 39 fields: no label column (text only)
	Policy      Policy // the treatment of malformed lines (text only)

	Out           string // folder, made if absent; partitions are part-00000.parquet ...
	PartitionRows int64  // rows of a partition, the last may have fewer; 0 means DefaultImportRows
	RowGroupRows  int    // 0 means 262,144
	PageBytes     int    // as Options.PageBytes
	PageVersion   int    // as Options.PageVersion
	Codec         string // as Options.Codec
	Encoding      string // as Options.Encoding
	Overwrite     bool   // as Options.Overwrite

	// Progress, if not nil, receives the rows written and the bytes read so far.
	Progress func(rows, bytes int64)
}

// Policy is the treatment of malformed lines.
type Policy = text.Policy

// Counts are the numbers of unusual lines and values in text.
type Counts = text.Counts

// Import reads Criteo rows, text (by the strict grammar of package text) or binary, and writes them as Parquet
// partitions with RM1's columns: label int32 (required; nullable under text.Null, absent with LabelAbsent), int_0 to
// int_12 nullable int32, cat_0 to cat_25 nullable int64 that hold the unsigned 32-bit ids. The rows keep their order.
// Errors about a row are a *text.RowError. Partitions get their names as those of Generate do.
func Import(ctx context.Context, in io.Reader, o ImportOptions) ([]File, Counts, error) {
	if o.PartitionRows == 0 {
		o.PartitionRows = DefaultImportRows
	}
	if o.PartitionRows < 0 {
		return nil, Counts{}, fmt.Errorf("%w: %d rows a partition", ErrOptions, o.PartitionRows)
	}
	if o.Binary && (o.LabelAbsent || o.Policy != text.Fail) {
		return nil, Counts{}, fmt.Errorf("%w: binary rows have a label and cannot be malformed", ErrOptions)
	}
	rm1, err := Find("rm1")
	if err != nil {
		return nil, Counts{}, err
	}
	checked, err := Options{
		Model: rm1, Out: o.Out, RowGroupRows: o.RowGroupRows, PageBytes: o.PageBytes, PageVersion: o.PageVersion,
		Codec: o.Codec, Encoding: o.Encoding,
	}.withDefaults()
	if err != nil {
		return nil, Counts{}, err
	}
	im := &importer{
		o: o, g: &generator{Options: checked, columns: columns(rm1, 0)}, in: in, cols: text.NewColumns(importRows),
	}
	if o.LabelAbsent {
		im.g.columns = im.g.columns[1:]
	} else if o.Policy == text.Null {
		im.g.columns[0].kind = intColumn
	}
	if im.decoder, err = text.NewDecoder(text.Options{Policy: o.Policy, LabelAbsent: o.LabelAbsent}); err != nil {
		return nil, Counts{}, fmt.Errorf("%w: %w", ErrOptions, err)
	}
	if im.g.schema, err = schemaOf("criteo", im.g.columns, checked.Codec, checked.Encoding); err != nil {
		return nil, Counts{}, err
	}
	files, err := writePartitions(o.Out, o.Overwrite, func(set *wholefile.Set) ([]File, error) {
		im.set = set
		err := im.run(ctx)
		return im.files, err
	})
	if err != nil {
		err = fmt.Errorf("import: %w", err)
	}
	return files, im.counts, err
}

// importRows are decoded at a time.
const importRows = 4096

// importer is one run of Import.
type importer struct {
	o       ImportOptions
	set     *wholefile.Set
	g       *generator
	in      io.Reader
	decoder *text.Decoder
	cols    *text.Columns

	window   []byte // read and not decoded
	eof      bool
	windowAt text.Position // Only binary rows have it.
	read     int64
	rows     int64
	counts   Counts
	files    []File
	values   []parquet.Value
}

// run writes partitions until the input ends; an input without rows is one empty partition.
func (im *importer) run(ctx context.Context) error {
	for {
		n, err := im.decode(ctx, min(importRows, im.o.PartitionRows))
		if err != nil || n == 0 && len(im.files) > 0 {
			return err
		}
		f, err := createPartition(im.set, len(im.files))
		if err != nil {
			return err
		}
		rows, groups, err := im.partition(ctx, f, n)
		file, err := f.finish(rows, groups, err)
		if err != nil {
			return err
		}
		im.files = append(im.files, file)
		if n == 0 {
			return nil
		}
	}
}

// partition writes one partition, whose first n rows are decoded already.
func (im *importer) partition(ctx context.Context, out io.Writer, n int) (rows int64, groups []int64, err error) {
	w := parquet.NewGenericWriter[any](out, im.g.writerOptions()...)
	groups = []int64{}
	inGroup := 0
	flush := func() error {
		if inGroup == 0 {
			return nil
		}
		if err := w.Flush(); err != nil {
			return fmt.Errorf("row group %d: %w", len(groups), err)
		}
		groups, inGroup = append(groups, int64(inGroup)), 0
		return nil
	}
	for n > 0 {
		for from := 0; from < n; {
			to := min(n, from+im.g.RowGroupRows-inGroup)
			if err := im.writeColumns(w.ColumnWriters(), from, to); err != nil {
				return rows, groups, err
			}
			inGroup += to - from
			from = to
			if inGroup == im.g.RowGroupRows {
				if err := flush(); err != nil {
					return rows, groups, err
				}
			}
		}
		rows += int64(n)
		im.rows += int64(n)
		if im.o.Progress != nil {
			im.o.Progress(im.rows, im.read)
		}
		if n, err = im.decode(ctx, min(importRows, im.o.PartitionRows-rows)); err != nil {
			return rows, groups, err
		}
	}
	if err := flush(); err != nil {
		return rows, groups, err
	}
	if err := w.Close(); err != nil {
		return rows, groups, fmt.Errorf("footer: %w", err)
	}
	return rows, groups, nil
}

// writeColumns writes decoded rows [from, to).
func (im *importer) writeColumns(writers []*parquet.ColumnWriter, from, to int) error {
	for i := range im.g.columns {
		c := &im.g.columns[i]
		values, valid := im.column(c.index, from, to)
		im.values = im.values[:0]
		for r, v := range values {
			switch {
			case c.kind == labelColumn:
				im.values = append(im.values, parquet.Int32Value(int32(v)).Level(0, 0, i))
			case valid[r] == 0:
				im.values = append(im.values, parquet.NullValue().Level(0, 0, i))
			case c.kind == intColumn:
				im.values = append(im.values, parquet.Int32Value(int32(v)).Level(0, 1, i))
			default:
				im.values = append(im.values, parquet.Int64Value(v).Level(0, 1, i))
			}
		}
		if _, err := writers[i].WriteRowValues(im.values); err != nil {
			return fmt.Errorf("column %s: %w", c.name, err)
		}
	}
	return nil
}

// column returns the decoded rows of the column of RM1 with that index.
func (im *importer) column(index, from, to int) (values []int64, valid []byte) {
	switch c := im.cols; {
	case index == 0:
		return c.Label[from:to], c.LabelValid[from:to]
	case index <= text.Dense:
		return c.Dense[index-1][from:to], c.DenseValid[index-1][from:to]
	default:
		return c.Sparse[index-1-text.Dense][from:to], c.SparseValid[index-1-text.Dense][from:to]
	}
}

// decode decodes up to limit rows into the columns, reading as it needs; 0 rows end the input.
func (im *importer) decode(ctx context.Context, limit int64) (int, error) {
	n := 0
	for int64(n) < limit {
		if err := ctx.Err(); err != nil {
			return n, context.Cause(ctx)
		}
		var res text.Result
		var err error
		if im.o.Binary {
			res, err = text.DecodeBinary(im.cols, n, int(limit)-n, im.window, im.windowAt, im.eof)
			im.windowAt.Offset += int64(res.Consumed)
			im.windowAt.Line += int64(res.Rows)
		} else {
			res, err = im.decoder.Decode(im.cols, n, int(limit)-n, im.window, im.eof)
		}
		im.window = im.window[res.Consumed:]
		im.counts.Dropped += res.Dropped
		im.counts.Blank += res.Blank
		im.counts.Nulled += res.Nulled
		n += res.Rows
		if err != nil {
			return n, err
		}
		if int64(n) == limit {
			break
		}
		if im.eof {
			break
		}
		if err := im.fill(); err != nil {
			return n, err
		}
	}
	return n, nil
}

// fill reads on. The window holds one buffer beyond what a decoder can leave, so it stays bounded.
func (im *importer) fill() error {
	const buffer = 1 << 20
	next := make([]byte, len(im.window)+buffer)
	copy(next, im.window)
	n, err := io.ReadFull(im.in, next[len(im.window):])
	im.window = next[:len(im.window)+n]
	im.read += int64(n)
	switch {
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		im.eof = true
	case err != nil:
		return fmt.Errorf("read at byte %d: %w", im.read, err)
	}
	return nil
}
