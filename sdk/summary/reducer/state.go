package reducer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/millrace/millrace/internal/crc32c"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/targetencoding"
)

// ErrState says that bytes are no state of a pass's next partition.
var ErrState = errors.New("summary: damaged state of a pass")

const (
	stateMagic = "MRSTATE\x03"
	// checksumBytes is the length of the checksum at the end of a state.
	checksumBytes = 4
)

// State returns the state of the partition that is being read.
func (r *Reducer) State() ([]byte, error) {
	columns, err := r.builder.AppendOpen(nil)
	if err != nil {
		return nil, err
	}
	b := append([]byte(stateMagic), r.o.Job[:]...)
	b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(r.partition)), uint64(r.rows))
	b = binary.AppendUvarint(b, r.next)
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
	return binary.LittleEndian.AppendUint32(b, crc32c.Checksum(b)), nil
}

// Position says which mini-batches a state holds.
type Position struct {
	Job       dataset.Digest
	Partition int // in the manifest
	Rows      int64
	Next      uint64 // number of the first mini-batch behind them
}

// Describe returns the position of a state, whose checksum it checks. The error wraps ErrState.
func Describe(state []byte) (Position, error) {
	at, _, err := readHeader(state)
	return at, err
}

// readHeader reads what a state begins with, and returns the rest without the checksum.
func readHeader(state []byte) (at Position, rest []byte, err error) {
	body := len(state) - checksumBytes
	if body < len(stateMagic)+len(at.Job) || string(state[:len(stateMagic)]) != stateMagic {
		return at, nil, fmt.Errorf("%w: %d bytes that do not begin as a state", ErrState, len(state))
	}
	if want := crc32c.Checksum(state[:body]); binary.LittleEndian.Uint32(state[body:]) != want {
		return at, nil, fmt.Errorf("%w: its checksum is not that of its bytes", ErrState)
	}
	rest = state[len(stateMagic):body]
	at.Job = dataset.Digest(rest[:len(at.Job)])
	rest = rest[len(at.Job):]
	var numbers [3]uint64
	for i := range numbers {
		n := 0
		if numbers[i], n = binary.Uvarint(rest); n <= 0 {
			return at, nil, fmt.Errorf("%w: it is cut off", ErrState)
		}
		rest = rest[n:]
	}
	if numbers[0] > math.MaxInt32 || numbers[1] > math.MaxInt64 {
		return at, nil, fmt.Errorf("%w: %d rows of partition %d", ErrState, numbers[1], numbers[0])
	}
	at.Partition, at.Rows, at.Next = int(numbers[0]), int64(numbers[1]), numbers[2]
	return at, rest, nil
}

// SetState takes over what State returned of the partition that is to be read next, of which no row was folded in. The
// error wraps ErrState; the reducer is then of no use.
func (r *Reducer) SetState(state []byte) error {
	if r.rows > 0 || r.partition == len(r.o.Manifest.Partitions) {
		return fmt.Errorf("%w: %d rows of partition %d were folded in before", ErrState, r.rows, r.partition)
	}
	at, left, err := readHeader(state)
	if err != nil {
		return err
	}
	if at.Job != r.o.Job || at.Partition != r.partition {
		return fmt.Errorf("%w: it is of partition %d of job %v, want %d of %v", ErrState, at.Partition, at.Job, r.partition,
			r.o.Job)
	}
	if err := r.checkNext(at.Next); err != nil {
		return err
	}
	next := func() (piece []byte, err error) {
		size, n := binary.Uvarint(left)
		if n <= 0 || size > uint64(len(left)-n) {
			return nil, fmt.Errorf("%w: it is cut off", ErrState)
		}
		piece, left = left[n:][:size], left[n+int(size):]
		return piece, nil
	}
	columns, err := next()
	if err != nil {
		return err
	}
	if err := r.builder.SetOpen(columns); err != nil {
		return fmt.Errorf("%w: %w", ErrState, err)
	}
	if rows := r.builder.OpenRows(); len(r.o.Columns) > 0 && rows != at.Rows {
		return fmt.Errorf("%w: its columns have %d rows, want %d", ErrState, rows, at.Rows)
	}
	for i, t := range r.open {
		if t == nil {
			continue
		}
		piece, err := next()
		if err != nil {
			return err
		}
		var table targetencoding.Table
		if err = table.UnmarshalBinary(piece); err == nil {
			err = t.AddTable(&table)
		}
		if err != nil {
			return fmt.Errorf("%w: %s: %w", ErrState, r.o.Columns[i].Name, err)
		}
	}
	if len(left) > 0 {
		return fmt.Errorf("%w: %d bytes behind its end", ErrState, len(left))
	}
	r.rows, r.next = at.Rows, at.Next
	return nil
}

// checkNext returns an error unless a mini-batch of the partition that is being read, or the one behind its last, has a
// number.
func (r *Reducer) checkNext(number uint64) error {
	wrong := number < r.next || number > r.o.Plan.MiniBatches()
	if !wrong && number > r.next {
		last, err := r.o.Plan.MiniBatch(number - 1)
		wrong = err != nil || last.Partition != r.partition
	}
	if wrong {
		return fmt.Errorf("%w: mini-batch %d cannot come next, after %d and in partition %d", ErrState, number, r.next,
			r.partition)
	}
	return nil
}
