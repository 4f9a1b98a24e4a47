package parquet

import (
	"errors"
	"io"
)

var errNotBuilt = errors.New("parquet: not built yet")

// ReadFooter reads and checks the footer of a file of size bytes.
func ReadFooter(r io.ReaderAt, size int64) (*File, error) { return nil, errNotBuilt }

// PageLocation is one entry of an offset index.
type PageLocation struct {
	Offset   int64 // of the page's header, in the file
	Size     int32 // bytes, header included
	FirstRow int64 // in the row group
}

// ReadOffsetIndex reads the page locations of a chunk; nil if it has none.
func ReadOffsetIndex(r io.ReaderAt, f *File, rowGroup, leaf int) ([]PageLocation, error) {
	return nil, errNotBuilt
}

// ParsePageHeader reads the page header at the start of b and returns it with its length in bytes.
// ErrMoreInput: b ends inside the header.
func ParsePageHeader(b []byte) (PageHeader, int, error) { return PageHeader{}, 0, errNotBuilt }

// Unpack checks the page's CRC if it has one and decompresses the page into dst, which must hold h.Uncompressed bytes
// (else *SizeError). payload is the h.Compressed bytes after the header (ErrMoreInput if there are fewer). An
// uncompressed page is returned as payload itself, and dst may be nil.
func Unpack(dst []byte, h *PageHeader, payload []byte, ct *ColumnType) ([]byte, error) {
	return nil, errNotBuilt
}

// Dictionary is a decoded dictionary in the caller's memory.
type Dictionary struct{}

// Len is the number of values.
func (d *Dictionary) Len() int { return 0 }

// DictionarySize is the most memory that DecodeDictionary of this page takes, in bytes.
func DictionarySize(h *PageHeader, ct *ColumnType) int64 { return 0 }

// DecodeDictionary decodes an unpacked dictionary page into dst, which must be 8-byte aligned, and returns the bytes used.
func DecodeDictionary(dst []byte, h *PageHeader, page []byte, ct *ColumnType) (used int, err error) {
	return 0, errNotBuilt
}

// OpenDictionary checks the bytes that DecodeDictionary wrote (or somebody else) and makes them usable.
func OpenDictionary(b []byte, ct *ColumnType) (Dictionary, error) { return Dictionary{}, errNotBuilt }

// Decoder decodes one unpacked data page.
type Decoder struct{}

// Reset begins a page. page and dict are read, not copied, until the next Reset. dict may be nil if the page's encoding is
// not a dictionary's.
func (d *Decoder) Reset(ct *ColumnType, h *PageHeader, page []byte, dict *Dictionary) error {
	return errNotBuilt
}

// Rows is how many rows that begin in this page are left.
func (d *Decoder) Rows() int { return 0 }

// Continues tells whether the page begins inside a list row of the page before (possible in v1 pages of lists), and those
// values are still to be taken by Continue or dropped by Skip.
func (d *Decoder) Continues() bool { return false }

// Continue appends the values that belong to the row before the page to the block's last row.
func (d *Decoder) Continue(b *Block) error { return errNotBuilt }

// Skip drops what Continues tells of, and then n rows.
func (d *Decoder) Skip(n int) error { return errNotBuilt }

// Next appends up to n whole rows to b (b.Kind must be the column's) and returns how many. Before it, Continues must be false
// (else ErrContinues). After an error the block is as it was and the decoder must be Reset.
// A list's last row of a v1 page may go on in the next page: see Continues there.
func (d *Decoder) Next(b *Block, n int) (int, error) { return 0, errNotBuilt }

// ChunkReader walks the pages of a whole chunk in memory.
type ChunkReader struct{ MaxPage int }

// Reset begins a chunk: its bytes from Offset, Compressed long, and its counts from the footer.
func (c *ChunkReader) Reset(ct ColumnType, chunk []byte, values, rows int64) error { return errNotBuilt }

// Next appends up to n rows; io.EOF after the last.
func (c *ChunkReader) Next(b *Block, n int) (int, error) { return 0, errNotBuilt }

// Skip drops up to n rows and returns how many.
func (c *ChunkReader) Skip(n int64) (int64, error) { return 0, errNotBuilt }

// Column is a chunk decoded by the reference: a row is nil, int64, float32, float64, []byte, or for lists []any of those.
type Column struct {
	Kind Kind
	List bool
	Rows []any
}

// ReadColumnReference decodes a whole chunk, value by value.
func ReadColumnReference(r io.ReaderAt, f *File, rowGroup, leaf int) (Column, error) {
	return Column{}, errNotBuilt
}
