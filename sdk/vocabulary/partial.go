package vocabulary

import (
	"math/bits"
	"slices"
)

// partial is what was seen of one table since its last run: a hash table with open addressing.
type partial struct {
	slots []entry // count 0: the slot is free
	used  int
}

const leastSlots = 1 << 10

// add folds one value in.
func (p *partial) add(key int64, position uint64) {
	if 2*(p.used+1) > len(p.slots) {
		p.grow()
	}
	mask := uint64(len(p.slots) - 1)
	for at := p.home(key); ; at = (at + 1) & mask {
		s := &p.slots[at]
		if s.count == 0 {
			*s = entry{key: key, position: position, count: 1}
			p.used++
			return
		}
		if s.key == key {
			s.fold(entry{position: position, count: 1})
			return
		}
	}
}

func (p *partial) home(key int64) uint64 {
	x := uint64(key)
	x = (x ^ x>>32) * 0xd6e8feb86659fd93
	return (x ^ x>>29) * 0x9e3779b97f4a7c15 >> (64 - uint(bits.TrailingZeros(uint(len(p.slots)))))
}

func (p *partial) grow() {
	old := p.slots
	p.slots = make([]entry, max(2*len(old), leastSlots))
	mask := uint64(len(p.slots) - 1)
	for i := range old {
		if old[i].count == 0 {
			continue
		}
		at := p.home(old[i].key)
		for p.slots[at].count != 0 {
			at = (at + 1) & mask
		}
		p.slots[at] = old[i]
	}
}

// take returns the entries, sorted by key, and empties the table.
func (p *partial) take() []entry {
	sorted := p.slots[:0]
	for _, e := range p.slots {
		if e.count != 0 {
			sorted = append(sorted, e)
		}
	}
	p.slots, p.used = nil, 0
	slices.SortFunc(sorted, byKey)
	return sorted
}
