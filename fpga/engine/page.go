package engine

import (
	"bytes"
	"hash/crc32"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/parquet/decoder"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
)

// TagBytes is what the engine writes to a task's scratch before an unpacked page, to know the page again. Behind the page it
// keeps the page's header, so that the page can be read when the window does not hold it any more.
const TagBytes = 64

// A tag names the page and its chunk, and has checksums over samples of the page as it lay in the window and, with the
// header, as it is unpacked. It guards against a host's mistake (another column's page, another page in the window), not
// against a host that wants to be wrong: header and page are read with the same checks either way.
//
//	 0  magic u64, offset of the page in its chunk u64, bytes of the page with its header u64, bytes unpacked u64
//	32  values before the page u64, bytes of the chunk u64, bytes of the header u32, column u32
//	56  checksum of a sample of the page as it lay u32, checksum of all of the tag before it, the header and a sample of the page u32
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

// keep writes the tag and the header of the page that lies unpacked in scratch.
func (k *walk) keep(c *program.Cursor, p *page, payload []byte) {
	tag, n := k.scratch[:TagBytes], uint64(len(p.bytes))
	header := k.scratch[TagBytes+n:][:p.head]
	copy(header, k.window[c.Page-k.task.WindowAt:])
	le.PutUint64(tag, tagMagic)
	k.sign(tag, c, p.size, n, p.head)
	le.PutUint32(tag[56:], sample(0, payload))
	le.PutUint32(tag[60:], seal(tag, header, p.bytes))
}

// sign writes the part of a tag that names the page.
func (k *walk) sign(tag []byte, c *program.Cursor, size, unpacked uint64, head int) {
	le.PutUint64(tag[8:], c.Page)
	le.PutUint64(tag[16:], size)
	le.PutUint64(tag[24:], unpacked)
	le.PutUint64(tag[32:], c.Seen)
	le.PutUint64(tag[40:], k.task.ChunkLen)
	le.PutUint32(tag[48:], uint32(head))
	le.PutUint32(tag[52:], k.task.Column)
}

func seal(tag, header, unpacked []byte) uint32 {
	return sample(crc32.Update(crc32.Checksum(tag[:60], castagnoli), castagnoli, header), unpacked)
}

// claim sets p to the page that lies unpacked in scratch, if that is the page at the cursor and what there is of it in the
// window says nothing else.
func (k *walk) claim(c *program.Cursor, p *page) bool {
	size := uint64(len(k.scratch))
	if size < TagBytes {
		return false
	}
	tag := k.scratch[:TagBytes]
	n, head := le.Uint64(tag[24:]), uint64(le.Uint32(tag[48:]))
	if le.Uint64(tag) != tagMagic || n > size-TagBytes || head > size-TagBytes-n {
		return false
	}
	unpacked, header := k.scratch[TagBytes:][:n:n], k.scratch[TagBytes+n:][:head:head]
	if le.Uint32(tag[60:]) != seal(tag, header, unpacked) {
		return false
	}
	h, used, err := format.ParsePageHeader(header)
	if err != nil || uint64(used) != head || uint64(h.Uncompressed) != n {
		return false
	}
	q := page{header: h, off: c.Page, size: head + uint64(h.Compressed), head: used, bytes: unpacked}
	var want [TagBytes]byte
	k.sign(want[:], c, q.size, n, used)
	if !bytes.Equal(tag[8:56], want[8:56]) || !q.packed(&k.ct) || !q.data() {
		return false
	}
	if have := k.have(c.Page); have > 0 {
		b := k.window[uint64(len(k.window))-have:]
		if m := min(len(b), used); !bytes.Equal(b[:m], header[:m]) {
			return false
		}
		if payload := k.payload(&q); payload != nil && sample(0, payload) != le.Uint32(tag[56:]) {
			return false
		}
	}
	*p = q
	return true
}

// unpack makes a page's bytes available: in the window itself when it is not compressed, else in scratch, where they may lie
// already. ok is false when scratch lacks room.
func (w *worker) unpack(k *walk, c *program.Cursor, p *page, payload []byte) (ok bool, err error) {
	if p.bytes != nil {
		return true, nil
	}
	if !p.packed(&k.ct) {
		h := p.header
		h.HasCRC = h.HasCRC && !c.Checked
		late := h.HasCRC && k.late && p.data()
		h.HasCRC = h.HasCRC && !late
		p.bytes, err = decoder.Unpack(nil, &h, payload, &k.ct)
		if err == nil && late {
			w.late.begin(k, c, p)
		}
		if c.Skip == 0 {
			w.result.BytesIn += p.size
		}
		c.Checked = err == nil && p.header.HasCRC
		return true, err
	}
	if p.room(&k.ct) > uint64(len(k.scratch)) {
		return false, nil
	}
	clear(k.scratch[:TagBytes]) // the page that lay here goes
	p.bytes, err = decoder.Unpack(k.scratch[TagBytes:], &p.header, payload, &k.ct)
	if err != nil {
		return true, err
	}
	w.result.BytesIn += p.size
	if p.header.Type != format.DictionaryPage {
		k.keep(c, p, payload)
	}
	return true, nil
}

// dictionary is the resident dictionary of the task at hand.
type dictionary struct {
	d    decoder.Dictionary
	open bool
}

// dictionary checks a dictionary page's place and returns the room that it takes.
func (k *walk) dictionary(c *program.Cursor, p *page) (size uint64, err error) {
	if c.Seen > 0 || c.Dict {
		return 0, k.at(c, badPage("a dictionary page behind the chunk's first page"))
	}
	if int64(p.header.NumValues) > 8*int64(p.header.Uncompressed) { // not even a bit a value
		return 0, k.at(c, badPage("a dictionary of %d values in %d bytes", p.header.NumValues, p.header.Uncompressed))
	}
	return uint64(max(0, decoder.DictionarySize(&p.header, &k.ct))), nil
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
		_, err = decoder.DecodeDictionary(k.dict, &p.header, p.bytes, &k.ct)
	}
	if err != nil {
		return k.at(c, err)
	}
	c.Dict = true
	return nil
}

// resident returns the task's dictionary, opened once a task; nil if there is none.
func (w *worker) resident(k *walk, c *program.Cursor) (*decoder.Dictionary, error) {
	if !c.Dict {
		return nil, nil
	}
	if !w.dict.open {
		d, err := decoder.OpenDictionary(k.dict, &k.ct)
		if err != nil {
			return nil, k.at(c, badSlice("the resident dictionary: %w", err))
		}
		w.dict.d, w.dict.open = d, true
	}
	return &w.dict.d, nil
}
