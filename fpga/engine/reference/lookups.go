package reference

import (
	"fmt"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/sigridhash"
	"github.com/millrace/millrace/fpga/unit/vocabulary"
)

// lookUp returns the id of a key. The keys of the program's lookup tables must be at hand.
func (e *evaluator) lookUp(o program.Lookup, key int64) (any, error) {
	indices, ok := e.lookups[o.Table]
	if !ok {
		var err error
		if indices, err = vocabulary.NewReference(e.lookupTables[o.Table].Listed); err != nil {
			return nil, err
		}
		e.lookups[o.Table] = indices
	}
	index, ok := indices[key]
	switch {
	case ok:
		return o.Base + int64(index), nil
	case o.Absent == program.AbsentRare:
		return o.Rare, nil
	case o.Absent == program.AbsentBucket:
		buckets := int64(o.Buckets)
		return o.Base - buckets + sigridhash.Reference(key, 0, buckets), nil
	}
	return nil, fmt.Errorf("%w: the lookup table lacks the key %d", ErrData, key)
}
