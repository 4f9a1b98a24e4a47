package engine

import (
	"hash/crc32"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/parquet"
)

// TagBytes is what the engine writes to a task's scratch before an unpacked page, to know the page again.
const TagBytes = 64

// tagMagic begins a tag: the ninth byte on are page offset, sizes and a checksum over samples of the page as it lies and
// as it is unpacked. It guards against a host's mistake (another column's page, another page in the window), not against
// a host that wants to be wrong: the page is decoded with the same checks either way.
const tagMagic = 0x6761_7065_6c6c_696d

const tagSample = 256

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sample adds the first and the last bytes of b to a checksum.
func sample(sum uint32, b []byte) uint32 {
	if len(b) <= 2*tagSample {
		return crc32.Update(sum, castagnoli, b)
	}
	sum = crc32.Update(sum, castagnoli, b[:tagSample])
	return crc32.Update(sum, castagnoli, b[len(b)-tagSample:])
}

func putTag(tag []byte, p *page, packed, unpacked []byte) {
	clear(tag[:TagBytes])
	le.PutUint64(tag, tagMagic)
	le.PutUint64(tag[8:], p.off)
	le.PutUint64(tag[16:], p.size)
	le.PutUint64(tag[24:], uint64(len(unpacked)))
	le.PutUint32(tag[32:], sample(sample(0, packed), unpacked))
}

// claimed returns the unpacked page that lies in scratch, if it is the one that the tag promises.
func claimed(scratch []byte, p *page, packed []byte) ([]byte, bool) {
	n := uint64(p.header.Uncompressed)
	if uint64(len(scratch)) < TagBytes+n {
		return nil, false
	}
	tag, unpacked := scratch[:TagBytes], scratch[TagBytes:TagBytes+n]
	ok := le.Uint64(tag) == tagMagic && le.Uint64(tag[8:]) == p.off && le.Uint64(tag[16:]) == p.size &&
		le.Uint64(tag[24:]) == n && le.Uint32(tag[32:]) == sample(sample(0, packed), unpacked)
	return unpacked, ok
}

// unpack makes a page's bytes available: in the window itself when it is not compressed, else in scratch. ok is false when
// scratch lacks room.
func (w *worker) unpack(k *walk, c *program.Cursor, p *page, payload []byte) (ok bool, err error) {
	if !p.packed(&k.ct) {
		p.bytes, err = parquet.Unpack(nil, &p.header, payload, &k.ct)
		if c.Skip == 0 {
			w.result.BytesIn += p.size
		}
		return true, err
	}
	if c.Unpacked {
		if b, ok := claimed(k.scratch, p, payload); ok {
			p.bytes = b
			return true, nil
		}
		c.Unpacked = false
	}
	if p.room(&k.ct) > uint64(len(k.scratch)) {
		return false, nil
	}
	clear(k.scratch[:TagBytes]) // the page that lay here goes
	p.bytes, err = parquet.Unpack(k.scratch[TagBytes:], &p.header, payload, &k.ct)
	if err != nil {
		return true, err
	}
	w.result.BytesIn += p.size
	if p.header.Type != parquet.DictionaryPage {
		putTag(k.scratch, p, payload, p.bytes)
	}
	return true, nil
}

// dictionary is the resident dictionary of the task at hand.
type dictionary struct {
	d    parquet.Dictionary
	open bool
}

// dictionary checks a dictionary page's place and returns the room that it takes.
func (k *walk) dictionary(c *program.Cursor, p *page) (size uint64, err error) {
	if c.Seen > 0 || c.Dict {
		return 0, k.at(c, badData("a dictionary page behind the chunk's first page"))
	}
	if int64(p.header.NumValues) > 8*int64(p.header.Uncompressed) { // not even a bit a value
		return 0, k.at(c, badData("a dictionary of %d values in %d bytes", p.header.NumValues, p.header.Uncompressed))
	}
	return uint64(max(0, parquet.DictionarySize(&p.header, &k.ct))), nil
}

// alone tells whether no other task of the slice names any of k's dictionary room, so that the dictionary may be decoded
// before the others have run.
func (w *worker) alone(k *walk) bool {
	const most = 4096 // beyond, looking takes longer than the second look at a page that it saves
	if len(w.slice.Tasks) > most {
		return false
	}
	mine := k.task.Dict
	for i := range w.slice.Tasks {
		t := &w.slice.Tasks[i]
		if t != k.task && t.Dict.Off < mine.End() && mine.Off < t.Dict.End() {
			return false
		}
	}
	return true
}

// loadDictionary decodes a dictionary page, which lies whole in the window, into its room. The rooms were checked.
func (w *worker) loadDictionary(k *walk, c *program.Cursor, p *page) error {
	start := w.now()
	defer func() { w.result.Decode += w.lap(program.UnitParquet, start, int(p.header.NumValues)) - start }()
	ok, err := w.unpack(k, c, p, k.payload(p))
	if err == nil && !ok {
		err = badData("no scratch for the dictionary page")
	}
	if err == nil {
		_, err = parquet.DecodeDictionary(k.dict, &p.header, p.bytes, &k.ct)
	}
	if err != nil {
		return k.at(c, err)
	}
	c.Dict = true
	return nil
}

// resident returns the task's dictionary, opened once a task; nil if there is none.
func (w *worker) resident(k *walk, c *program.Cursor) (*parquet.Dictionary, error) {
	if !c.Dict {
		return nil, nil
	}
	if !w.dict.open {
		d, err := parquet.OpenDictionary(k.dict, &k.ct)
		if err != nil {
			return nil, k.at(c, badSlice("the resident dictionary: %w", err))
		}
		w.dict.d, w.dict.open = d, true
	}
	return &w.dict.d, nil
}
