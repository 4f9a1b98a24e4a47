package vocabulary

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"unicode/utf8"

	unit "github.com/millrace/millrace/fpga/unit/vocabulary"
	"github.com/millrace/millrace/sdk/vocabulary/occurrence"
)

// Version of the file's form.
const (
	Major = 1
	Minor = 0
)

// Errors of files, for errors.Is.
var (
	ErrDamaged = errors.New("vocabulary: damaged")
	ErrVersion = errors.New("vocabulary: unknown version")
)

// Bounds of a vocabulary.
const (
	// MaxRows bounds the rows of a data set that a vocabulary is made of, over all generations.
	MaxRows      = 1 << (64 - occurrence.PlaceBits)
	MaxColumns   = 1 << 16
	MaxNameBytes = 1 << 12 // of a column
	maxHeader    = headerSize + MaxColumns*(columnSize+MaxNameBytes)
	headerSize   = 72
	columnSize   = 38 // without the name
)

// Digest is the SHA-256 of a vocabulary's file, or of the operators that make a column's keys.
type Digest [sha256.Size]byte

// String returns the digest in hexadecimal digits.
func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// Column is a feature whose keys a vocabulary holds.
type Column struct {
	Name  string
	Chain Digest // Chain names the operators that make the keys, see package pipeline
	Table int    // index in Vocabulary.Tables; several columns share a table of a joint vocabulary
}

// Vocabulary is the contents of a file.
type Vocabulary struct {
	Rules   Rules
	Columns []Column
	Tables  [][]int64 // the keys of each table in the order of their ids; nil: they are not at hand, see LoadForLookups
	Digest  Digest    // Digest is the SHA-256 of the file

	prepared []preparedTable // prepared has an entry a table, and is set when the file is read
	kept     *keptIDs        // kept has the ids of the rows that the vocabulary was built of; nil: they were not kept
	sizes    []int64         // keys of each table, of a vocabulary without all of its keys
}

// Column returns the column of a name, or nil if the vocabulary lacks it.
func (v *Vocabulary) Column(name string) *Column {
	for i := range v.Columns {
		if v.Columns[i].Name == name {
			return &v.Columns[i]
		}
	}
	return nil
}

// keysOfTable returns how many keys a table has.
func (v *Vocabulary) keysOfTable(table int) int64 {
	if v.sizes != nil {
		return v.sizes[table]
	}
	return int64(len(v.Tables[table]))
}

// Keys returns how many keys all tables have.
func (v *Vocabulary) Keys() (n int64) {
	for table := range countTables(v.Columns) {
		n += v.keysOfTable(table)
	}
	return n
}

// countTables returns how many tables the columns have.
func countTables(columns []Column) int {
	n := 0
	for i := range columns {
		n = max(n, columns[i].Table+1)
	}
	return n
}

// checkColumns checks that columns have names of their own, and that their tables are numbered in the order of their
// columns: one each, or one for all.
func checkColumns(columns []Column, joint bool) error {
	if len(columns) == 0 || len(columns) > MaxColumns {
		return fmt.Errorf("%d columns, want 1 to %d", len(columns), MaxColumns)
	}
	seen := make(map[string]bool, len(columns))
	for i := range columns {
		c := &columns[i]
		want := i
		if joint {
			want = 0
		}
		switch {
		case c.Name == "" || len(c.Name) > MaxNameBytes || !utf8.ValidString(c.Name):
			return fmt.Errorf("column %d has a name of %d bytes, want 1 to %d of UTF-8", i, len(c.Name), MaxNameBytes)
		case seen[c.Name]:
			return fmt.Errorf("column %q comes twice", c.Name)
		case c.Table != want:
			return fmt.Errorf("column %q has table %d, want %d", c.Name, c.Table, want)
		}
		seen[c.Name] = true
	}
	return nil
}

// preparedTable returns a table that is ready for lookups. It makes the table once, when it is first called.
type preparedTable func() (*unit.Table, error)

// prepareTable returns a list of keys as a table, which is there already unless it is nil.
func prepareTable(keys []int64, table *unit.Table) preparedTable {
	if table != nil {
		return func() (*unit.Table, error) { return table, nil }
	}
	return sync.OnceValues(func() (*unit.Table, error) { return unit.NewTable(keys) })
}

// prepareNext makes the next table ready for lookups. It refuses one that holds a key twice.
func (v *Vocabulary) prepareNext(keys []int64) error {
	table, err := unit.NewTable(keys)
	if err != nil {
		return fmt.Errorf("%w: table %d: %w", ErrDamaged, len(v.prepared), err)
	}
	v.prepared = append(v.prepared, prepareTable(keys, table))
	return nil
}

// MemoryBytes returns the memory of the keys that are at hand and of the tables for lookups.
func (v *Vocabulary) MemoryBytes() int64 {
	n := int64(0)
	for _, keys := range v.Tables {
		n += 8 * int64(len(keys))
	}
	for _, prepared := range v.prepared {
		if table, err := prepared(); err == nil {
			n += table.Bytes()
		}
	}
	return n
}
