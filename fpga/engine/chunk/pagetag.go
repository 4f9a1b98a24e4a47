package chunk

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
)

// TagBytes is the size of the tag that the engine writes to a task's scratch before an unpacked page, to recognize
// the page later. Behind the page it keeps the page's header, so that the page can be read when the window does not
// hold it any more.
const TagBytes = 64

// A tag names an unpacked page and its chunk. It holds checksums over samples of the page as it lay in the window
// and, with the header, as it is unpacked. It guards against a host's mistake (another column's page, another page
// in the window), not against a malicious host: the engine reads header and page with the same checks whether they
// come from scratch or from the window.
//
//	 0  magic u64, offset of the page in its chunk u64, bytes of the page with its header u64, bytes unpacked u64
//	32  values before the page u64, bytes of the chunk u64, bytes of the header u32, column u32
//	56  checksum u32 of a sample of the page as it lay; checksum u32 of the tag before it, the header and a sample of
//	    the unpacked page
const tagMagic = 0x6761_7065_6c6c_696d

// tagSampleBytes is how many bytes of a page's beginning, and of its end, a tag's checksums cover.
const tagSampleBytes = 256

var littleEndian = binary.LittleEndian

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sampleChecksum adds the first and the last bytes of b to a checksum.
func sampleChecksum(sum uint32, b []byte) uint32 {
	if len(b) <= 2*tagSampleBytes {
		return crc32.Update(sum, castagnoli, b)
	}
	sum = crc32.Update(sum, castagnoli, b[:tagSampleBytes])
	return crc32.Update(sum, castagnoli, b[len(b)-tagSampleBytes:])
}

// writeTag writes the tag and the header of the page that lies unpacked in scratch.
func (t *Task) writeTag(at *program.Cursor, p *page, payload []byte) {
	tag, n := t.Scratch[:TagBytes], uint64(len(p.unpacked))
	header := t.Scratch[TagBytes+n:][:p.headerSize]
	copy(header, t.Window[at.Page-t.Asked.WindowAt:])
	littleEndian.PutUint64(tag, tagMagic)
	t.writePageIdentity(tag, at, p.size, n, p.headerSize)
	littleEndian.PutUint32(tag[56:], sampleChecksum(0, payload))
	littleEndian.PutUint32(tag[60:], tagChecksum(tag, header, p.unpacked))
}

// writePageIdentity writes the part of a tag that names the page.
func (t *Task) writePageIdentity(tag []byte, at *program.Cursor, size, unpacked uint64, headerSize int) {
	littleEndian.PutUint64(tag[8:], at.Page)
	littleEndian.PutUint64(tag[16:], size)
	littleEndian.PutUint64(tag[24:], unpacked)
	littleEndian.PutUint64(tag[32:], at.Seen)
	littleEndian.PutUint64(tag[40:], t.Asked.ChunkLen)
	littleEndian.PutUint32(tag[48:], uint32(headerSize))
	littleEndian.PutUint32(tag[52:], t.Asked.Column)
}

// tagChecksum is the last field of a tag.
func tagChecksum(tag, header, unpacked []byte) uint32 {
	return sampleChecksum(crc32.Update(crc32.Checksum(tag[:60], castagnoli), castagnoli, header), unpacked)
}

// findPageInScratch sets p to the page that lies unpacked in scratch. It reports whether that page is the one at the
// cursor, and agrees with the page's bytes in the window.
func (t *Task) findPageInScratch(at *program.Cursor, p *page) bool {
	size := uint64(len(t.Scratch))
	if size < TagBytes {
		return false
	}
	tag := t.Scratch[:TagBytes]
	unpackedSize, headerSize := littleEndian.Uint64(tag[24:]), uint64(littleEndian.Uint32(tag[48:]))
	if littleEndian.Uint64(tag) != tagMagic || unpackedSize > size-TagBytes || headerSize > size-TagBytes-unpackedSize {
		return false
	}
	unpacked := t.Scratch[TagBytes:][:unpackedSize:unpackedSize]
	header := t.Scratch[TagBytes+unpackedSize:][:headerSize:headerSize]
	if littleEndian.Uint32(tag[60:]) != tagChecksum(tag, header, unpacked) {
		return false
	}
	h, used, err := format.ParsePageHeader(header)
	if err != nil || uint64(used) != headerSize || uint64(h.Uncompressed) != unpackedSize {
		return false
	}
	found := page{header: h, offset: at.Page, size: headerSize + uint64(h.Compressed), headerSize: used,
		unpacked: unpacked}
	var want [TagBytes]byte
	t.writePageIdentity(want[:], at, found.size, unpackedSize, used)
	if !bytes.Equal(tag[8:56], want[8:56]) || !found.isPacked(&t.ColumnType) || !found.holdsValues() {
		return false
	}
	if have := t.WindowBytesFrom(at.Page); have > 0 {
		b := t.Window[uint64(len(t.Window))-have:]
		if m := min(len(b), used); !bytes.Equal(b[:m], header[:m]) {
			return false
		}
		payload := t.payloadInWindow(&found)
		if payload != nil && sampleChecksum(0, payload) != littleEndian.Uint32(tag[56:]) {
			return false
		}
	}
	*p = found
	return true
}
