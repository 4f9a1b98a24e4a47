package occurrence

import "slices"

// Table is what was seen of some keys: small integers in an array, and other keys in a hash table. No key is in both.
type Table struct {
	dense    denseKeys
	hashed   hashedKeys
	greatest uint64 // position that was added

	// mostDense bounds the array's elements. It is a power of two, or 0 for no array.
	mostDense int

	others blockKeys // others has the keys of one block that are not in the array
}

// NewTable returns an empty table, whose array takes some bytes at most.
func NewTable(arrayBytes int64) *Table { return &Table{mostDense: denseLength(arrayBytes)} }

// denseLength returns the length of the longest array in some bytes of memory.
func denseLength(bytes int64) int {
	length := 1 << maxDenseWidth
	for length > 0 && int64(length)*denseBytes > bytes {
		length /= 2
	}
	return length
}

// Keys returns how many keys the table has.
func (t *Table) Keys() int { return t.dense.used + t.hashed.used }

// Hashed returns how many keys are in the hash table.
func (t *Table) Hashed() int { return t.hashed.used }

// ArrayBytes returns the memory of the array.
func (t *Table) ArrayBytes() int64 { return t.dense.memoryBytes() }

// foldBlock is how many keys are folded in at once: 2 KiB of keys stay in the first-level cache.
const foldBlock = 256

// AddColumn folds keys in, one of each row. position is that of the first key.
func (t *Table) AddColumn(keys []int64, position uint64) {
	for len(keys) > 0 {
		block := keys[:min(len(keys), foldBlock)]
		t.addBlock(block, position, 1<<PlaceBits)
		keys, position = keys[len(block):], position+uint64(len(block))<<PlaceBits
	}
}

// AddList folds the keys of one row in. position is that of the first key.
func (t *Table) AddList(keys []int64, position uint64) {
	for len(keys) > 0 {
		block := keys[:min(len(keys), foldBlock)]
		t.addBlock(block, position, 1)
		keys, position = keys[len(block):], position+uint64(len(block))
	}
}

// addBlock folds up to foldBlock keys in, whose positions are step apart.
func (t *Table) addBlock(keys []int64, position, step uint64) {
	inOrder := position > t.greatest
	t.greatest = max(t.greatest, position+uint64(len(keys)-1)*step)
	n := t.dense.addBlock(keys, position, step, &t.others)
	if n > 0 && t.hashed.addBlock(t.others.keys[:n], t.others.places[:n], position, step, inOrder) {
		t.growDense()
	}
}

// denseShare is the least share of an array's elements that have keys when the array is made: one of 16.
const denseShare = 16

// leastDense is the length up to which an array is made however few keys it has: 48 KiB.
const leastDense = 1 << 12

// growDense moves small keys from the hash table to the array if there are enough of them.
func (t *Table) growDense() {
	keys := t.dense.used
	length := 0
	for width, n := range t.hashed.smallByWidth {
		span := 1 << width
		if span > t.mostDense {
			break
		}
		if keys += n; n > 0 && (span <= leastDense || keys >= span/denseShare) {
			length = span
		}
	}
	if length <= len(t.dense.counts) {
		return
	}
	t.dense.growArrays(length)
	for _, e := range t.hashed.takeBelow(int64(length)) {
		t.dense.setEntry(e)
	}
}

// TakeHashed returns the entries of the hash table, sorted by key, and empties the hash table.
func (t *Table) TakeHashed() []Entry {
	sorted := t.hashed.takeAll()
	SortByKey(sorted)
	return sorted
}

// TakeAll returns all entries, sorted by key, and empties the table.
func (t *Table) TakeAll() []Entry {
	sorted := t.TakeHashed()
	if t.dense.used == 0 {
		t.dense = denseKeys{}
		return sorted
	}
	negative, _ := slices.BinarySearchFunc(sorted, Entry{}, compareByKey)
	all := make([]Entry, 0, len(sorted)+t.dense.used)
	all = append(all, sorted[:negative]...)
	all = t.dense.appendEntriesTo(all) // the other keys are beyond the array
	all = append(all, sorted[negative:]...)
	t.dense = denseKeys{}
	return all
}
