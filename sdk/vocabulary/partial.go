package vocabulary

import "slices"

// partial is what was seen of one table since its last run: small integers in an array, and other keys in a hash
// table. No key is in both.
type partial struct {
	dense    denseKeys
	hashed   hashedKeys
	greatest uint64 // position that was added

	// mostDense bounds the array's elements. It is a power of two, or 0 for no array.
	mostDense int

	others blockKeys // others has the keys of one block that are not in the array
}

// foldBlock is how many keys are folded in at once: 2 KiB of keys stay in the first-level cache.
const foldBlock = 256

// addColumn folds keys in, one of each row. position is that of the first key.
func (p *partial) addColumn(keys []int64, position uint64) {
	for len(keys) > 0 {
		block := keys[:min(len(keys), foldBlock)]
		p.addBlock(block, position, 1<<placeBits)
		keys, position = keys[len(block):], position+uint64(len(block))<<placeBits
	}
}

// addList folds the keys of one row in. position is that of the first key.
func (p *partial) addList(keys []int64, position uint64) {
	for len(keys) > 0 {
		block := keys[:min(len(keys), foldBlock)]
		p.addBlock(block, position, 1)
		keys, position = keys[len(block):], position+uint64(len(block))
	}
}

// addBlock folds up to foldBlock keys in, whose positions are step apart.
func (p *partial) addBlock(keys []int64, position, step uint64) {
	inOrder := position > p.greatest
	p.greatest = max(p.greatest, position+uint64(len(keys)-1)*step)
	n := p.dense.addBlock(keys, position, step, &p.others)
	if n > 0 && p.hashed.addBlock(p.others.keys[:n], p.others.places[:n], position, step, inOrder) {
		p.growDense()
	}
}

// denseShare is the least share of an array's elements that have keys when the array is made: one of 16.
const denseShare = 16

// leastDense is the length up to which an array is made however few keys it has: 48 KiB.
const leastDense = 1 << 12

// growDense moves small keys from the hash table to the array if there are enough of them.
func (p *partial) growDense() {
	keys := p.dense.used
	length := 0
	for width, n := range p.hashed.smallByWidth {
		span := 1 << width
		if span > p.mostDense {
			break
		}
		if keys += n; n > 0 && (span <= leastDense || keys >= span/denseShare) {
			length = span
		}
	}
	if length <= len(p.dense.counts) {
		return
	}
	p.dense.growArrays(length)
	for _, e := range p.hashed.takeBelow(int64(length)) {
		p.dense.setEntry(e)
	}
}

// takeHashed returns the entries of the hash table, sorted by key, and empties it.
func (p *partial) takeHashed() []entry {
	sorted := p.hashed.takeAll()
	sortByKey(sorted)
	return sorted
}

// takeEntries returns all entries, sorted by key, and empties the partial.
func (p *partial) takeEntries() []entry {
	sorted := p.takeHashed()
	if p.dense.used == 0 {
		p.dense = denseKeys{}
		return sorted
	}
	negative, _ := slices.BinarySearchFunc(sorted, entry{}, compareByKey)
	all := make([]entry, 0, len(sorted)+p.dense.used)
	all = append(all, sorted[:negative]...)
	all = p.dense.appendEntriesTo(all) // the other keys are beyond the array
	all = append(all, sorted[negative:]...)
	p.dense = denseKeys{}
	return all
}
