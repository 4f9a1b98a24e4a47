package engine

import (
	"math/bits"
	"slices"

	"github.com/millrace/millrace/fpga/block"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/parquet/decoder"
)

// mapPlan is the compiled form of a map. A map's leaves are read side by side, a block of rows at a time, so that
// each entry is read once for all features of the map. mapReader reads the leaves, mapFeatures holds the features of
// a block, and tensors.Staging puts the ids at their place.
type mapPlan struct {
	columnGroup // 2 leaves, or 3 with scores; keys in the order of picks
	picks       []featurePick
	pickedKeys
	takesScores bool // a pick takes scores
}

// featurePick is a sink and the key of the map whose value it takes.
type featurePick struct {
	sink
	keyIndex    int // index among the keys that the picks take
	takesScores bool
	lastOfKey   bool // no later pick takes the same key
}

// pickedKeys are the different keys of a map that picks take.
type pickedKeys struct {
	distinctKeys int
	table        keyTable
	// texts, if not nil, has the index of each key. The keys of a block are then replaced by these indexes, and table has
	// the indexes as keys.
	texts map[string]int64
}

// newPickedKeys returns the keys that picks of a map take, and the index of each pick's key. text says whether the
// map's keys are text.
func newPickedKeys(picks []program.Pick, text bool) (k pickedKeys, indexes []int) {
	var keys []int64
	if text {
		k.texts = make(map[string]int64, len(picks))
	}
	for i := range picks {
		key := picks[i].Key
		if text {
			at, ok := k.texts[picks[i].Text]
			if !ok {
				at = int64(len(keys))
				k.texts[picks[i].Text] = at
			}
			key = at
		}
		index := slices.Index(keys, key)
		if index < 0 {
			index = len(keys)
			keys = append(keys, key)
		}
		indexes = append(indexes, index)
	}
	k.distinctKeys, k.table = len(keys), newKeyTable(keys)
	return k, indexes
}

// noText stands for the index of a text that no pick takes.
const noText = -1

// numbersOf returns the keys of a block as table knows them. Those of text are written to the memory of buffer.
func (k *pickedKeys) numbersOf(b *decoder.Block, buffer *[]int64) []int64 {
	if k.texts == nil {
		return b.I64
	}
	numbers := block.Resize(buffer, b.Values())
	for i := range numbers {
		at, ok := k.texts[string(b.Bytes(i))]
		if !ok {
			at = noText
		}
		numbers[i] = at
	}
	*buffer = numbers
	return numbers
}

// addSinks adds the sinks of the map's values. text says whether the map's keys are text.
func (p *mapPlan) addSinks(c *program.Column, sinks []sink, text bool) {
	var indexes []int
	p.pickedKeys, indexes = newPickedKeys(c.Picks, text)
	for i, s := range sinks {
		p.keys.AddPlace(&s.Place)
		p.takesScores = p.takesScores || c.Picks[i].Scored
		p.picks = append(p.picks, featurePick{s, indexes[i], c.Picks[i].Scored, false})
	}
	seen := make([]bool, p.distinctKeys)
	for i := len(p.picks) - 1; i >= 0; i-- {
		k := &p.picks[i]
		k.lastOfKey, seen[k.keyIndex] = !seen[k.keyIndex], true
	}
}

// keyTable finds the index of a key.
type keyTable struct {
	// byKey, if not nil, has the index of key lowest+i, plus 1, at i; 0 means that no pick takes the key.
	lowest int64
	byKey  []uint32
	// Otherwise keys and indexes are a hash table with open addressing, whose places are the upper bits of a hash.
	shift   uint
	keys    []int64
	indexes []uint32 // plus 1; 0: the place is free
}

// maxKeySpan bounds the span of the keys for which a keyTable uses byKey.
const maxKeySpan = 1 << 14

// newKeyTable makes a table in which key i has index i.
func newKeyTable(keys []int64) keyTable {
	var t keyTable
	if len(keys) == 0 {
		return t
	}
	t.lowest = slices.Min(keys)
	if span := uint64(slices.Max(keys)) - uint64(t.lowest); span < maxKeySpan {
		t.byKey = make([]uint32, span+1)
		for i, k := range keys {
			t.byKey[k-t.lowest] = uint32(i) + 1
		}
		return t
	}
	width := bits.Len(uint(2 * len(keys)))
	t.shift, t.keys, t.indexes = uint(64-width), make([]int64, 1<<width), make([]uint32, 1<<width)
	for i, k := range keys {
		at := t.hashPlace(k)
		for t.indexes[at] != 0 {
			at = (at + 1) & uint64(len(t.indexes)-1)
		}
		t.keys[at], t.indexes[at] = k, uint32(i)+1
	}
	return t
}

// hashPlace returns the place at which the search for a key begins.
func (t *keyTable) hashPlace(key int64) uint64 { return uint64(key) * 0x9e3779b97f4a7c15 >> t.shift }

// indexOf returns the index of a key plus 1, or 0 if no pick takes the key.
func (t *keyTable) indexOf(key int64) uint32 {
	if t.byKey != nil {
		if i := uint64(key) - uint64(t.lowest); i < uint64(len(t.byKey)) {
			return t.byKey[i]
		}
		return 0
	}
	if t.indexes == nil {
		return 0
	}
	for at := t.hashPlace(key); ; at = (at + 1) & uint64(len(t.indexes)-1) {
		if t.indexes[at] == 0 || t.keys[at] == key {
			return t.indexes[at]
		}
	}
}

// blockSize implements groupPlan.
func (p *mapPlan) blockSize(x *executor) (values, maxRows int) {
	values = mapBlockNumbers
	if x.mapReader.leaves[1].Column.List {
		values = mapBlockElements
	}
	return values, max(1, min(x.engine.blockRows, mapBlockPlaces/max(1, p.distinctKeys)))
}

// writeBlock implements groupPlan.
func (p *mapPlan) writeBlock(x *executor, row uint64, n int, valuesStart uint64) (ok bool, leaf int, err error) {
	return x.writeMapBlock(p, row, n, valuesStart)
}
