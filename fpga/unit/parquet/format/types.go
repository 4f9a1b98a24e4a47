package format

import "strconv"

// Type is a physical type, numbered as in parquet.thrift.
type Type uint8

// The physical types.
const (
	Boolean           Type = 0
	Int32             Type = 1
	Int64             Type = 2
	Int96             Type = 3
	Float             Type = 4
	Double            Type = 5
	ByteArray         Type = 6
	FixedLenByteArray Type = 7
)

var typeNames = [...]string{"BOOLEAN", "INT32", "INT64", "INT96", "FLOAT", "DOUBLE", "BYTE_ARRAY",
	"FIXED_LEN_BYTE_ARRAY"}

// String is the type's name in the specification.
func (t Type) String() string { return enumName(typeNames[:], int(t), "type") }

// Encoding is how a page's values or levels are written, numbered as in parquet.thrift.
type Encoding uint8

// The encodings.
const (
	Plain                Encoding = 0
	PlainDictionary      Encoding = 2
	RLE                  Encoding = 3
	BitPacked            Encoding = 4
	DeltaBinaryPacked    Encoding = 5
	DeltaLengthByteArray Encoding = 6
	DeltaByteArray       Encoding = 7
	RLEDictionary        Encoding = 8
	ByteStreamSplit      Encoding = 9
)

var encodingNames = [...]string{"PLAIN", "GROUP_VAR_INT", "PLAIN_DICTIONARY", "RLE", "BIT_PACKED",
	"DELTA_BINARY_PACKED",
	"DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY", "RLE_DICTIONARY", "BYTE_STREAM_SPLIT"}

// String is the encoding's name in the specification.
func (e Encoding) String() string { return enumName(encodingNames[:], int(e), "encoding") }

// IsDictionary reports whether a data page in this encoding holds dictionary indices.
func (e Encoding) IsDictionary() bool { return e == PlainDictionary || e == RLEDictionary }

// Codec is how pages are compressed, numbered as in parquet.thrift.
type Codec uint8

// The codecs.
const (
	Uncompressed Codec = 0
	Snappy       Codec = 1
	Gzip         Codec = 2
	LZO          Codec = 3
	Brotli       Codec = 4
	LZ4          Codec = 5 // Hadoop's framing, deprecated
	Zstd         Codec = 6
	LZ4Raw       Codec = 7
)

var codecNames = [...]string{"UNCOMPRESSED", "SNAPPY", "GZIP", "LZO", "BROTLI", "LZ4", "ZSTD", "LZ4_RAW"}

// String is the codec's name in the specification.
func (c Codec) String() string { return enumName(codecNames[:], int(c), "codec") }

// Supported returns nil, or an UnsupportedError that names the codec.
func (c Codec) Supported() error {
	switch c {
	case Uncompressed, Snappy, Gzip, Brotli, LZ4, Zstd, LZ4Raw:
		return nil
	}
	return &UnsupportedError{What: "codec", Name: c.String()}
}

// PageType is the kind of a page, numbered as in parquet.thrift.
type PageType uint8

// The page types.
const (
	DataPage       PageType = 0
	IndexPage      PageType = 1
	DictionaryPage PageType = 2
	DataPageV2     PageType = 3
)

var pageTypeNames = [...]string{"DATA_PAGE", "INDEX_PAGE", "DICTIONARY_PAGE", "DATA_PAGE_V2"}

// String is the page type's name in the specification.
func (p PageType) String() string { return enumName(pageTypeNames[:], int(p), "page type") }

// Kind is the kind of values that the decoder makes.
type Kind uint8

// The kinds of values.
const (
	KindInt64   Kind = iota // BOOLEAN, INT32, INT64
	KindFloat32             // FLOAT
	KindFloat64             // DOUBLE
	KindBytes               // BYTE_ARRAY, FIXED_LEN_BYTE_ARRAY, INT96
)

var kindNames = [...]string{"int64", "float32", "float64", "bytes"}

// String names the kind.
func (k Kind) String() string { return enumName(kindNames[:], int(k), "kind") }

// Kind returns the kind of values that the type is decoded to. An INT96 is decoded to its 12 bytes.
func (t Type) Kind() Kind {
	switch t {
	case Boolean, Int32, Int64:
		return KindInt64
	case Float:
		return KindFloat32
	case Double:
		return KindFloat64
	}
	return KindBytes
}

// ValueSize returns the bytes of a PLAIN value of fixed width; 0 for booleans and byte arrays.
func (ct *ColumnType) ValueSize() int {
	switch ct.Physical {
	case Int32, Float:
		return 4
	case Int64, Double:
		return 8
	case FixedLenByteArray, Int96:
		return int(ct.TypeLength)
	}
	return 0
}

// unknownValue stands for an enumeration's value that does not fit a byte.
const unknownValue = 255

// enumByte narrows a Thrift enumeration to a byte.
func enumByte(v int32) uint8 {
	if v < 0 || v >= unknownValue {
		return unknownValue
	}
	return uint8(v)
}

func enumName(names []string, i int, what string) string {
	if i < len(names) {
		return names[i]
	}
	if i == unknownValue {
		return "unknown " + what
	}
	return what + " " + strconv.Itoa(i)
}
