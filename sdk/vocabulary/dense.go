package vocabulary

import "math"

// denseKeys are what was seen of the keys from 0 to a power of two: keys behind a modulus, as Piper's and MiniPipe's.
type denseKeys struct {
	counts    []uint32 // 0: the key was not seen
	positions []uint64
	used      int // keys that were seen

	// carried holds what no longer fits into counts, and room how many more keys may be added before a count overflows.
	carried []uint64
	room    uint32
}

// denseBytes is the memory of an element. An array of counts that overflowed has eight bytes more, which bounds of
// memory leave out: it takes 2^32 keys of one table.
const denseBytes = 4 + 8

// bytes returns the memory of the array.
func (d *denseKeys) bytes() int64 { return denseBytes * int64(len(d.counts)) }

// addBlock folds the keys in that are in the array. It copies the others and their places in the block to others and
// otherPlaces, and returns how many they are. inOrder says that no greater position was added before.
func (d *denseKeys) addBlock(keys []int64, position, step uint64, inOrder bool, others *[foldBlock]int64,
	otherPlaces *[foldBlock]uint16) (n int) {
	if d.room < foldBlock {
		d.carry()
	}
	d.room -= uint32(len(keys))
	counts, positions := d.counts, d.positions[:len(d.counts)]
	for i, key := range keys {
		if uint64(key) >= uint64(len(counts)) {
			others[n&(foldBlock-1)], otherPlaces[n&(foldBlock-1)] = key, uint16(i)
			n++
			continue
		}
		count := counts[key]
		counts[key] = count + 1
		switch {
		case count == 0:
			positions[key] = position + uint64(i)*step
			d.used++
		case !inOrder:
			positions[key] = min(positions[key], position+uint64(i)*step)
		}
	}
	return n
}

// carry makes room for further counts: every count above 1 is moved to carried.
func (d *denseKeys) carry() {
	d.room = math.MaxUint32 - 1
	if d.used == 0 {
		return
	}
	if d.carried == nil {
		d.carried = make([]uint64, len(d.counts))
	}
	for i, count := range d.counts {
		if count > 1 {
			d.carried[i] = addCounts(d.carried[i], uint64(count-1))
			d.counts[i] = 1
		}
	}
}

// grow makes the array longer.
func (d *denseKeys) grow(length int) {
	d.counts = append(make([]uint32, 0, length), d.counts...)[:length]
	d.positions = append(make([]uint64, 0, length), d.positions...)[:length]
	if d.carried != nil {
		d.carried = append(make([]uint64, 0, length), d.carried...)[:length]
	}
}

// set gives a key that was not seen what is known of it elsewhere.
func (d *denseKeys) set(e entry) {
	count := uint32(min(e.count, math.MaxInt32))
	d.counts[e.key], d.positions[e.key] = count, e.position
	d.room = min(d.room, math.MaxUint32-count)
	d.used++
	if e.count > uint64(count) {
		if d.carried == nil {
			d.carried = make([]uint64, len(d.counts))
		}
		d.carried[e.key] = e.count - uint64(count)
	}
}

// appendTo appends the entries in the order of their keys.
func (d *denseKeys) appendTo(list []entry) []entry {
	for key, count := range d.counts {
		if count == 0 {
			continue
		}
		e := entry{key: int64(key), position: d.positions[key], count: uint64(count)}
		if d.carried != nil {
			e.count = addCounts(e.count, d.carried[key])
		}
		list = append(list, e)
	}
	return list
}
