package rtl

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"

	"github.com/millrace/millrace/fpga/unit/bucketize"
	"github.com/millrace/millrace/fpga/unit/sigridhash"
)

// Write is one write of a register or of a table's entry.
type Write struct {
	Address uint16
	Data    uint64
}

// Setup is what the host writes before a column: the unit, and its registers and tables.
type Setup struct {
	Unit   string
	Writes []Write
}

// ErrNotInRTL says that no unit of this package does what a step of a program or a page asks for. *NotInRTLError is
// such an error.
var ErrNotInRTL = errors.New("not in RTL")

// NotInRTLError says what a unit of this package lacks of what an operator or a page asks for.
type NotInRTLError struct {
	Unit string
	What string // what the unit lacks, and what it has
}

// Error names the unit and what it lacks.
func (e *NotInRTLError) Error() string {
	return fmt.Sprintf("rtl: the unit %s %s; use another engine", e.Unit, e.What)
}

// Is reports whether target is ErrNotInRTL.
func (e *NotInRTLError) Is(target error) bool { return target == ErrNotInRTL }

// SigridHash returns the setup of unit sigrid_hash. The largest max that the unit has is 2^32 - 1.
func SigridHash(p sigridhash.Params) (Setup, error) {
	divisor, err := divisorWrites("sigrid_hash", p.Max, 1)
	if err != nil {
		return Setup{}, err
	}
	return Setup{Unit: "sigrid_hash", Writes: append([]Write{{Address: 0, Data: uint64(p.Salt)}}, divisor...)}, nil
}

// PositiveModulus returns the setup of unit positive_modulus. The largest modulus that the unit has is 2^32 - 1.
func PositiveModulus(modulus int64) (Setup, error) {
	divisor, err := divisorWrites("positive_modulus", modulus, 0)
	if err != nil {
		return Setup{}, err
	}
	return Setup{Unit: "positive_modulus", Writes: divisor}, nil
}

// divisorWrites returns the writes of a floor modulus: divisor, reciprocal and shift, from an address on.
func divisorWrites(unit string, divisor int64, address uint16) ([]Write, error) {
	if divisor < 1 || divisor > math.MaxUint32 {
		return nil, &NotInRTLError{Unit: unit,
			What: fmt.Sprintf("divides by 1 to %d, and not by %d", uint32(math.MaxUint32), divisor)}
	}
	writes := []Write{{Address: address, Data: uint64(divisor)}, {Address: address + 1}, {Address: address + 2}}
	if divisor > 1 {
		width := bits.Len64(uint64(divisor) - 1) // ceil(log2 divisor)
		reciprocal, rest := bits.Div64(1<<(width-1), 0, uint64(divisor))
		if rest != 0 {
			reciprocal++
		}
		writes[1].Data, writes[2].Data = reciprocal, uint64(width-1)
	}
	return writes, nil
}

// FillNull returns the setup of unit fill_null. The fill is the bits of the value, of any kind.
func FillNull(fill uint64) Setup {
	return Setup{Unit: "fill_null", Writes: []Write{{Address: 0, Data: fill}}}
}

// HexToInt returns the setup of unit hex_to_int. In a nullable column an empty token is a null; in others it is
// damaged.
func HexToInt(nullable bool) Setup {
	write := Write{Address: 0}
	if nullable {
		write.Data = 1
	}
	return Setup{Unit: "hex_to_int", Writes: []Write{write}}
}

// HexToken returns the words of a transfer to unit hex_to_int: a token, and whether its row is present.
func HexToken(token []byte, present bool) []uint64 {
	const presentBit = 1 << 4 // behind the length
	var first [8]byte
	copy(first[:], token)
	words := []uint64{binary.LittleEndian.Uint64(first[:]), uint64(min(len(token), len(first)+1))}
	if present {
		words[1] |= presentBit
	}
	return words
}

// maxHybridWidth is the greatest number of bits of a value of unit hybrid_decoder, and of Parquet's encoding.
const maxHybridWidth = 32

// HybridDecoder returns the setup of unit hybrid_decoder for a section of count values of width bits, each at most
// limit: the greatest level, or the dictionary's last index. No limit lets a value have more bits than width.
func HybridDecoder(width uint, limit, count uint32) (Setup, error) {
	if width > maxHybridWidth {
		return Setup{}, &NotInRTLError{Unit: "hybrid_decoder",
			What: fmt.Sprintf("takes values of 0 to %d bits, and not of %d", maxHybridWidth, width)}
	}
	return Setup{Unit: "hybrid_decoder", Writes: []Write{{Address: 0, Data: uint64(width)},
		{Address: 1, Data: min(uint64(limit), 1<<width-1)}, {Address: 2, Data: uint64(count)}}}, nil
}

// SectionTransfers returns the words of the transfers of a section's bytes to units hybrid_decoder and plain_decoder.
func SectionTransfers(section []byte) []uint64 {
	const (
		beat      = 32 // bytes
		beatWords = 4  // behind which there are the number of bytes and whether the beat is the last
		lastBit   = 1 << 6
	)
	var words []uint64
	for {
		var data [beat]byte
		n := copy(data[:], section)
		section = section[n:]
		for at := range beatWords {
			words = append(words, binary.LittleEndian.Uint64(data[8*at:]))
		}
		if len(section) == 0 {
			return append(words, uint64(n)|lastBit)
		}
		words = append(words, uint64(n))
	}
}

// HybridValues returns the values in the words of a result of unit hybrid_decoder, and whether the result is the last
// of its section and the section is damaged so far.
func HybridValues(result []uint64) (values []uint32, last, damaged bool) {
	tags := result[4]
	for lane := range tags & 15 {
		values = append(values, uint32(result[lane/2]>>(32*(lane%2))))
	}
	return values, tags&(1<<4) != 0, tags&(1<<5) != 0
}

// Log returns the setup of unit log: the logarithm of the sum with add.
func Log(add float32) Setup {
	return Setup{Unit: "log", Writes: []Write{{Address: 0, Data: uint64(math.Float32bits(add))}}}
}

// IntToFloat returns the setup of unit int_to_float, which has no registers.
func IntToFloat() Setup { return Setup{Unit: "int_to_float"} }

// ClampInt64 returns the setup of unit clamp for integers.
func ClampInt64(least, greatest int64) Setup {
	return Setup{Unit: "clamp", Writes: []Write{
		{Address: 0, Data: 0}, {Address: 1, Data: uint64(least)}, {Address: 2, Data: uint64(greatest)}}}
}

// ClampFloat32 returns the setup of unit clamp for float32. Neither limit is a NaN.
func ClampFloat32(least, greatest float32) Setup {
	return Setup{Unit: "clamp", Writes: []Write{{Address: 0, Data: 1},
		{Address: 1, Data: uint64(math.Float32bits(least))}, {Address: 2, Data: uint64(math.Float32bits(greatest))}}}
}

// The form of unit bucketize: treeBorders borders lie in a tree of treeLevels levels, one more in a register.
const (
	treeLevels    = 12
	treeBorders   = 1<<treeLevels - 1
	severalBit    = 4096
	lastBorder    = 4097
	duplicateFlag = 1 << 32
)

// Bucketize returns the setup of unit bucketize, which compares float32 with at most 4096 borders that do not decrease.
func Bucketize(p bucketize.Params) (Setup, error) {
	borders := p.Borders
	lacks := func(format string, args ...any) (Setup, error) {
		return Setup{}, &NotInRTLError{Unit: "bucketize", What: fmt.Sprintf(format, args...)}
	}
	switch {
	case p.Side != bucketize.SideLeft || p.NaN != bucketize.NaNTorchArrow || p.Compare != bucketize.CompareFloat32:
		return lacks("has side left, nan torcharrow and compare float32 only")
	case len(borders) < 1 || len(borders) > treeBorders+1:
		return lacks("has 1 to %d borders of float32, and not %d", treeBorders+1, len(borders))
	}
	for i := range borders {
		if borders[i] != borders[i] || i > 0 && borders[i] < borders[i-1] {
			return Setup{}, bucketize.ErrBorders
		}
	}
	setup := Setup{Unit: "bucketize", Writes: []Write{{Address: severalBit}, {Address: lastBorder}}}
	if len(borders) > 1 {
		setup.Writes[0].Data = 1
	}
	if len(borders) > treeBorders {
		setup.Writes[1].Data = 1<<32 | uint64(orderOf(borders[treeBorders]))
	}
	for level := range treeLevels {
		for node := range 1 << level {
			// The node's place among the sorted borders, since the tree is complete.
			place := (2*node+1)<<(treeLevels-1-level) - 1
			entry := uint64(math.MaxUint32)
			if place < len(borders) {
				entry = uint64(orderOf(borders[place]))
				if place > 0 && borders[place-1] == borders[place] ||
					place+1 < len(borders) && borders[place+1] == borders[place] {
					entry |= duplicateFlag
				}
			}
			setup.Writes = append(setup.Writes, Write{Address: uint16(1<<level + node), Data: entry})
		}
	}
	return setup, nil
}

// orderOf returns an unsigned number whose order is that of the float; both zeros have the same.
func orderOf(v float32) uint32 {
	const sign = 1 << 31
	b := math.Float32bits(v)
	switch {
	case v == 0:
		return sign
	case b&sign != 0:
		return ^b
	}
	return b ^ sign
}
