package workload

import (
	"encoding/binary"
	"encoding/hex"

	"github.com/parquet-go/parquet-go"
)

// blockRows is how many rows are made from one stream of random numbers. Any row can be reached by starting at its
// block, so rows do not depend on how they are cut into partitions and row groups.
const blockRows = 1024

// maxLength is the most ids of a list; MeanLength is half of it.
const maxLength = 40

// kind is the kind of values in a column.
type kind uint8

const (
	labelColumn  kind = iota
	intColumn         // nullable int32
	floatColumn       // nullable float32
	idColumn          // nullable int64
	hexColumn         // nullable text of eight hexadecimal digits
	listColumn        // nullable list<int64>
	keysColumn        // keys of a map
	valuesColumn      // values of the map before
)

// column makes the values of one column. It is read-only and shared by all partitions.
type column struct {
	name      string
	index     int // in the schema, leaves only
	kind      kind
	nulls     uint64 // a row is null if the upper 32 bits of a random number are below
	streamKey uint64
	bits      uint // An intColumn, or a floatColumn of whole numbers, has magnitudes up to 2^bits.
	zipf      zipf

	features []column // The map of a keysColumn and a valuesColumn holds their values, by their place.
}

// columns returns a model's columns.
func columns(m Model, seed uint64) []column {
	names := m.Columns()
	cols := make([]column, len(names))
	z := newZipf()
	// RM2 to RM5 share their rows' shape but are models of their own; the name makes their rows differ.
	var model uint64
	for _, c := range []byte(m.Name) {
		model = model<<8 | uint64(c)
	}
	for i := range cols {
		c := column{
			name: names[i], index: i, nulls: uint64(m.nullRate(i) * (1 << 32)), streamKey: key(seed, model, uint64(i)),
			zipf: z,
		}
		switch dense := i - 1; {
		case i == 0:
			c.kind = labelColumn
		case dense < m.Dense && m.Text && m.Coverage == 0:
			c.kind, c.bits = floatColumn, uint(2+2*dense) // Criteo's numbers are whole
		case dense < m.Dense && (m.Lists || m.Text):
			c.kind = floatColumn
		case dense < m.Dense:
			c.kind, c.bits = intColumn, uint(2+2*dense)
		case m.Lists:
			c.kind = listColumn
		case m.Text:
			c.kind = hexColumn
		default:
			c.kind = idColumn
		}
		cols[i] = c
	}
	return cols
}

// Definition levels of listColumn.
const (
	levelNull  = 0 // no list
	levelEmpty = 1 // a list without ids
	levelID    = 3 // an id; 2 would be a null id, which this package does not make
)

// appendRows appends rows [from, to) of a block, as the Parquet writer takes them.
func (c *column) appendRows(dst []parquet.Value, block uint64, from, to int) []parquet.Value {
	if c.features != nil {
		return c.appendMap(dst, block, from, to)
	}
	s := stream(key(c.streamKey, block))
	pair := uint64(maxLength + 1) // the length that the next list completes; above maxLength: none
	for r := range to {
		emit := r >= from
		if c.kind == labelColumn {
			v := int32(0)
			if s.next()>>59 == 0 {
				v = 1
			}
			if emit {
				dst = append(dst, parquet.Int32Value(v).Level(0, 0, c.index))
			}
			continue
		}
		if s.next()>>32 < c.nulls {
			if emit {
				dst = append(dst, parquet.NullValue().Level(0, levelNull, c.index))
			}
			continue
		}
		switch c.kind {
		case intColumn:
			if v := c.integer(&s); emit {
				dst = append(dst, parquet.Int32Value(v).Level(0, 1, c.index))
			}
		case floatColumn:
			if v := c.float(&s); emit {
				dst = append(dst, parquet.FloatValue(v).Level(0, 1, c.index))
			}
		case idColumn:
			if v := c.id(&s); emit {
				dst = append(dst, parquet.Int64Value(v).Level(0, 1, c.index))
			}
		case hexColumn:
			if v := c.id(&s); emit {
				dst = append(dst, parquet.ByteArrayValue(hexDigits(uint32(v))).Level(0, 1, c.index))
			}
		case listColumn:
			n := maxLength - pair
			if pair > maxLength {
				n = (s.next() >> 32) * (maxLength + 1) >> 32
				pair = n
			} else {
				pair = maxLength + 1
			}
			if n == 0 && emit {
				dst = append(dst, parquet.NullValue().Level(0, levelEmpty, c.index))
			}
			for i := range n {
				rep := 0
				if i > 0 {
					rep = 1
				}
				if v := c.id(&s); emit {
					dst = append(dst, parquet.Int64Value(v).Level(rep, levelID, c.index))
				}
			}
		}
	}
	return dst
}

// integer is -1 in one case of 64, else spread evenly over magnitudes.
func (c *column) integer(s *stream) int32 {
	r := s.next()
	if r>>58 == 0 {
		return -1
	}
	bits := (r & 0xffffffff) * uint64(c.bits+1) >> 32
	return int32(s.next() & (1<<bits - 1))
}

// float is 100 u/(1-u), with its sign turned in one case of 64; or a whole number.
func (c *column) float(s *stream) float32 {
	if c.bits > 0 {
		return float32(c.integer(s))
	}
	r := s.next()
	u := float64(float64(r>>11) * (1.0 / (1 << 53))) // exact
	v := float32(float64(100*u) / (1 - u))
	if r&63 == 0 {
		v = -v
	}
	return v
}

// hexDigits returns the eight hexadecimal digits of a number.
func hexDigits(v uint32) []byte {
	return hex.AppendEncode(nil, binary.BigEndian.AppendUint32(nil, v))
}

// id is a rank of the Zipf distribution, scattered.
func (c *column) id(s *stream) int64 { return int64(scatter(c.zipf.draw(s)-1, c.streamKey)) }
