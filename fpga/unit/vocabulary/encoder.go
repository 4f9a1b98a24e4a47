package vocabulary

import "math/bits"

// Encoder gives the keys of whole columns their indices in the order of first appearance, as a [Generator] does for
// keys that come in blocks. With a whole column at hand it works on a part of the keys at a time, so that what it reads
// at random stays in the processor's caches. The zero value works. An Encoder may be used by one goroutine at a time,
// and keeps its memory for the next column.
type Encoder struct {
	array []uint32 // index + 1 of a key, or 0; zero between columns

	// Of keys that are spread: the column's keys, those of a part together and in their order. Then, at the same places,
	// the place of the key's first appearance in this list, and at that place the key's index.
	places []uint32
	ends   []uint32 // Each part ends there in places.
	noted  []uint32 // the different keys
	slots  []uint64 // One part's: key << 32 | place of its first appearance + 1; 0: the slot is free.
}

const (
	// encodedSpread is how many integers an encoder's array spans at most for each key of 32 bits of the column: it
	// takes at most twice the memory of the column. Keys of 16 bits always have an array, which takes at most 256 KiB.
	encodedSpread = 2
	// partKeys is about how many keys a part has: twice as many slots take 64 KiB.
	partKeys = 1 << 13
	// mostParts bounds the parts, to each of which keys are appended by turns.
	mostParts = 1 << 10
)

// MaxColumn bounds the keys of a column for Encode.
const MaxColumn = 1<<31 - 1

// EncodedKey is the type of keys that an Encoder replaces by their indices.
type EncodedKey interface{ uint16 | uint32 }

// Encode replaces the keys of a column, which has at most [MaxColumn], by their indices in the order of first
// appearance. It returns the different keys in that order. The column lies in blocks, one after the other, and no key
// has more bits than width.
func Encode[K EncodedKey](e *Encoder, blocks [][]K, width int) (keys []int64) {
	n := 0
	for _, block := range blocks {
		n += len(block)
	}
	wide, isWide := any(blocks).([][]uint32)
	if span := uint64(1) << width; isWide && span > denseLeast &&
		(width > maxArrayWidth || span > encodedSpread*uint64(n)) {
		return e.encodeSpread(wide, n)
	}
	return encodeDense(e, blocks, n, 1<<width)
}

// encodeDense is Encode of n keys below span.
func encodeDense[K EncodedKey](e *Encoder, blocks [][]K, n, span int) []int64 {
	if cap(e.array) < span {
		e.array = make([]uint32, span)
	}
	d := denseEncoder[K]{array: e.array[:span], keys: e.room(min(n, span))[:0]}
	for _, block := range blocks {
		for len(block) > 0 {
			chunk := block[:min(len(block), denseChunk)]
			block = block[len(chunk):]
			before := len(d.keys)
			if d.steady {
				d.encodeKnown(chunk)
			} else {
				d.encodeAny(chunk)
			}
			d.steady = len(d.keys)-before <= steadyKeys
		}
	}
	clear(d.array)
	return widened(d.keys)
}

const (
	// denseChunk is how many keys a denseEncoder takes at a time. Their places fit 16 bits, and what it notes of them
	// stays in the first-level cache.
	denseChunk = 1 << 10
	// steadyKeys is up to how many new keys of a chunk a branch for new keys is well predicted in the next one.
	steadyKeys = denseChunk / 64
)

// denseEncoder encodes the keys of one column, chunk by chunk, with an array.
type denseEncoder[K EncodedKey] struct {
	array  []uint32 // index + 1 of a key, or 0
	keys   []uint32 // the different keys; it has the capacity for all of them
	steady bool     // the last chunk had few new keys

	// The keys of a chunk that the array does not have, with their places in the chunk.
	newKeys [denseChunk]K
	places  [denseChunk]uint16
}

// encodeKnown replaces the keys of a chunk by their indices. Few of them are new.
func (d *denseEncoder[K]) encodeKnown(chunk []K) {
	array := d.array
	for i, key := range chunk {
		next := array[key]
		if next == 0 {
			next = d.add(key)
		}
		chunk[i] = K(next - 1)
	}
}

// encodeAny replaces the keys of a chunk by their indices. While a vocabulary fills, whether a key is new is as good as
// random, so that no branch depends on it: every key is noted, and the next one overwrites it unless the key is new.
// The new keys get their indices afterwards. Until then the array is only read, and the processor loads the elements of
// many keys at a time.
func (d *denseEncoder[K]) encodeAny(chunk []K) {
	array, found := d.array, 0
	for i, key := range chunk {
		next := array[key]
		d.newKeys[found&(denseChunk-1)] = key
		d.places[found&(denseChunk-1)] = uint16(i)
		found += int((uint64(next) - 1) >> 63)
		chunk[i] = K(next - 1)
	}
	for i, key := range d.newKeys[:found] {
		next := array[key]
		if next == 0 { // nearly always: no earlier key of the chunk is the same
			next = d.add(key)
		}
		chunk[d.places[i]] = K(next - 1)
	}
}

// add gives a new key the next index, and returns it + 1.
func (d *denseEncoder[K]) add(key K) uint32 {
	d.keys = append(d.keys, uint32(key))
	next := uint32(len(d.keys))
	d.array[key] = next
	return next
}

// room returns memory for some keys, whose values are any.
func (e *Encoder) room(n int) []uint32 {
	if cap(e.noted) < n {
		e.noted = make([]uint32, n)
	}
	return e.noted[:n]
}

// widened returns keys as 64-bit numbers.
func widened(narrow []uint32) []int64 {
	keys := make([]int64, len(narrow))
	for i, key := range narrow {
		keys[i] = int64(key)
	}
	return keys
}

// encodeSpread is Encode of any keys. Their hashes divide them into parts, so that the slots of one part stay in the
// second-level cache.
func (e *Encoder) encodeSpread(blocks [][]uint32, n int) []int64 {
	multiplier := randomMultiplier()
	partBits := min(max(bits.Len(uint(n/partKeys)), 1), bits.Len(uint(mostParts-1)))
	shift := 64 - uint(partBits)
	e.divide(blocks, n, multiplier, shift)
	begin, different := uint32(0), 0
	for _, end := range e.ends {
		different += e.findFirst(e.places[begin:end], begin, multiplier, partBits)
		begin = end
	}
	return e.number(blocks, different, multiplier, shift)
}

// divide copies the keys to places, part by part.
func (e *Encoder) divide(blocks [][]uint32, n int, multiplier uint64, shift uint) {
	if cap(e.places) < n {
		e.places = make([]uint32, n)
	}
	e.places = e.places[:n]
	var at [mostParts]uint32 // how many keys a part has, and then where its next key lies
	for _, block := range blocks {
		for _, key := range block {
			at[(hashOf(int64(key), multiplier)>>shift)%mostParts]++
		}
	}
	e.ends = e.ends[:0]
	end := uint32(0)
	for part := range 1 << (64 - shift) {
		size := at[part]
		at[part] = end
		end += size
		e.ends = append(e.ends, end)
	}
	places := e.places
	for _, block := range blocks {
		for _, key := range block {
			part := (hashOf(int64(key), multiplier) >> shift) % mostParts
			places[at[part]] = key
			at[part]++
		}
	}
}

// findFirst replaces each key of a part, which begins at a place, by the place of its first appearance. It returns how
// many different keys there are.
func (e *Encoder) findFirst(part []uint32, begin uint32, multiplier uint64, partBits int) (different int) {
	width := bits.Len(uint(2*len(part) - 1))
	if len(part) == 0 {
		return 0
	}
	if len(e.slots) < 1<<width {
		e.slots = make([]uint64, 1<<width)
	}
	slots := e.slots[:1<<width]
	clear(slots)
	mask, shift := uint64(len(slots)-1), uint(64-width)
	for i, key := range part {
		own := uint64(key)<<32 | uint64(begin+uint32(i)+1)
		at := hashOf(int64(key), multiplier) << uint(partBits) >> shift
		s := slots[at&mask]
		// Whether a key is new is as good as random, so that no branch depends on it. Few keys meet another in their slot.
		if s == 0 {
			s = own
		}
		for uint32(s>>32) != key {
			at++
			if s = slots[at&mask]; s == 0 {
				s = own
			}
		}
		slots[at&mask] = s
		first := uint32(s) - 1
		part[i] = first
		different += int((uint64(first^(begin+uint32(i))) - 1) >> 63)
	}
	return different
}

// number replaces the keys by their indices: a place that is a key's first gets the next index, and another the index
// that its first place got.
func (e *Encoder) number(blocks [][]uint32, different int, multiplier uint64, shift uint) []int64 {
	noted := e.room(different + 1)
	var at [mostParts]uint32 // the next place of each part
	for part := 1; part < len(e.ends); part++ {
		at[part] = e.ends[part-1]
	}
	places, found := e.places, uint32(0)
	for _, block := range blocks {
		for i, key := range block {
			part := (hashOf(int64(key), multiplier) >> shift) % mostParts
			place := at[part]
			at[part]++
			first := places[place]
			index := places[first]
			isNew := uint32((uint64(first^place) - 1) >> 63)
			if first == place {
				index = found
			}
			noted[found] = key // and the next one overwrites it unless the key is new
			found += isNew
			places[first] = index
			block[i] = index
		}
	}
	return widened(noted[:different])
}
