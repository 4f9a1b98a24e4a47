package occurrence

import (
	"math"
	"math/bits"
)

// denseKeys are what was seen of the keys from 0 to a power of two: keys behind a modulus, as Piper's and MiniPipe's.
type denseKeys struct {
	counts    []uint16 // 0: the key was not seen
	positions []uint64 // unseen for keys that were not seen
	used      int      // keys that were seen
	steady    bool     // the last block in order had few new keys

	// carried holds what no longer fits into counts. A key is there once in 65,535 of its values, so that carried stays
	// far smaller than the arrays.
	carried map[int64]uint64

	// lanes are of blocks that came in order among themselves, as those of one thread do. The bits of lanes are only kept
	// where there are several lanes.
	lanes []lane
}

// lane is a sequence of blocks in order.
type lane struct {
	greatest uint64   // position
	seen     []uint64 // a bit of each key whose position lies before all positions that the lane is still to have
}

// mostLanes bounds the lanes of an array. Blocks of no lane cost a look at the position of every key.
const mostLanes = 8

// denseBytes is the memory of an element.
const denseBytes = 2 + 8 + mostLanes/8

// laneWords returns the length of a lane's bits for some keys.
func laneWords(keys int) int { return (keys + 63) / 64 }

// unseen is the position of a key that was not seen: the greatest there is.
const unseen = math.MaxUint64

// memoryBytes returns the memory of the arrays.
func (d *denseKeys) memoryBytes() int64 { return denseBytes * int64(len(d.counts)) }

// blockKeys are some keys of a block, with their places in it.
type blockKeys struct {
	keys   [foldBlock]int64
	places [foldBlock]uint16
}

// steadyKeys is up to how many new keys of a block the next block is folded in with a branch for new keys.
const steadyKeys = foldBlock / 64

// addBlock folds the keys of a block in that are in the array. It copies the other keys to others, and returns how many
// they are.
func (d *denseKeys) addBlock(keys []int64, position, step uint64, others *blockKeys) (n int) {
	l := d.laneOf(position)
	if l != nil {
		l.greatest = position + uint64(len(keys)-1)*step
	}
	used := d.used
	switch {
	case l == nil:
		return d.addOutOfOrder(keys, position, step, others)
	case len(d.lanes) > 1:
		return d.addToLane(l, keys, position, step, others)
	case d.steady:
		n = d.addKnown(keys, position, step, others)
	default:
		n = d.addMostlyNew(keys, position, step, others)
	}
	d.steady = d.used-used <= steadyKeys
	return n
}

// laneOf returns the lane that a block follows most closely. If it follows none, laneOf returns a new one, or nil where
// there are too many.
func (d *denseKeys) laneOf(position uint64) (follows *lane) {
	for i := range d.lanes {
		if l := &d.lanes[i]; l.greatest < position && (follows == nil || l.greatest > follows.greatest) {
			follows = l
		}
	}
	if follows != nil || len(d.lanes) == mostLanes {
		return follows
	}
	d.lanes = append(d.lanes, lane{seen: make([]uint64, laneWords(len(d.counts)))})
	if len(d.lanes) == 2 { // the first lane has seen all keys so far
		seen := make([]uint64, laneWords(len(d.counts)))
		for key, count := range d.counts {
			seen[key/64] |= uint64(1-oneIfZero(count)) << (key % 64)
		}
		d.lanes[0].seen = seen
	}
	return &d.lanes[len(d.lanes)-1]
}

// addKnown is addBlock for blocks of a single lane in which few keys are new.
func (d *denseKeys) addKnown(keys []int64, position, step uint64, others *blockKeys) (n int) {
	counts := d.counts
	for i, key := range keys {
		if uint64(key) >= uint64(len(counts)) {
			others.keys[n&(foldBlock-1)], others.places[n&(foldBlock-1)] = key, uint16(i)
			n++
			continue
		}
		count := counts[key] + 1
		if count <= 1 { // the key is new, or its count is full
			if count == 1 {
				d.positions[key] = position + uint64(i)*step
				d.used++
			} else {
				count = d.carryFullCount(key) + 1
			}
		}
		counts[key] = count
	}
	return n
}

// addMostlyNew is addBlock for blocks of a single lane in which many keys are new. Whether a key is new is as good as
// random while a vocabulary fills. So no branch depends on it: the place of every key is noted, and the next one
// overwrites it unless the key is new.
func (d *denseKeys) addMostlyNew(keys []int64, position, step uint64, others *blockKeys) (n int) {
	counts := d.counts
	var noted [foldBlock]uint16
	found := 0
	for i, key := range keys {
		if uint64(key) >= uint64(len(counts)) {
			others.keys[n&(foldBlock-1)], others.places[n&(foldBlock-1)] = key, uint16(i)
			n++
			continue
		}
		count := counts[key]
		noted[found&(foldBlock-1)] = uint16(i)
		found += oneIfZero(count)
		if count == math.MaxUint16 {
			count = d.carryFullCount(key)
		}
		counts[key] = count + 1
	}
	positions := d.positions[:len(counts)]
	for _, i := range noted[:found] {
		positions[keys[i]] = position + uint64(i)*step
	}
	d.used += found
	return n
}

// addToLane is addBlock for one of several lanes. It notes keys as addMostlyNew does.
func (d *denseKeys) addToLane(l *lane, keys []int64, position, step uint64, others *blockKeys) (n int) {
	counts := d.counts
	seen := l.seen[:laneWords(len(counts))]
	var noted [foldBlock]uint16
	first, found := 0, 0
	for i, key := range keys {
		if uint64(key) >= uint64(len(counts)) {
			others.keys[n&(foldBlock-1)], others.places[n&(foldBlock-1)] = key, uint16(i)
			n++
			continue
		}
		count := counts[key]
		noted[first&(foldBlock-1)] = uint16(i)
		bitsOfLane := seen[uint64(key)/64]
		first += int(^bitsOfLane >> (uint64(key) % 64) & 1)
		seen[uint64(key)/64] = bitsOfLane | 1<<(uint64(key)%64)
		found += oneIfZero(count)
		if count == math.MaxUint16 {
			count = d.carryFullCount(key)
		}
		counts[key] = count + 1
	}
	d.lowerPositions(keys, position, step, noted[:first])
	d.used += found
	return n
}

// lowerPositions sets the positions of keys, which are noted by their places in a block, where they are lower than
// before.
func (d *denseKeys) lowerPositions(keys []int64, position, step uint64, noted []uint16) {
	positions := d.positions
	for _, i := range noted {
		at := &positions[keys[i]]
		*at = min(*at, position+uint64(i)*step)
	}
}

// addOutOfOrder is addBlock for keys that follow no lane.
func (d *denseKeys) addOutOfOrder(keys []int64, position, step uint64, others *blockKeys) (n int) {
	counts, positions := d.counts, d.positions[:len(d.counts)]
	var noted [foldBlock]uint16
	earlier, found := 0, 0
	for i, key := range keys {
		if uint64(key) >= uint64(len(counts)) {
			others.keys[n&(foldBlock-1)], others.places[n&(foldBlock-1)] = key, uint16(i)
			n++
			continue
		}
		count := counts[key]
		noted[earlier&(foldBlock-1)] = uint16(i)
		_, less := bits.Sub64(position+uint64(i)*step, positions[key], 0)
		earlier += int(less)
		found += oneIfZero(count)
		if count == math.MaxUint16 {
			count = d.carryFullCount(key)
		}
		counts[key] = count + 1
	}
	d.lowerPositions(keys, position, step, noted[:earlier])
	d.used += found
	return n
}

// oneIfZero returns 1 if a count is 0, and else 0, without a branch.
func oneIfZero(count uint16) int { return int((uint64(count) - 1) >> 63) }

// carryFullCount moves the full count of a key to carried, and returns what is left of it.
func (d *denseKeys) carryFullCount(key int64) uint16 {
	if d.carried == nil {
		d.carried = map[int64]uint64{}
	}
	d.carried[key] = addCounts(d.carried[key], math.MaxUint16)
	return 0
}

// growArrays makes the arrays longer.
func (d *denseKeys) growArrays(length int) {
	before := len(d.positions)
	d.counts = append(make([]uint16, 0, length), d.counts...)[:length]
	d.positions = append(make([]uint64, 0, length), d.positions...)[:length]
	for i := range d.positions[before:] {
		d.positions[before+i] = unseen
	}
	for i := range d.lanes {
		l := &d.lanes[i]
		l.seen = append(make([]uint64, 0, laneWords(length)), l.seen...)[:laneWords(length)]
	}
}

// setEntry gives a key that was not seen what is known of it elsewhere.
func (d *denseKeys) setEntry(e Entry) {
	count := uint16(min(e.Count, math.MaxUint16))
	d.counts[e.Key], d.positions[e.Key] = count, e.Position
	d.used++
	if e.Count > uint64(count) {
		if d.carried == nil {
			d.carried = map[int64]uint64{}
		}
		d.carried[e.Key] = e.Count - uint64(count)
	}
}

// appendEntriesTo appends the entries in the order of their keys.
func (d *denseKeys) appendEntriesTo(list []Entry) []Entry {
	begin := len(list)
	for key, count := range d.counts {
		if count != 0 {
			list = append(list, Entry{Key: int64(key), Position: d.positions[key], Count: uint64(count)})
		}
	}
	if len(d.carried) == 0 {
		return list
	}
	for i := range list[begin:] {
		e := &list[begin+i]
		e.Count = addCounts(e.Count, d.carried[e.Key])
	}
	return list
}
