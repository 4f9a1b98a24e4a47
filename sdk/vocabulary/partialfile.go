package vocabulary

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"iter"

	"github.com/millrace/millrace/sdk/vocabulary/occurrence"
)

// MaxPartials is how many parts are merged at once.
const MaxPartials = occurrence.MaxOpenRuns

// ErrOtherBuilder says that a part was written by a builder of other rules or columns.
var ErrOtherBuilder = errors.New("vocabulary: a part of other rules or columns")

// makerDigest names the rules and columns of the builder.
func (b *Builder) makerDigest() (Digest, error) {
	header, err := checkedHeader(b.rules, b.columns)
	return sha256.Sum256(header), err
}

// Spilled reports whether the builder has written runs to disk since it began or since the last WritePartial: the
// memory for keys was short.
func (b *Builder) Spilled() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.folder != nil
}

// writePart writes a part, whose tables runs returns in their order.
func writePart(
	path string, maker Digest, rows uint64, tables int, table func(i int) iter.Seq2[occurrence.Entry, error],
) (*Counts, error) {
	w, err := newCountsWriter(path, tables, rows)
	if err != nil {
		return nil, err
	}
	c := &Counts{Path: path, Vocabulary: maker, Rows: rows}
	for i := range tables {
		run, err := w.addRun(path, table(i))
		if err != nil {
			return nil, errors.Join(fmt.Errorf("write %s: %w", path, err), w.file.abandonFile())
		}
		c.tables, c.Entries = append(c.tables, run), c.Entries+run.Entries
	}
	return c, w.commitSidecar(maker, nil)
}

// WritePartial moves everything that was added to a part, which is on the disk and has its name when WritePartial
// returns. A pass that is to survive the end of its process writes one from time to time; the process that goes on
// gives all of them to [Builder.Take]. Parts fold in any order, and no row may be in two of them. Nothing may be added
// meanwhile. If it fails, what was added is lost, and the builder is of no more use.
func (b *Builder) WritePartial(path string) (*Counts, error) {
	maker, err := b.makerDigest()
	if err != nil {
		return nil, err
	}
	made, err := writePart(path, maker, b.rows.Load(), len(b.tables), func(i int) iter.Seq2[occurrence.Entry, error] {
		t := b.tables[i]
		t.mu.Lock()
		defer t.mu.Unlock()
		taken := t.runs
		t.runs = b.noRuns()
		return taken.Merged(b.takeAll(t))
	})
	return made, errors.Join(err, b.Close())
}

// Take adds the rows of a part, which must stay as it is until the builder has finished. The builder must have the
// rules and columns of the one that wrote it.
func (b *Builder) Take(c *Counts) error {
	maker, err := b.makerDigest()
	if err != nil {
		return err
	}
	if c.Vocabulary != maker || len(c.tables) != len(b.tables) {
		return fmt.Errorf("%s: %w", c.Path, ErrOtherBuilder)
	}
	for i, t := range b.tables {
		t.mu.Lock()
		t.runs.Add(c.tables[i])
		t.mu.Unlock()
	}
	b.noteRowsBefore(c.Rows)
	return nil
}

// MergePartials makes one part of up to MaxPartials that builders of the same rules and columns wrote. The files stay.
func MergePartials(path string, list ...*Counts) (*Counts, error) {
	if len(list) == 0 || len(list) > MaxPartials {
		return nil, fmt.Errorf("merge %d parts into %s: want 1 to %d", len(list), path, MaxPartials)
	}
	rows := uint64(0)
	for _, c := range list {
		if c.Vocabulary != list[0].Vocabulary || len(c.tables) != len(list[0].tables) {
			return nil, fmt.Errorf("%s: %w", c.Path, ErrOtherBuilder)
		}
		rows = max(rows, c.Rows)
	}
	return writePart(path, list[0].Vocabulary, rows, len(list[0].tables), func(i int) iter.Seq2[occurrence.Entry, error] {
		var runs occurrence.SortedRuns
		for _, c := range list {
			runs.Add(c.tables[i])
		}
		return runs.Merged(nil)
	})
}
