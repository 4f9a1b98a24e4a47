// Package kernel makes the operator vocabulary ready to run over blocks.
package kernel

import (
	"github.com/millrace/millrace/fpga/block"
	"github.com/millrace/millrace/fpga/operator/vocabulary"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/sigridhash"
)

// Unit is the unit that computes the operator.
const Unit = vocabulary.Unit

// step replaces keys by their ids in a lookup table.
type step struct {
	lookup vocabulary.Op
	hasher *sigridhash.Hasher // The hash of absent keys, if they get buckets.
}

// Compile makes the operator ready.
func Compile(op program.Op, _ program.Kind, _ *block.Tables) (block.Step, error) {
	s := &step{lookup: op.(vocabulary.Op)}
	if s.lookup.Absent != vocabulary.AbsentBucket {
		return s, nil
	}
	var err error
	s.hasher, err = sigridhash.New(sigridhash.Params{Max: int64(s.lookup.Buckets)})
	return s, err
}

// keysAtOnce is how many keys are looked up at once, so that keys and ids stay in the first-level cache.
const keysAtOnce = 1024

// Run implements block.Step. Ids may lie in the memory of the keys.
func (s *step) Run(b *block.Buffers, v *block.Values) error {
	table := &b.Lookups[s.lookup.Table]
	dst := b.IntDestination(v.Count)
	b.Copied = block.Resize(&b.Copied, keysAtOnce)
	for at := 0; at < v.Count; at += keysAtOnce {
		keys := b.Copied[:copy(b.Copied, v.Int64s[at:v.Count])]
		ids := dst[at:][:len(keys)]
		switch complete := table.Lookup(ids, keys); {
		case complete && s.lookup.Base == 0:
		case complete:
			for i := range ids {
				ids[i] += s.lookup.Base
			}
		default:
			if err := s.replaceAbsent(ids, keys, v, at); err != nil {
				return err
			}
		}
	}
	v.Int64s, v.OwnsValues = dst, true
	return nil
}

// replaceAbsent turns the indices of keys, which are the values of v from first on, into ids. Some of them are absent.
func (s *step) replaceAbsent(ids, keys []int64, v *block.Values, first int) error {
	for i, index := range ids {
		switch {
		case index >= 0:
			ids[i] += s.lookup.Base
		case v.Valid != nil && v.Valid[first+i] == 0:
			ids[i] = 0 // a null has no key
		case s.lookup.Absent == vocabulary.AbsentRare:
			ids[i] = s.lookup.Rare
		case s.lookup.Absent == vocabulary.AbsentBucket:
			s.hasher.Hash(ids[i:i+1], keys[i:i+1])
			ids[i] += s.lookup.Base - int64(s.lookup.Buckets)
		default:
			return &block.AbsentKeyError{Key: keys[i], Row: v.RowOf(first + i)}
		}
	}
	return nil
}
