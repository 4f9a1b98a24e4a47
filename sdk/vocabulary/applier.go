package vocabulary

import (
	"errors"
	"fmt"
	"sync"
	"unsafe"

	unit "github.com/millrace/millrace/fpga/unit/vocabulary"
	"github.com/millrace/millrace/sdk/tensor"
)

// Applier replaces ids of mini-batches by lookups.
type Applier struct {
	made    *tensor.Schema // made describes the mini-batches that come in
	schema  *tensor.Schema
	lookups []*readyLookup // lookups has one entry a key; nil: its ids stay as they are
	places  []int          // places says for each key where it is among the keys of made
	kept    bool           // some lookups have kept ids
	memory  sync.Pool      // *[]int32 or *[]int64: ids of mini-batches that were released, if some are kept
}

// readyLookup is a lookup with its table.
type readyLookup struct {
	*Lookup
	table *unit.Table
}

// NewApplier makes an applier of mini-batches of the schema made, which become those of schema. lookups has an element
// for each key, nil for a key whose ids stay. Keys whose ids are kept, see Lookup.Kept, are not in made. The error
// wraps tensor.ErrShape.
func NewApplier(made, schema *tensor.Schema, lookups []*Lookup) (*Applier, error) {
	fail := func(why string) error { return fmt.Errorf("%w: lookups in vocabularies: %s", tensor.ErrShape, why) }
	kept := 0
	for _, l := range lookups {
		if l != nil && l.kept != nil {
			kept++
		}
	}
	if len(made.Keys)+kept != len(schema.Keys) || len(lookups) != len(schema.Keys) {
		return nil, fail(fmt.Sprintf("%d keys and %d that are kept become %d with %d lookups", len(made.Keys), kept,
			len(schema.Keys), len(lookups)))
	}
	if kept > 0 && (!schema.Fixed() || schema.Weights || schema.Sets() > 0) {
		return nil, fail("ids are kept beside keys with lengths, weights or sets")
	}
	if len(made.Keys) > 0 && made.IDs == tensor.Int32 && schema.IDs != tensor.Int32 {
		return nil, fail("int32 keys become int64")
	}
	places, next := make([]int, len(lookups)), 0
	for i, l := range lookups {
		if l != nil && l.kept != nil {
			continue
		}
		list := made.Keys[next].List
		places[i] = next
		next++
		if l != nil && l.prepared == nil {
			return nil, fail(fmt.Sprintf("key %q: the keys of its vocabulary are not at hand", schema.Keys[i].Name))
		}
		if l != nil {
			list = list && !l.filled || l.Drops()
		}
		if list != schema.Keys[i].List {
			return nil, fail(fmt.Sprintf("key %q: a list %t, want %t", schema.Keys[i].Name, schema.Keys[i].List, list))
		}
	}
	a := &Applier{made: made, schema: schema, lookups: make([]*readyLookup, len(lookups)), places: places,
		kept: kept > 0}
	return a, a.prepareLookups(lookups)
}

// prepareLookups sets the lookups, and makes the tables that are not there.
func (a *Applier) prepareLookups(lookups []*Lookup) error {
	return inParallel(len(lookups), func(i int) (err error) {
		if lookups[i] == nil {
			return nil
		}
		a.lookups[i] = &readyLookup{Lookup: lookups[i]}
		if lookups[i].kept == nil {
			a.lookups[i].table, err = lookups[i].prepared()
		}
		return err
	})
}

// Schema returns the schema of the mini-batches that come out.
func (a *Applier) Schema() *tensor.Schema { return a.schema }

// Apply returns a mini-batch with the ids of the lookups, and takes over the one it is given: label and dense features
// are shared. Ids are written over the keys where no row gets or loses one and none is kept; their memory is then that
// of the mini-batch that came in. at says which rows they are, for ids that are kept. If Apply fails, it releases the
// mini-batch.
func (a *Applier) Apply(in *tensor.MiniBatch, at Rows) (out *tensor.MiniBatch, err error) {
	switch {
	case a.schema.IDs == tensor.Int64:
		out, err = applyColumns(a, in, at, in.Values64, in.Values64[:0])
	case a.made.IDs == tensor.Int64:
		out, err = applyColumns(a, in, at, in.Values64, narrowedMemory(in.Values64))
	default:
		out, err = applyColumns(a, in, at, in.Values32, in.Values32[:0])
	}
	if err != nil {
		in.Release()
		return nil, err
	}
	return out, nil
}

// applyColumns is Apply of keys of one type that become ids of another. inPlace is an empty slice of the keys' memory.
func applyColumns[From, To unit.ID](a *Applier, in *tensor.MiniBatch, at Rows, keys []From, inPlace []To) (
	*tensor.MiniBatch, error) {
	var release func()
	if in.Lent() {
		release = in.Release
	}
	if a.kept {
		memory, _ := a.memory.Get().(*[]To)
		if n := in.Rows * len(a.schema.Keys); memory == nil || cap(*memory) < n {
			made := make([]To, n)
			memory = &made
		}
		inPlace = (*memory)[:0]
		if in.Lent() {
			release = func() {
				a.memory.Put(memory)
				in.Release()
			}
		}
	}
	out := tensor.New(a.schema, in.Rows, release)
	out.Name, out.Label, out.Dense, out.Dense16 = in.Name, in.Label, in.Dense, in.Dense16
	ids, err := applyIDs(a, in, out, at, keys, inPlace)
	switch ids := any(ids).(type) {
	case []int64:
		out.Values64 = ids
	case []int32:
		out.Values32 = ids
	}
	return out, err
}

// narrowedMemory returns no int32 ids in the memory of int64 keys. The id of a key lies in no later memory than the
// key.
func narrowedMemory(keys []int64) []int32 {
	if len(keys) == 0 {
		return nil
	}
	return unsafe.Slice((*int32)(unsafe.Pointer(unsafe.SliceData(keys))), len(keys))[:0]
}

// applyIDs makes the ids of a mini-batch, its lengths and its weights. memory is an empty slice of the keys' memory, or
// one with room for all ids if some are kept.
func applyIDs[From, To unit.ID](
	a *Applier, in, out *tensor.MiniBatch, at Rows, keys []From, memory []To,
) ([]To, error) {
	fills, oneEach := 0, true // oneEach: every key has one id
	for i, l := range a.lookups {
		if l != nil && l.Drops() {
			oneEach = false
		}
		if l != nil && l.filled && in.Lengths != nil && l.kept == nil {
			oneEach = false
			for _, n := range in.Lengths[a.places[i]*in.Rows:][:in.Rows] {
				if n == 0 {
					fills++
				}
			}
		}
	}
	w := &columnWriter[From, To]{ids: memory, rows: in.Rows, inPlace: oneEach && !a.kept}
	if !oneEach && !a.kept {
		w.ids = make([]To, 0, len(keys)+fills)
		if !a.schema.Fixed() {
			w.lengths = make([]int32, 0, len(a.lookups)*in.Rows)
		}
		if a.schema.Weights {
			w.weights = make([]float32, 0, len(keys)+fills)
		}
	}
	weights := in.Weights
	for i, l := range a.lookups {
		if l != nil && l.kept != nil {
			first, err := l.kept.firstRowOf(at, in.Rows)
			if err != nil {
				return nil, err
			}
			w.ids = appendIDs(l.kept, w.ids, first, in.Rows, To(l.rules.Base))
			continue
		}
		var lengths []int32
		count := in.Rows
		if in.Lengths != nil {
			lengths, count = in.Lengths[a.places[i]*in.Rows:][:in.Rows], 0
			for _, n := range lengths {
				count += int(n)
			}
		}
		var scores []float32
		if a.schema.Weights {
			scores, weights = weights[:count], weights[count:]
		}
		if err := w.appendColumn(l, keys[:count], lengths, scores); err != nil {
			return nil, err
		}
		keys = keys[count:]
	}
	if w.inPlace {
		w.lengths, w.weights = in.Lengths, in.Weights
	}
	out.Lengths, out.Weights = w.lengths, w.weights
	return w.ids, nil
}

// columnWriter appends the ids of one column after the other.
type columnWriter[From, To unit.ID] struct {
	rows    int
	ids     []To
	inPlace bool      // ids lie in the memory of the keys, and lengths and weights stay as they are
	lengths []int32   // nil: every row has one id of every key
	weights []float32 // nil: the mini-batch has none

	// One block of a column.
	keys    [lookupBlock]From
	indices [lookupBlock]int32
}

// lookupBlock is how many keys are looked up at once, so that keys and indices stay in the first-level cache.
const lookupBlock = 1024

// appendColumn appends a column. lengths is nil if every row has one key.
func (w *columnWriter[From, To]) appendColumn(l *readyLookup, keys []From, lengths []int32, scores []float32) error {
	switch {
	case l == nil:
		for _, key := range keys {
			w.ids = append(w.ids, To(key))
		}
	case l.Drops() || l.filled && lengths != nil:
		return w.appendRowByRow(l, keys, lengths, scores)
	default:
		if at, err := w.appendLookups(l, keys); err != nil {
			return setErrorRow(err, at, lengths)
		}
	}
	if w.inPlace {
		return nil
	}
	w.weights = append(w.weights, scores...)
	if w.lengths == nil {
		return nil
	}
	if lengths != nil {
		w.lengths = append(w.lengths, lengths...)
		return nil
	}
	for range w.rows {
		w.lengths = append(w.lengths, 1)
	}
	return nil
}

// appendLookups appends the ids of keys, one each. With an error it returns which key it is about.
func (w *columnWriter[From, To]) appendLookups(l *readyLookup, keys []From) (int, error) {
	base := To(l.rules.Base)
	for begin := 0; begin < len(keys); begin += lookupBlock {
		block := w.keys[:min(len(keys)-begin, lookupBlock)]
		copy(block, keys[begin:]) // ids may lie in their memory
		first := len(w.ids)
		w.ids = w.ids[:first+len(block)]
		ids := w.ids[first:]
		switch complete := unit.Lookup(l.table, ids, block); {
		case complete && base == 0:
		case complete:
			for i := range ids {
				ids[i] += base
			}
		default:
			for i, index := range ids {
				if index >= 0 {
					ids[i] += base
					continue
				}
				id, _, err := l.idOfAbsentKey(int64(block[i]))
				if err != nil {
					return begin + i, err
				}
				ids[i] = To(id)
			}
		}
	}
	return 0, nil
}

// appendRowByRow appends a column of which rows may lose a key or get the null id.
func (w *columnWriter[From, To]) appendRowByRow(l *readyLookup, keys []From, lengths []int32, scores []float32) error {
	row, left, kept := -1, int32(0), int32(0)
	end := func() { // of a row
		if row >= 0 && w.lengths != nil {
			w.lengths = append(w.lengths, kept)
		}
	}
	// next goes on to the next row that has keys. The rows before it are written.
	next := func() {
		for left == 0 && row < w.rows {
			end()
			if row++; row == w.rows {
				return
			}
			left, kept = 1, 0
			if lengths != nil {
				left = lengths[row]
			}
			if left == 0 && l.filled {
				w.ids, kept = append(w.ids, To(l.rules.Null.ID)), 1
				if w.weights != nil {
					w.weights = append(w.weights, 1)
				}
			}
		}
	}
	next()
	for begin := 0; begin < len(keys); begin += lookupBlock {
		part := keys[begin:min(begin+lookupBlock, len(keys))]
		indices := w.indices[:len(part)]
		unit.Lookup(l.table, indices, part)
		for i, index := range indices {
			id, keep := l.rules.Base+int64(index), true
			if index < 0 {
				var err error
				if id, keep, err = l.idOfAbsentKey(int64(part[i])); err != nil {
					return setErrorRow(err, row, nil)
				}
			}
			if keep {
				w.ids, kept = append(w.ids, To(id)), kept+1
				if w.weights != nil {
					w.weights = append(w.weights, scores[begin+i])
				}
			}
			left--
			next()
		}
	}
	return nil
}

// setErrorRow sets the row of an error about the key at a place of a column.
func setErrorRow(err error, at int, lengths []int32) error {
	var unknown *UnknownError
	if !errors.As(err, &unknown) {
		return err
	}
	unknown.Row = int64(at)
	for row, n := range lengths {
		if at -= int(n); at < 0 {
			unknown.Row = int64(row)
			break
		}
	}
	return unknown
}
