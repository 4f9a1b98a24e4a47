package vocabulary

import (
	"fmt"
	"slices"

	"github.com/millrace/millrace/fpga/operator/vocabulary"
	"github.com/millrace/millrace/fpga/unit/sigridhash"
)

// Lookup gives the keys of one column their ids.
type Lookup struct {
	column   string
	prepared preparedTable // nil: the vocabulary's keys are not at hand, see Description
	listed   []int64       // the keys in the order of their ids; nil if prepared is
	kept     *keptColumn   // nil: no ids were kept
	keys     int64
	rules    Rules
	unknown  Unknown
	filled   bool // a row without a key gets Rules.Null
}

// Lookup returns the lookup of a column. The column must be one of the vocabulary's, and its keys must be made by the
// same operators; the error wraps ErrOther otherwise. list says that a row may have several keys: such a row has no
// null id.
func (v *Vocabulary) Lookup(column Column, unknown Unknown, list bool) (*Lookup, error) {
	c := v.Column(column.Name)
	if c == nil {
		return nil, fmt.Errorf("%w: it has no column %q", ErrOther, column.Name)
	}
	if err := c.checkSameKeys(&column); err != nil {
		return nil, err
	}
	unknown, err := v.Rules.Policy(unknown)
	if err != nil {
		return nil, err
	}
	l := &Lookup{column: c.Name, keys: v.keysOfTable(c.Table), rules: v.Rules, unknown: unknown,
		filled: v.Rules.Null.Given && !list}
	if v.prepared != nil {
		l.prepared, l.listed = v.prepared[c.Table], v.Tables[c.Table]
	}
	if v.kept != nil && !list {
		l.kept = &keptColumn{v.kept, slices.IndexFunc(v.Columns, func(o Column) bool { return o.Name == c.Name })}
	}
	return l, nil
}

// Kept reports whether the vocabulary keeps the ids of the rows that it was built of, see MemoryBuilder.KeepIDs.
func (l *Lookup) Kept() bool { return l.kept != nil }

// WithoutKept returns the lookup without kept ids.
func (l *Lookup) WithoutKept() *Lookup {
	without := *l
	without.kept = nil
	return &without
}

// Range returns the least and the greatest id that can come out.
func (l *Lookup) Range() (least, greatest int64) {
	least, greatest = l.rules.Base, max(l.rules.Base+l.keys-1, 0)
	include := func(id int64) { least, greatest = min(least, id), max(greatest, id) }
	if l.filled {
		include(l.rules.Null.ID)
	}
	switch l.unknown {
	case UnknownRare:
		include(l.rules.Rare.ID)
	case UnknownBucket:
		include(l.rules.Base - int64(l.rules.Buckets))
	case UnknownFail, UnknownDrop:
	}
	return least, greatest
}

// Fills reports whether a row without a key gets an id.
func (l *Lookup) Fills() bool { return l.filled }

// Drops reports whether a row can lose a key.
func (l *Lookup) Drops() bool { return l.unknown == UnknownDrop }

// Listed returns the keys in the order of their ids. It reports false if they are not at hand, see Description.
func (l *Lookup) Listed() ([]int64, bool) { return l.listed, l.prepared != nil }

// Operator returns the operator of a program that gives keys their ids, without the number of its table. It reports
// false if no operator does: operators do not drop keys. A row without a key stays without one.
func (l *Lookup) Operator() (vocabulary.Op, bool) {
	o := vocabulary.Op{Base: l.rules.Base}
	switch l.unknown {
	case UnknownRare:
		o.Absent, o.Rare = vocabulary.AbsentRare, l.rules.Rare.ID
	case UnknownBucket:
		o.Absent, o.Buckets = vocabulary.AbsentBucket, l.rules.Buckets
	case UnknownDrop:
		return vocabulary.Op{}, false
	case UnknownFail:
	}
	return o, true
}

// NullID returns the id of a row without a key. It reports false if such a row gets none.
func (l *Lookup) NullID() (int64, bool) { return l.rules.Null.ID, l.filled }

// idOfAbsentKey returns the id of a key that the vocabulary lacks. It reports false if the key is dropped.
func (l *Lookup) idOfAbsentKey(key int64) (id int64, kept bool, err error) {
	switch l.unknown {
	case UnknownRare:
		return l.rules.Rare.ID, true, nil
	case UnknownBucket:
		buckets := int64(l.rules.Buckets)
		return l.rules.Base - buckets + sigridhash.Reference(key, 0, buckets), true, nil
	case UnknownDrop:
		return 0, false, nil
	case UnknownFail:
	}
	return 0, false, &UnknownError{Column: l.column, Key: key}
}

// UnknownError says that a vocabulary lacks a key, and that the pipeline wants that to be an error.
type UnknownError struct {
	Partition string // Partition names the partition that the row lies in; "" if that is not known
	Row       int64  // Row counts from the partition's first row, or from the mini-batch's without Partition
	Column    string // the key of the mini-batch
	Key       int64  // what the operators before the vocabulary made of the row
}

func (e *UnknownError) Error() string {
	where := fmt.Sprintf("row %d", e.Row)
	if e.Partition != "" {
		where = fmt.Sprintf("%s: row %d", e.Partition, e.Row)
	}
	return fmt.Sprintf("%s: column %q: the vocabulary lacks the key %d: extend the vocabulary with this data, or say "+
		"unknown: id, bucket or drop", where, e.Column, e.Key)
}
