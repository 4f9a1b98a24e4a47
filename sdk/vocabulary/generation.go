package vocabulary

import (
	"errors"
	"fmt"
	"slices"
)

// ErrOther says that a vocabulary does not belong to the pipeline, or a sidecar not to the vocabulary.
var ErrOther = errors.New("vocabulary: of another pipeline")

// ErrCounted says that a partition was counted by an earlier pass. The error is a *CountedError.
var ErrCounted = errors.New("vocabulary: the partition is counted already")

// CountedError names a partition whose content a vocabulary's sidecar counts already, under this name or another.
type CountedError struct{ Partition string }

func (e *CountedError) Error() string {
	return fmt.Sprintf("%v: %s: its keys have their ids, and its rows would count twice: leave it out", ErrCounted,
		e.Partition)
}

// Unwrap returns ErrCounted.
func (e *CountedError) Unwrap() error { return ErrCounted }

// checkNotCounted returns a *CountedError for the first partition that an earlier pass counted.
func (c *Counts) checkNotCounted(partitions []Counted) error {
	before := make(map[[32]byte]bool, len(c.Counted))
	for _, digest := range c.Counted {
		before[digest] = true
	}
	for _, p := range partitions {
		if before[p.Digest] {
			return &CountedError{Partition: p.Name}
		}
	}
	return nil
}

// generation is what an earlier pass left.
type generation struct {
	vocabulary *Vocabulary
	counts     *Counts
	rows       uint64
}

// Extend begins the next generation of a vocabulary: its keys keep their ids, and keys of the pass that follows are
// appended in the order of its rules. Counts and positions go on where the sidecar ends, and partitions that it counts
// are refused with a *CountedError. The columns must be those of the vocabulary. The file of the counts must stay as it
// is until the builder has finished.
func Extend(v *Vocabulary, counts *Counts, columns []Column, o BuilderOptions) (*Builder, error) {
	if counts.Vocabulary != v.Digest {
		return nil, fmt.Errorf("%w: the counts are those of vocabulary %v, and this is %v: name the file %s that was "+
			"written with the vocabulary", ErrOther, counts.Vocabulary, v.Digest, CountsSuffix)
	}
	if counts.Tables() != len(v.Tables) {
		return nil, fmt.Errorf("%w: %d tables of counts for %d tables", ErrDamaged, counts.Tables(), len(v.Tables))
	}
	if len(columns) != len(v.Columns) {
		return nil, fmt.Errorf("%w: the pipeline has %d columns, and the vocabulary %d", ErrOther, len(columns),
			len(v.Columns))
	}
	for i := range columns {
		if err := v.Columns[i].checkSameKeys(&columns[i]); err != nil {
			return nil, err
		}
	}
	if err := counts.checkNotCounted(o.Partitions); err != nil {
		return nil, err
	}
	b, err := NewBuilder(columns, v.Rules, o)
	if err != nil {
		return nil, err
	}
	b.base = &generation{vocabulary: v, counts: counts, rows: counts.Rows}
	return b, nil
}

// checkSameKeys returns an error that wraps ErrOther if a pipeline's column makes other keys than the vocabulary's.
func (c *Column) checkSameKeys(o *Column) error {
	switch {
	case c.Name != o.Name:
		return fmt.Errorf("%w: column %q of the vocabulary is %q in the pipeline", ErrOther, c.Name, o.Name)
	case c.Chain != o.Chain:
		return fmt.Errorf("%w: column %q: the operators before the vocabulary are not those that made its keys", ErrOther,
			c.Name)
	}
	return nil
}

// oldKeys are the keys that have ids already. nil has none.
type oldKeys struct {
	sorted []int64
	next   int // next is an index into sorted: keys before it were asked for
	missed int
}

func newOldKeys(keys []int64) *oldKeys {
	k := &oldKeys{sorted: slices.Clone(keys)}
	slices.Sort(k.sorted)
	return k
}

// includesNext reports whether a key has an id. Keys are asked for in ascending order.
func (k *oldKeys) includesNext(key int64) bool {
	if k == nil {
		return false
	}
	for k.next < len(k.sorted) && k.sorted[k.next] < key {
		k.next++
		k.missed++
	}
	if k.next < len(k.sorted) && k.sorted[k.next] == key {
		k.next++
		return true
	}
	return false
}

// checkAllAsked returns an error if a key that has an id was never asked for.
func (k *oldKeys) checkAllAsked() error {
	if k == nil {
		return nil
	}
	if n := k.missed + len(k.sorted) - k.next; n > 0 {
		return damagedError("%d keys of the vocabulary are not among its counts", n)
	}
	return nil
}
