package reducer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"

	"github.com/millrace/millrace/internal/crc32c"
	"github.com/millrace/millrace/internal/wholefile"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/targetencoding"
)

// ErrState says that bytes are no part of the pass, or do not follow the parts before.
var ErrState = errors.New("summary: damaged state of a pass")

const (
	partMagic = "MRSTATE\x04"
	// checksumBytes is the length of the checksum at the end of a part.
	checksumBytes = 4
	// mostEnded is how many bytes of states of partitions that have ended wait for the next part.
	mostEnded = 64 << 20
)

// keptStates are the states that a reducer keeps in parts of a work folder.
type keptStates struct {
	on    bool   // on says that there is a work folder.
	ended []byte // ended has the states of the partitions that have ended since the last part.
	open  int    // open is the partition whose state is all that the last part has; below 0: the part has others.
}

// appendState appends the state of the partition that is being read.
func (r *Reducer) appendState(b []byte) ([]byte, error) {
	columns, err := r.builder.AppendOpen(nil)
	if err != nil {
		return nil, err
	}
	b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(r.partition)), uint64(r.rows))
	b = append(binary.AppendUvarint(b, uint64(len(columns))), columns...)
	for _, t := range r.open {
		if t == nil {
			continue
		}
		table, err := t.Table().AppendBinary(nil)
		if err != nil {
			return nil, err
		}
		b = append(binary.AppendUvarint(b, uint64(len(table))), table...)
	}
	return b, nil
}

// keepEnded keeps the state of the partition that ends, for the next part.
func (r *Reducer) keepEnded() (err error) {
	if r.kept.on {
		r.kept.ended, err = r.appendState(r.kept.ended)
	}
	return err
}

// Full implements passes.Keeper.
func (r *Reducer) Full() bool { return len(r.kept.ended) > mostEnded }

// Keep implements passes.Keeper. A part that has a state of the partition that is being read, and no other, replaces a
// part of the same kind.
func (r *Reducer) Keep(path string) (replaces bool, err error) {
	b := append(append([]byte(partMagic), r.o.Job[:]...), r.kept.ended...)
	if b, err = r.appendState(b); err != nil {
		return false, err
	}
	alone := r.kept.ended == nil
	replaces = alone && r.kept.open == r.partition
	if r.kept.ended, r.kept.open = nil, r.partition; !alone {
		r.kept.open = -1
	}
	return replaces, wholefile.Write(path, binary.LittleEndian.AppendUint32(b, crc32c.Checksum(b)))
}

// Restore implements passes.Keeper. An error of damaged parts wraps ErrState; the reducer is then of no use.
func (r *Reducer) Restore(parts []string, covered []dataset.Range) error {
	r.kept.open = -1
	var last *state
	for _, path := range parts {
		b, err := os.ReadFile(path)
		if err == nil {
			last, err = r.restorePart(b, last)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	if err := r.restoreState(last); err != nil {
		return err
	}
	r.kept.on = true
	if len(covered) == 0 && last == nil {
		return nil
	}
	if len(covered) != 1 || covered[0].From != 0 {
		return fmt.Errorf("%w: mini-batches %v, which do not come in order", ErrState, covered)
	}
	r.next = covered[0].To
	at, err := r.o.Plan.Fragment(r.next - 1)
	if err != nil || at.Partition != r.partition || at.First+int64(at.Rows) < r.rows {
		return fmt.Errorf("%w: %d rows of partition %d are behind mini-batch %d", ErrState, r.rows, r.partition, r.next-1)
	}
	return nil
}

// state is the state of a partition.
type state struct {
	partition int
	rows      int64
	columns   []byte
	tables    [][]byte // tables are those of the columns whose labels are counted.
}

// restorePart restores the states of a part, of which the last one waits: a later state of the same partition takes its
// place. last is the one of the part before, or nil.
func (r *Reducer) restorePart(b []byte, last *state) (*state, error) {
	left := len(b) - checksumBytes
	if left < len(partMagic)+len(r.o.Job) || string(b[:len(partMagic)]) != partMagic {
		return nil, fmt.Errorf("%w: %d bytes that do not begin as a part", ErrState, len(b))
	}
	if want := crc32c.Checksum(b[:left]); binary.LittleEndian.Uint32(b[left:]) != want {
		return nil, fmt.Errorf("%w: its checksum is not that of its bytes", ErrState)
	}
	b = b[len(partMagic):left]
	if job := dataset.Digest(b[:len(r.o.Job)]); job != r.o.Job {
		return nil, fmt.Errorf("%w: it is of job %v, want %v", ErrState, job, r.o.Job)
	}
	b = b[len(r.o.Job):]
	for len(b) > 0 {
		next, err := r.readState(&b)
		if err != nil {
			return nil, err
		}
		if last != nil && last.partition != next.partition {
			if err := r.restoreState(last); err != nil {
				return nil, err
			}
		}
		last = next
	}
	return last, nil
}

// readState takes a state from the bytes of a part.
func (r *Reducer) readState(b *[]byte) (*state, error) {
	cut := false
	number := func(most uint64) uint64 {
		x, n := binary.Uvarint(*b)
		if n <= 0 || x > most {
			cut, *b = true, nil
			return 0
		}
		*b = (*b)[n:]
		return x
	}
	piece := func() []byte {
		size := number(math.MaxInt64)
		if size > uint64(len(*b)) {
			cut, size = true, 0
		}
		p := (*b)[:size]
		*b = (*b)[size:]
		return p
	}
	s := &state{partition: int(number(uint64(len(r.o.Manifest.Partitions) - 1))), rows: int64(number(math.MaxInt64))}
	s.columns = piece()
	for _, t := range r.open {
		if t != nil {
			s.tables = append(s.tables, piece())
		}
	}
	if cut {
		return nil, fmt.Errorf("%w: a state is cut off, or of no partition", ErrState)
	}
	return s, nil
}

// restoreState ends the partitions before that of a state, and takes the state over; nil: there is none.
func (r *Reducer) restoreState(s *state) error {
	if s == nil {
		return nil
	}
	if s.partition < r.partition || s.partition == r.partition && r.rows > 0 {
		return fmt.Errorf("%w: of partition %d, behind partition %d", ErrState, s.partition, r.partition)
	}
	if err := r.endPartitions(s.partition); err != nil {
		return fmt.Errorf("%w: %w", ErrState, err)
	}
	if err := r.builder.SetOpen(s.columns); err != nil {
		return fmt.Errorf("%w: %w", ErrState, err)
	}
	if rows := r.builder.OpenRows(); len(r.o.Columns) > 0 && rows != s.rows {
		return fmt.Errorf("%w: its columns have %d rows, want %d", ErrState, rows, s.rows)
	}
	for i, t := range r.open {
		if t == nil {
			continue
		}
		var table targetencoding.Table
		err := table.UnmarshalBinary(s.tables[0])
		if err == nil {
			err = t.AddTable(&table)
		}
		if err != nil {
			return fmt.Errorf("%w: %s: %w", ErrState, r.o.Columns[i].Name, err)
		}
		s.tables = s.tables[1:]
	}
	r.rows = s.rows
	return nil
}
