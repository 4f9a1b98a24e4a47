package reducer

import (
	"encoding/binary"
	"fmt"
	"os"

	"github.com/millrace/millrace/internal/wholefile"
	"github.com/millrace/millrace/sdk/dataset"
)

// mostEnded is how many bytes of states of partitions that have ended wait for the next part.
const mostEnded = 64 << 20

// keptStates are the states that a reducer keeps in parts of a work folder.
type keptStates struct {
	on    bool   // on says that there is a work folder.
	ended []byte // ended has the states of the partitions that have ended since the last part, as a part has them.
	open  int    // open is the partition whose state is all that the last part has; below 0: the part has others.
}

// appendState appends the state of the partition that is being read, as a part has it.
func (r *Reducer) appendState(to []byte) ([]byte, error) {
	state, err := r.State()
	if err != nil {
		return nil, err
	}
	return append(binary.AppendUvarint(to, uint64(len(state))), state...), nil
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
	states, err := r.appendState(r.kept.ended)
	if err != nil {
		return false, err
	}
	replaces = r.kept.open == r.partition && r.kept.ended == nil
	if r.kept.open = r.partition; r.kept.ended != nil {
		r.kept.open = -1
	}
	r.kept.ended = nil
	return replaces, wholefile.Write(path, states)
}

// Restore implements passes.Keeper. An error of damaged parts wraps ErrState.
func (r *Reducer) Restore(parts []string, covered []dataset.Range) error {
	var last []byte
	r.kept.open = -1
	for _, path := range parts {
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for len(b) > 0 {
			size, n := binary.Uvarint(b)
			if n <= 0 || size > uint64(len(b)-n) {
				return fmt.Errorf("%s: %w: it is cut off", path, ErrState)
			}
			state := b[n:][:size]
			b = b[n+int(size):]
			if last, err = r.restoreBefore(last, state); err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
		}
	}
	if last != nil {
		if err := r.restoreLast(last); err != nil {
			return err
		}
	}
	r.kept.on = true
	next := uint64(0)
	if len(covered) > 0 {
		next = covered[0].To
	}
	if r.next != next || len(covered) > 1 {
		return fmt.Errorf("%w: its states end before mini-batch %d, want %d", ErrState, r.next, next)
	}
	return nil
}

// restoreBefore restores the last state before another one, which it returns, unless both are of one partition.
func (r *Reducer) restoreBefore(last, state []byte) ([]byte, error) {
	at, err := Describe(state)
	if err != nil || last == nil {
		return state, err
	}
	if before, err := Describe(last); err != nil || before.Partition == at.Partition {
		return state, err
	}
	return state, r.restoreLast(last)
}

// restoreLast ends the partitions before that of a state, and restores it.
func (r *Reducer) restoreLast(state []byte) error {
	at, err := Describe(state)
	if err != nil {
		return err
	}
	if at.Partition > len(r.o.Manifest.Partitions) {
		return fmt.Errorf("%w: partition %d of %d", ErrState, at.Partition, len(r.o.Manifest.Partitions))
	}
	if err := r.EndPartitions(at.Partition); err != nil {
		return fmt.Errorf("%w: %w", ErrState, err)
	}
	return r.SetState(state)
}
