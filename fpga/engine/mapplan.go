package engine

import (
	"math/bits"
	"slices"

	"github.com/millrace/millrace/fpga/program"
)

// mapPlan is the compiled form of a map. A map's leaves are read side by side, a block of rows at a time, so that
// each entry is read once for all features of the map. mapReader reads the leaves, mapFeatures holds the features of
// a block, and staging.go puts the ids at their place.
type mapPlan struct {
	columnGroup  // 2 leaves, or 3 with scores; keys in the order of picks
	picks        []featurePick
	distinctKeys int // how many different keys of the map the picks take
	table        keyTable
	takesScores  bool // a pick takes scores
}

// featurePick is a sink and the key of the map whose value it takes.
type featurePick struct {
	sink
	keyIndex    int // index among the keys that the picks take
	takesScores bool
	lastOfKey   bool // no later pick takes the same key
}

// addSinks adds the sinks of the map's values.
func (p *mapPlan) addSinks(c *program.Column, sinks []sink) {
	var keys []int64
	for i, s := range sinks {
		index := slices.Index(keys, c.Picks[i].Key)
		if index < 0 {
			index = len(keys)
			keys = append(keys, c.Picks[i].Key)
		}
		p.keys.addSink(&s)
		p.takesScores = p.takesScores || c.Picks[i].Scored
		p.picks = append(p.picks, featurePick{s, index, c.Picks[i].Scored, false})
	}
	seen := make([]bool, len(keys))
	for i := len(p.picks) - 1; i >= 0; i-- {
		k := &p.picks[i]
		k.lastOfKey, seen[k.keyIndex] = !seen[k.keyIndex], true
	}
	p.distinctKeys = len(keys)
	p.table = newKeyTable(keys)
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

// repetitionLevel returns the greatest repetition level of the column's values.
func (c *column) repetitionLevel() uint8 {
	switch {
	case c.part.OfMap() && c.list:
		return 2
	case c.part.OfMap() || c.list:
		return 1
	}
	return 0
}

// blockSize implements groupPlan.
func (p *mapPlan) blockSize(x *executor) (values, maxRows int) {
	values = mapBlockNumbers
	if x.mapReader.scans[1].column.list {
		values = mapBlockElements
	}
	return values, max(1, min(x.engine.blockRows, mapBlockPlaces/max(1, p.distinctKeys)))
}

// writeBlock implements groupPlan.
func (p *mapPlan) writeBlock(x *executor, row uint64, n int, valuesStart uint64) (ok bool, leaf int, err error) {
	return x.writeMapBlock(p, row, n, valuesStart)
}
