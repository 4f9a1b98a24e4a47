package engine

import (
	"math/bits"
	"slices"

	"github.com/millrace/millrace/fpga/program"
)

// A map's leaves are read side by side, a block of rows at a time; one look at each entry serves all features of the map.
// See parts for the reading, joined for what is made of a block, and stage for where it goes.

// mapPlan is what is made of a map.
type mapPlan struct {
	parts  int // columns
	picks  []pick
	slots  int // different keys
	table  keyTable
	first  uint32 // its first key of the output
	keys   int    // of the output; they follow each other, in the picks' order
	scored bool   // some pick takes scores
}

// pick is a sink and the slot of the key whose value it takes.
type pick struct {
	sink
	slot   int
	scored bool
	last   bool // no pick behind it takes the same slot
}

// take adds the values' sinks.
func (p *mapPlan) take(c *program.Column, sinks []sink) {
	var keys []int64
	for i, s := range sinks {
		slot := slices.Index(keys, c.Picks[i].Key)
		if slot < 0 {
			slot = len(keys)
			keys = append(keys, c.Picks[i].Key)
		}
		if s.to == program.ToSparse {
			if p.keys == 0 {
				p.first = s.index
			}
			p.keys++
		}
		p.scored = p.scored || c.Picks[i].Scored
		p.picks = append(p.picks, pick{s, slot, c.Picks[i].Scored, false})
	}
	seen := make([]bool, len(keys))
	for i := len(p.picks) - 1; i >= 0; i-- {
		k := &p.picks[i]
		k.last, seen[k.slot] = !seen[k.slot], true
	}
	p.slots = len(keys)
	p.table = newKeyTable(keys)
}

// keyTable finds the slot of a key.
type keyTable struct {
	// dense: slots by key less low, plus 1; 0: none.
	low   int64
	dense []uint32
	// Else open addressing: shift is what is taken off a hash for a place.
	shift uint
	keys  []int64
	slots []uint32 // plus 1
}

// denseKeys bounds the range of keys that are looked up in a table of all.
const denseKeys = 1 << 14

func newKeyTable(keys []int64) keyTable {
	var t keyTable
	if len(keys) == 0 {
		return t
	}
	t.low = slices.Min(keys)
	if span := uint64(slices.Max(keys)) - uint64(t.low); span < denseKeys {
		t.dense = make([]uint32, span+1)
		for i, k := range keys {
			t.dense[k-t.low] = uint32(i) + 1
		}
		return t
	}
	width := bits.Len(uint(2 * len(keys)))
	t.shift, t.keys, t.slots = uint(64-width), make([]int64, 1<<width), make([]uint32, 1<<width)
	for i, k := range keys {
		at := t.place(k)
		for t.slots[at] != 0 {
			at = (at + 1) & uint64(len(t.slots)-1)
		}
		t.keys[at], t.slots[at] = k, uint32(i)+1
	}
	return t
}

func (t *keyTable) place(key int64) uint64 { return uint64(key) * 0x9e3779b97f4a7c15 >> t.shift }

// find returns the slot of a key, plus 1; 0 if it has none.
func (t *keyTable) find(key int64) uint32 {
	if t.dense != nil {
		if i := uint64(key) - uint64(t.low); i < uint64(len(t.dense)) {
			return t.dense[i]
		}
		return 0
	}
	if t.slots == nil {
		return 0
	}
	for at := t.place(key); ; at = (at + 1) & uint64(len(t.slots)-1) {
		if t.slots[at] == 0 || t.keys[at] == key {
			return t.slots[at]
		}
	}
}

// repetition is the repetition level of the column's values.
func (c *column) repetition() uint8 {
	switch {
	case c.part != program.NoPart && c.list:
		return 2
	case c.part != program.NoPart || c.list:
		return 1
	}
	return 0
}

// checkPart checks that a map's tasks are together: keys, values and scores for the same rows.
func (w *worker) checkPart(i int, c *column) error {
	if c.part == program.NoPart {
		return nil
	}
	tasks, place := w.slice.Tasks, int(c.part-program.MapKeys)
	t := &tasks[i]
	if i < place || int(t.Column) < place {
		return badSlice("column %q: the %v of a map without its keys", c.name, c.part)
	}
	keys := &tasks[i-place]
	if keys.Column != t.Column-uint32(place) || keys.Row != t.Row || keys.Count != t.Count {
		return badSlice("column %q: the %v of a map in rows %d+%d, behind column %d in rows %d+%d", c.name, c.part, t.Row, t.Count, keys.Column, keys.Row, keys.Count)
	}
	for k := 1; c.part == program.MapKeys && k < c.plan.parts; k++ {
		if i+k >= len(tasks) || tasks[i+k].Column != t.Column+uint32(k) {
			return badSlice("column %q: the keys of a map without the rest of it", c.name)
		}
	}
	return nil
}
