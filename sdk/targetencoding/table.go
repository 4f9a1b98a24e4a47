package targetencoding

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Bounds of a table, which is part of the pipeline's document.
const (
	MaxKeys       = 1 << 17
	MaxPartitions = 1 << 17
)

// Bounds of a table's numbers.
const (
	MaxRows   = 1 << 38 // of all folds together
	MaxTarget = 1 << 24 // of a label's magnitude: up to it a float32 holds every whole number
)

// Errors of tables.
var (
	ErrDamaged    = errors.New("target encoding: damaged table")
	ErrKeys       = errors.New("target encoding: too many keys")
	ErrPartitions = errors.New("target encoding: too many partitions")
	ErrTarget     = errors.New("target encoding: label")
)

// Cell is what is known of some rows.
type Cell struct {
	Rows int64
	Sum  int64 // The sum of their labels.
}

// Table holds the labels of keys by folds.
type Table struct {
	Totals     []Cell      // by fold; they include rows without a key
	Partitions []Partition // whose rows were counted, ascending by hash; they include partitions without rows
	Keys       []int64     // ascending
	Cells      []Cell      // by key, and by fold within a key
}

// key returns the cells of a key.
func (t *Table) key(i int) []Cell { return t.Cells[i*len(t.Totals):][:len(t.Totals)] }

// AppendBinary appends the table's form.
func (t *Table) AppendBinary(b []byte) ([]byte, error) {
	if err := t.checkRules(); err != nil {
		return nil, err
	}
	b = binary.AppendUvarint(b, uint64(len(t.Totals)))
	b = appendCells(b, t.Totals)
	b = binary.AppendUvarint(b, uint64(len(t.Partitions)))
	last := Partition{}
	for _, p := range t.Partitions {
		b = binary.AppendUvarint(b, p.hash-last.hash)
		last = p
	}
	b = binary.AppendUvarint(b, uint64(len(t.Keys)))
	before := int64(0)
	for i, key := range t.Keys {
		distance := uint64(key) - uint64(before)
		if i == 0 {
			distance = zigzag(key)
		}
		b = appendCells(binary.AppendUvarint(b, distance), t.key(i))
		before = key
	}
	return b, nil
}

func appendCells(b []byte, cells []Cell) []byte {
	for _, c := range cells {
		b = binary.AppendVarint(binary.AppendUvarint(b, uint64(c.Rows)), c.Sum)
	}
	return b
}

// zigzag maps integers of both signs to those without.
func zigzag(x int64) uint64 { return uint64(x<<1) ^ uint64(x>>63) }

// UnmarshalBinary reads what AppendBinary wrote, and nothing else. The error wraps ErrDamaged.
func (t *Table) UnmarshalBinary(b []byte) error {
	r := reader{left: b}
	folds := r.uvarint()
	if r.failed || folds < MinFolds || folds > MaxFolds {
		return fmt.Errorf("%w: %d folds, want %d to %d", ErrDamaged, folds, MinFolds, MaxFolds)
	}
	read := Table{Totals: r.cells(nil, int(folds))}
	partitions := r.uvarint()
	if r.failed || partitions > MaxPartitions || partitions > uint64(len(r.left)) {
		return fmt.Errorf("%w: %d partitions in %d bytes, want at most %d", ErrDamaged, partitions, len(r.left),
			MaxPartitions)
	}
	last := Partition{}
	for range partitions {
		last.hash += r.uvarint()
		read.Partitions = append(read.Partitions, last)
	}
	keys := r.uvarint()
	// A key and each of its cells take three bytes or more.
	if r.failed || keys > MaxKeys || keys > uint64(len(r.left)) {
		return fmt.Errorf("%w: %d keys in %d bytes, want at most %d", ErrDamaged, keys, len(r.left), MaxKeys)
	}
	read.Keys, read.Cells = make([]int64, 0, keys), make([]Cell, 0, min(keys*folds, uint64(len(r.left))))
	before := uint64(0)
	for i := range keys {
		distance := r.uvarint()
		if i == 0 {
			distance = distance>>1 ^ -(distance & 1)
		}
		before += distance
		read.Keys = append(read.Keys, int64(before))
		if read.Cells = r.cells(read.Cells, int(folds)); r.failed {
			return fmt.Errorf("%w: it ends in key %d of %d", ErrDamaged, i, keys)
		}
	}
	if len(r.left) > 0 {
		return fmt.Errorf("%w: %d bytes behind its end", ErrDamaged, len(r.left))
	}
	if err := read.checkRules(); err != nil {
		return err
	}
	if canonical, err := read.AppendBinary(nil); err != nil || !bytes.Equal(canonical, b) {
		return errors.Join(fmt.Errorf("%w: it is not in canonical form", ErrDamaged), err)
	}
	*t = read
	return nil
}

// reader reads varints.
type reader struct {
	left   []byte
	failed bool
}

func (r *reader) uvarint() uint64 {
	x, n := binary.Uvarint(r.left)
	if n <= 0 {
		r.left, r.failed = nil, true
		return 0
	}
	r.left = r.left[n:]
	return x
}

func (r *reader) cells(cells []Cell, n int) []Cell {
	for range n {
		rows, sum := r.uvarint(), r.uvarint()
		if rows > MaxRows {
			r.failed = true
		}
		if r.failed {
			break
		}
		cells = append(cells, Cell{Rows: int64(rows), Sum: int64(sum>>1) ^ -int64(sum&1)})
	}
	return cells
}

// checkRules refuses a table that breaks a rule.
func (t *Table) checkRules() error {
	folds := len(t.Totals)
	switch {
	case folds < MinFolds || folds > MaxFolds:
		return fmt.Errorf("%w: %d folds, want %d to %d", ErrDamaged, folds, MinFolds, MaxFolds)
	case len(t.Partitions) > MaxPartitions:
		return fmt.Errorf("%w: %d partitions, want at most %d", ErrDamaged, len(t.Partitions), MaxPartitions)
	case len(t.Keys) > MaxKeys || len(t.Cells) != folds*len(t.Keys):
		return fmt.Errorf("%w: %d cells of %d keys in %d folds", ErrDamaged, len(t.Cells), len(t.Keys), folds)
	}
	for i := 1; i < len(t.Partitions); i++ {
		if t.Partitions[i-1].compare(t.Partitions[i]) >= 0 {
			return fmt.Errorf("%w: partition %d does not ascend", ErrDamaged, i)
		}
	}
	rows := make([]int64, folds)
	for i, key := range t.Keys {
		if i > 0 && t.Keys[i-1] >= key {
			return fmt.Errorf("%w: key %d follows %d", ErrDamaged, key, t.Keys[i-1])
		}
		ofKey := int64(0)
		for fold, c := range t.key(i) {
			if !c.valid() || c.Rows > t.Totals[fold].Rows-rows[fold] {
				return fmt.Errorf("%w: key %d has %d rows of fold %d with the sum %d", ErrDamaged, key, c.Rows, fold, c.Sum)
			}
			rows[fold], ofKey = rows[fold]+c.Rows, ofKey+c.Rows
		}
		if ofKey == 0 {
			return fmt.Errorf("%w: key %d has no rows", ErrDamaged, key)
		}
	}
	all := int64(0)
	for fold, c := range t.Totals {
		if !c.valid() || c.Rows > MaxRows-all {
			return fmt.Errorf("%w: fold %d has %d rows with the sum %d", ErrDamaged, fold, c.Rows, c.Sum)
		}
		all += c.Rows
	}
	return nil
}

// valid reports whether so many labels can have the sum.
func (c Cell) valid() bool {
	return c.Rows >= 0 && c.Rows <= MaxRows && c.Sum >= -c.Rows*MaxTarget && c.Sum <= c.Rows*MaxTarget
}

// Digest returns the SHA-256 of the table's form.
func (t *Table) Digest() ([sha256.Size]byte, error) {
	b, err := t.AppendBinary(nil)
	return sha256.Sum256(b), err
}

// MarshalText returns the form in base64.
func (t *Table) MarshalText() ([]byte, error) {
	b, err := t.AppendBinary(nil)
	if err != nil {
		return nil, err
	}
	return base64.StdEncoding.AppendEncode(nil, b), nil
}

// UnmarshalText reads what MarshalText wrote. The error wraps ErrDamaged.
func (t *Table) UnmarshalText(text []byte) error {
	b, err := base64.StdEncoding.Strict().DecodeString(string(text))
	if err != nil || base64.StdEncoding.EncodedLen(len(b)) != len(text) {
		return fmt.Errorf("%w: it is not base64", ErrDamaged)
	}
	return t.UnmarshalBinary(b)
}

// Builder makes a table.
type Builder struct {
	totals     []Cell
	partitions map[Partition]bool
	index      map[int64]int // index of a key's first cell
	cells      []Cell
	rows       int64
}

// NewBuilder begins a table of some folds, which must be MinFolds to MaxFolds.
func NewBuilder(folds int) *Builder {
	return &Builder{totals: make([]Cell, folds), partitions: map[Partition]bool{}, index: map[int64]int{}}
}

// AddPartition adds a partition to those whose rows are counted. The error wraps ErrPartitions.
func (b *Builder) AddPartition(p Partition) error {
	if len(b.partitions) == MaxPartitions && !b.partitions[p] {
		return fmt.Errorf("%w: more than %d", ErrPartitions, MaxPartitions)
	}
	b.partitions[p] = true
	return nil
}

// Add counts a row. hasKey says whether it has a key.
func (b *Builder) Add(key int64, hasKey bool, fold int, label float32) error {
	target := int64(label)
	switch {
	case label != label || label > MaxTarget || label < -MaxTarget || float32(target) != label:
		return fmt.Errorf("%w: %v, want a whole number of %d to %d: the sums of labels are exact", ErrTarget, label,
			-MaxTarget, MaxTarget)
	case b.rows == MaxRows:
		return fmt.Errorf("%w: more than %d rows", ErrTarget, int64(MaxRows))
	}
	b.rows++
	b.totals[fold].add(target)
	if !hasKey {
		return nil
	}
	at, err := b.cellsOf(key)
	if err != nil {
		return err
	}
	b.cells[at+fold].add(target)
	return nil
}

// AddTable counts the rows of a table of as many folds, which other rows of the data made. The error wraps ErrDamaged,
// ErrTarget, ErrPartitions or ErrKeys; the builder cannot be used afterwards.
func (b *Builder) AddTable(t *Table) error {
	if err := t.checkRules(); err != nil {
		return err
	}
	if len(t.Totals) != len(b.totals) {
		return fmt.Errorf("%w: %d folds, want %d", ErrDamaged, len(t.Totals), len(b.totals))
	}
	rows := sumOf(t.Totals).Rows
	if rows > MaxRows-b.rows {
		return fmt.Errorf("%w: more than %d rows", ErrTarget, int64(MaxRows))
	}
	b.rows += rows
	for _, p := range t.Partitions {
		if err := b.AddPartition(p); err != nil {
			return err
		}
	}
	for fold := range t.Totals {
		b.totals[fold].addCell(t.Totals[fold])
	}
	for i, key := range t.Keys {
		at, err := b.cellsOf(key)
		if err != nil {
			return err
		}
		for fold, c := range t.key(i) {
			b.cells[at+fold].addCell(c)
		}
	}
	return nil
}

// cellsOf returns where the cells of a key begin.
func (b *Builder) cellsOf(key int64) (at int, err error) {
	at, ok := b.index[key]
	if ok {
		return at, nil
	}
	if len(b.index) == MaxKeys {
		return 0, fmt.Errorf("%w: more than %d: end the operators before with a hash or positive_modulus", ErrKeys, MaxKeys)
	}
	at = len(b.cells)
	b.index[key] = at
	b.cells = append(b.cells, make([]Cell, len(b.totals))...)
	return at, nil
}

func (c *Cell) addCell(other Cell) { c.Rows, c.Sum = c.Rows+other.Rows, c.Sum+other.Sum }

func (c *Cell) add(target int64) { c.Rows, c.Sum = c.Rows+1, c.Sum+target }

// Table returns the table of the rows that were added.
func (b *Builder) Table() *Table {
	t := &Table{Totals: slices.Clone(b.totals),
		Partitions: slices.SortedFunc(maps.Keys(b.partitions), Partition.compare),
		Keys:       make([]int64, 0, len(b.index)), Cells: make([]Cell, 0, len(b.cells))}
	for key := range b.index {
		t.Keys = append(t.Keys, key)
	}
	slices.Sort(t.Keys)
	for _, key := range t.Keys {
		t.Cells = append(t.Cells, b.cells[b.index[key]:][:len(b.totals)]...)
	}
	return t
}
