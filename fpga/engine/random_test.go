package engine_test

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/millrace/millrace/fpga/operator/boxcox"
	"github.com/millrace/millrace/fpga/operator/bucketize"
	"github.com/millrace/millrace/fpga/operator/cast"
	"github.com/millrace/millrace/fpga/operator/clamp"
	"github.com/millrace/millrace/fpga/operator/convert"
	decimalop "github.com/millrace/millrace/fpga/operator/decimal"
	"github.com/millrace/millrace/fpga/operator/fillnan"
	"github.com/millrace/millrace/fpga/operator/fillnull"
	"github.com/millrace/millrace/fpga/operator/firstx"
	"github.com/millrace/millrace/fpga/operator/fixedlength"
	"github.com/millrace/millrace/fpga/operator/float16"
	"github.com/millrace/millrace/fpga/operator/getlocalhour"
	"github.com/millrace/millrace/fpga/operator/hashbucket"
	"github.com/millrace/millrace/fpga/operator/hashbytes"
	"github.com/millrace/millrace/fpga/operator/hextoint"
	"github.com/millrace/millrace/fpga/operator/int96time"
	"github.com/millrace/millrace/fpga/operator/listslice"
	"github.com/millrace/millrace/fpga/operator/log"
	"github.com/millrace/millrace/fpga/operator/logit"
	"github.com/millrace/millrace/fpga/operator/mapid"
	"github.com/millrace/millrace/fpga/operator/maptext"
	"github.com/millrace/millrace/fpga/operator/minmax"
	"github.com/millrace/millrace/fpga/operator/ngram"
	"github.com/millrace/millrace/fpga/operator/normalize"
	"github.com/millrace/millrace/fpga/operator/onehot"
	"github.com/millrace/millrace/fpga/operator/positivemodulus"
	"github.com/millrace/millrace/fpga/operator/rescale"
	"github.com/millrace/millrace/fpga/operator/sigridhash"
	"github.com/millrace/millrace/fpga/operator/texttoint"
	"github.com/millrace/millrace/fpga/operator/texttoseconds"
	"github.com/millrace/millrace/fpga/operator/unsignedmodulus"
	"github.com/millrace/millrace/fpga/operator/zeroextend"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
)

// randomColumns makes columns of n rows.
func randomColumns(rng *rand.Rand, columns, n int) []testColumn {
	cols := make([]testColumn, columns)
	kinds := []format.Type{format.Boolean, format.Int32, format.Int64, format.Float, format.Double, format.ByteArray,
		format.Int96, format.FixedLenByteArray}
	for i := range cols {
		c := &cols[i]
		*c = testColumn{
			name: fmt.Sprintf("c%02d", i), physical: kinds[rng.IntN(len(kinds))], list: rng.IntN(3) == 0,
			optional: rng.IntN(2) == 0, elements: rng.IntN(2) == 0,
			encoding: []string{"", "dictionary"}[rng.IntN(2)],
			codec:    []string{"", "", "snappy", "gzip", "zstd", "lz4"}[rng.IntN(6)],
		}
		if c.list {
			c.within = max(0, rng.IntN(4)-1)
		}
		if rng.IntN(4) == 0 {
			switch c.physical {
			case format.Int32:
				c.unsigned = 32
			case format.Int64:
				c.unsigned = 64
			case format.ByteArray:
				switch rng.IntN(3) {
				case 0:
					c.text = true
				case 1:
					c.numbers = "text_to_int"
				case 2:
					c.numbers = "text_to_seconds"
				}
			case format.Float:
				c.widens = true
			}
		}
		few := rng.IntN(2) == 0 // repeat values, so that dictionaries are short
		nulls := rng.IntN(3)    // none, some, many
		mean := 1 + rng.IntN(8)
		c.rows = make([]any, n)
		for r := range c.rows {
			c.rows[r] = c.random(rng, few, nulls, mean)
		}
	}
	return cols
}

func (c *testColumn) random(rng *rand.Rand, few bool, nulls, mean int) any {
	null := func(may bool) bool { return may && nulls > 0 && rng.IntN(4) < nulls }
	if null(c.optional) {
		return nil
	}
	if !c.list {
		return c.randomValue(rng, few)
	}
	list := make([]any, rng.IntN(2*mean))
	for i := range list {
		if !(c.elements && nulls > 0 && rng.IntN(12) < nulls) {
			list[i] = c.randomValue(rng, few)
		}
	}
	return list
}

func (c *testColumn) randomValue(rng *rand.Rand, few bool) any {
	v := int64(rng.Uint64()) >> rng.IntN(64)
	if few {
		v = int64(rng.IntN(20))
	}
	switch c.physical {
	case format.Boolean:
		return v & 1
	case format.Int32:
		return int64(int32(v))
	case format.Int64:
		return v
	case format.Float:
		if rng.IntN(50) == 0 {
			return []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Copysign(0, -1)),
				1e-42}[rng.IntN(4)]
		}
		return float32(v) / 8
	case format.Double:
		if rng.IntN(50) == 0 {
			return []float64{math.NaN(), math.Inf(-1), math.Copysign(0, -1), 1e-310, 1e300}[rng.IntN(5)]
		}
		return float64(v) / 8
	}
	switch c.physical {
	case format.Int96:
		return binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint64(nil, uint64(v)), uint32(v>>5))
	case format.FixedLenByteArray:
		return binary.LittleEndian.AppendUint16(nil, uint16(v))
	}
	if rng.IntN(20) == 0 {
		return []byte{}
	}
	switch {
	case c.text:
		return randomCategory(rng, few)
	case c.numbers == "text_to_int":
		return []byte(fmt.Sprintf([]string{"%d", "%+d", "%020d"}[rng.IntN(3)], v))
	case c.numbers == "text_to_seconds":
		at := time.Unix(v%(1<<35), int64(rng.IntN(1e9))).UTC()
		forms := []string{time.DateOnly, time.DateTime, time.RFC3339Nano, "2006-01-02 15:04:05-0700"}
		return []byte(at.Format(forms[rng.IntN(len(forms))]))
	}
	return []byte(fmt.Sprintf("%x", uint32(v)))
}

// randomCategory returns any bytes, few different ones if that is wanted.
func randomCategory(rng *rand.Rand, few bool) []byte {
	if few {
		return fmt.Appendf(nil, "catégorie %d", rng.IntN(20))
	}
	b := make([]byte, rng.IntN(1<<rng.IntN(10)))
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

// oneHotAtTimes makes classes of the values of some dense sinks, and returns how many columns a sink has.
func oneHotAtTimes(rng *rand.Rand, c *testColumn, s *program.Sink) uint32 {
	classes := uint32(1 + rng.IntN(20))
	switch rng.IntN(8) {
	case 0:
		s.Ops = append(s.Ops, onehot.Op{Classes: classes, Ranges: true, Lower: -3, Upper: rng.Float32() * 50})
	case 1:
		s.Ops = append(randomChain(rng, c, program.Int64, false, false), onehot.Op{Classes: classes})
	default:
		return 1
	}
	return classes
}

// randomProgram makes a valid program over the columns. If risky, the program may refuse some of the data. If pairs,
// a column may feed two keys although lengths are written.
func randomProgram(rng *rand.Rand, cols []testColumn, risky, pairs bool) *program.Program {
	p := &program.Program{Source: program.Parquet}
	p.Output.IDs = program.IDs(rng.IntN(2))
	p.Output.Fixed = rng.IntN(3) == 0
	var rest []program.Column // those that feed no key
	for i := range cols {
		c := &cols[i]
		if c.list && (p.Output.Fixed || rng.IntN(3) == 0) {
			rest = append(rest, randomDenseList(rng, c, &p.Output, risky))
			continue
		}
		pc := program.Column{Name: c.name, Kind: c.kind(), List: c.list,
			FitsInt64: risky && c.kind() == program.Int64 && rng.IntN(2) == 0}
		keys := rng.IntN(2)
		if c.list {
			keys = 1
		} else if rng.IntN(6) == 0 && (pairs || p.Output.Fixed) {
			keys = 2
		}
		for range keys {
			ops := randomChain(rng, c, program.Int64, p.Output.Fixed, risky)
			if p.Output.IDs == program.IDs32 {
				ops = append(ops, positivemodulus.Op{M: 1 << 31})
			}
			pc.Sinks = append(pc.Sinks, program.Sink{To: program.ToSparse, Index: p.Output.Keys, Ops: ops})
			p.Output.Keys++
		}
		if !c.list {
			for rng.IntN(2) == 0 || len(pc.Sinks) == 0 {
				s := program.Sink{To: program.ToDense, Index: p.Output.Dense,
					Ops: randomChain(rng, c, program.Float32, true, risky)}
				if !p.Output.Label && rng.IntN(5) == 0 {
					s.To, s.Index, p.Output.Label = program.ToLabel, 0, true
				} else {
					p.Output.Dense += oneHotAtTimes(rng, c, &s)
				}
				if risky {
					s.Refuses = program.Refusal(rng.IntN(3))
				}
				pc.Sinks = append(pc.Sinks, s)
			}
		}
		rng.Shuffle(len(pc.Sinks), func(a, b int) {
			if pc.Sinks[a].To != program.ToSparse && pc.Sinks[b].To != program.ToSparse {
				pc.Sinks[a], pc.Sinks[b] = pc.Sinks[b], pc.Sinks[a]
			}
		})
		if keys > 0 {
			p.Columns = append(p.Columns, pc)
		} else {
			rest = append(rest, pc)
		}
	}
	p.Columns = append(p.Columns, rest...)
	if p.Output.Dense > 0 {
		p.Output.DenseType = program.DenseType(rng.IntN(2))
	}
	return p
}

// randomChain makes a chain from a column to a kind; full says that the chain must not yield a null.
func randomChain(rng *rand.Rand, c *testColumn, to program.Kind, full, risky bool) []program.Op {
	kind := c.kind()
	var ops []program.Op
	add := func(op program.Op) {
		ops = append(ops, op)
		kind = op.Out(kind)
	}
	toFloat32 := func() {
		if kind == program.Int64 || kind == program.Float64 {
			add(convert.Op{To: program.Float32})
		}
	}
	fill := fillnull.Op{Int: int64(rng.IntN(100)) - 10, Float: float64(rng.IntN(100)) / 3}
	if kind == program.Bytes {
		add(randomReading(rng, c, risky))
	}
	for range rng.IntN(4) {
		switch rng.IntN(20) {
		case 19:
			if kind != program.Bytes {
				add(randomCast(rng, kind, risky))
			}
		case 18:
			if kind == program.Float32 || kind == program.Float64 {
				add(fillnan.Op{Value: float64(rng.IntN(100)) / 4})
			}
		case 16, 17:
			if c.list && kind != program.Bytes {
				add(randomSlice(rng))
			}
		case 15:
			toFloat32()
			add([]program.Op{normalize.Op{Mean: rng.NormFloat64(), Deviation: float64(rng.IntN(3)) / 3},
				minmax.Op{Min: -rng.Float64(), Max: rng.Float64()}, minmax.Op{}}[rng.IntN(3)])
		case 12:
			if kind == program.Int64 {
				add(randomTable(rng))
			}
		case 14:
			if kind == program.Int64 {
				add(randomRescale(rng, risky))
			}
		case 13:
			if kind == program.Int64 {
				add(decimalop.Op{Scale: uint8(rng.IntN(decimalop.MaxScale + 1)),
					To: []program.Kind{program.Float32, program.Float64}[rng.IntN(2)]})
			}
		case 0:
			add(fill)
		case 8:
			if kind == program.Int64 || kind == program.Float32 {
				add(convert.Op{To: program.Float64})
			}
		case 1:
			add(clamp.Op{IntLo: -5, IntHi: 1000, FloatLo: -4, FloatHi: 512})
		case 2:
			toFloat32()
			add(log.Op{Add: float32(rng.IntN(3))})
		case 9:
			toFloat32()
			add(logit.Op{Eps: []float32{-1, 0, 1e-6, 0.1}[rng.IntN(4)]})
		case 11:
			if c.list && kind == program.Int64 {
				add(ngram.Op{N: 1 + rng.Int64N(4), Mode: randomMode(rng, ops)})
			}
		case 10:
			toFloat32()
			add(randomBoxCox(rng))
		case 3:
			if kind != program.Int64 {
				add(randomBuckets(rng, kind, risky))
			}
			add(sigridhash.Op{Salt: int64(rng.IntN(3)), Max: 1 + rng.Int64N(1<<(1+rng.IntN(40)))})
		case 4:
			add(randomBuckets(rng, kind, risky))
		case 5:
			if kind == program.Int64 {
				add([]program.Op{positivemodulus.Op{M: 1 + rng.Int64N(1<<31)},
					unsignedmodulus.Op{M: 1 + rng.Int64N(1<<(1+rng.IntN(40)))},
					hashbucket.Op{Buckets: 1 + rng.Int64N(1<<(1+rng.IntN(40)))}}[rng.IntN(3)])
			}
		case 6:
			if kind == program.Int64 {
				add(zeroextend.Op{})
			}
		case 7:
			if c.list {
				add(firstx.Op{N: int64(rng.IntN(5))})
			}
		}
	}
	switch {
	case to == program.Float32 && kind != program.Float32:
		add(convert.Op{To: program.Float32})
	case to == program.Int64 && kind != program.Int64:
		add(randomBuckets(rng, kind, risky))
	}
	if full && !(risky && rng.IntN(10) == 0) {
		add(fill)
	}
	return ops
}

// randomCast returns a cast of values of a kind; if risky, one that some values fail.
func randomCast(rng *rand.Rand, kind program.Kind, risky bool) cast.Op {
	o := cast.Op{To: cast.Target(rng.IntN(4))}
	if kind == program.Int64 && rng.IntN(2) == 0 {
		o.From = cast.Unsigned
	}
	if o.Out(kind) == 0 {
		o = cast.Op{To: map[program.Kind]cast.Target{program.Int64: cast.Float64, program.Float32: cast.Int64,
			program.Float64: cast.Float64Bits}[kind]}
	}
	if o.To == cast.Int64 && !(risky && rng.IntN(2) == 0) {
		o.Overflow = cast.Null
	}
	return o
}

// randomTable makes an operator with a table: a zone's hours, or a table of ids with keys or without.
func randomTable(rng *rand.Rand) program.Op {
	keys, values := []int64{math.MinInt64}, []int64{rng.Int64N(86400)}
	for range rng.IntN(30) {
		keys, values = append(keys, max(keys[len(keys)-1], -40)+1+rng.Int64N(20)), append(values, rng.Int64N(86400))
	}
	switch rng.IntN(3) {
	case 0:
		return &getlocalhour.Op{Starts: keys, Offsets: values}
	case 1:
		return &mapid.Op{Keys: keys, Values: values, Default: rng.Int64N(3) - 1}
	}
	return &mapid.Op{Values: values, Default: rng.Int64N(3) - 1}
}

// randomDenseList returns a column that makes dense columns of a list: as long as the longest list, or, if risky, of
// any length.
func randomDenseList(rng *rand.Rand, c *testColumn, out *program.Output, risky bool) program.Column {
	longest := 1
	for _, row := range c.rows {
		if list, ok := row.([]any); ok {
			longest = max(longest, len(list))
		}
	}
	ops := randomChain(rng, c, program.Float32, false, risky)
	for _, op := range ops {
		if slice, ok := op.(listslice.Op); ok && slice.Padded {
			length, _ := slice.Length() // randomSlice pads what has a length
			longest = max(longest, int(length))
		}
		if windows, ok := op.(ngram.Op); ok && windows.Mode == ngram.RAP {
			longest *= int(windows.N)
		}
	}
	fixed := fixedlength.Op{Length: uint32(longest), Pads: true, Pad: float32(rng.IntN(5)) / 3}
	switch {
	case risky && rng.IntN(3) == 0:
		fixed = fixedlength.Op{Length: 1 + rng.Uint32N(3)}
	case rng.IntN(2) == 0:
		fixed.Length = 1 + rng.Uint32N(4)
		ops = append(ops, firstx.Op{N: int64(fixed.Length)})
	}
	s := program.Sink{To: program.ToDense, Index: out.Dense, Ops: append(ops, fixed)}
	if risky {
		s.Refuses = program.Refusal(rng.IntN(2))
	}
	out.Dense += fixed.Length
	return program.Column{Name: c.name, Kind: c.kind(), List: true, Sinks: []program.Sink{s}}
}

// randomReading returns an operator that makes numbers of a column of bytes.
func randomReading(rng *rand.Rand, c *testColumn, risky bool) program.Op {
	if (c.text || c.physical == format.ByteArray) && rng.IntN(3) == 0 {
		return randomTextTable(rng, c, risky)
	}
	hash := hashbytes.Op{Function: hashbytes.Function(rng.IntN(3))}
	decimal := decimalop.Op{Scale: uint8(rng.IntN(decimalop.MaxScale + 1)),
		To: []program.Kind{program.Float32, program.Float64}[rng.IntN(2)]}
	if rng.IntN(3) == 0 {
		decimal = decimalop.Op{To: program.Int64}
	}
	switch {
	case c.text && !risky, rng.IntN(3) == 0:
		return hash
	case c.numbers == "text_to_int":
		return texttoint.Op{}
	case c.numbers == "text_to_seconds":
		return texttoseconds.Op{Assumes: !risky || rng.IntN(4) > 0}
	case risky && c.physical == format.ByteArray && rng.IntN(4) == 0:
		return []program.Op{texttoint.Op{}, texttoseconds.Op{Assumes: true, Offset: 3600}}[rng.IntN(2)]
	case c.physical == format.Int96:
		return int96time.Op{To: int96time.TimeUnit(rng.IntN(2))}
	case c.physical == format.FixedLenByteArray && rng.IntN(2) == 0:
		return float16.Op{}
	case c.physical == format.FixedLenByteArray, c.text, risky && rng.IntN(3) == 0:
		return decimal // of text that is empty or long an error
	}
	return hextoint.Op{}
}

// randomTextTable makes a table of some of a column's texts, and of others; if risky, texts that it lacks may fail.
func randomTextTable(rng *rand.Rand, c *testColumn, risky bool) program.Op {
	texts := map[string]bool{"": rng.IntN(2) == 0, "no text of a column": true}
	for range min(len(c.rows), rng.IntN(30)) {
		row := c.rows[rng.IntN(len(c.rows))]
		if list, ok := row.([]any); ok && len(list) > 0 {
			row = list[rng.IntN(len(list))]
		}
		if text, ok := row.([]byte); ok && utf8.Valid(text) && len(text) <= program.MaxTextBytes {
			texts[string(text)] = true
		}
	}
	o := &maptext.Op{Keys: slices.Sorted(maps.Keys(texts)), Unknown: maptext.UnknownDefault, Default: rng.Int64N(3) - 1}
	for range o.Keys {
		o.Values = append(o.Values, rng.Int64N(40)-10)
	}
	if risky && rng.IntN(2) == 0 {
		o.Unknown, o.Default = maptext.Unknown(2*rng.IntN(2)), 0
	}
	return o
}

// randomRescale returns a rescale; if risky, one that large values fail.
func randomRescale(rng *rand.Rand, risky bool) rescale.Op {
	if risky && rng.IntN(2) == 0 {
		return rescale.Op{Multiplier: 1 + rng.Int64N(1<<(1+rng.IntN(40))), Divisor: 1}
	}
	return rescale.Op{Multiplier: 1, Divisor: 1 + rng.Int64N(1<<(1+rng.IntN(40)))}
}

// randomSlice makes a part of lists that may be empty, longer than the lists, or filled up.
func randomSlice(rng *rand.Rand) listslice.Op {
	s := listslice.Op{Start: rng.Int64N(12) - 6, End: rng.Int64N(12) - 6, PadInt: rng.Int64N(9), PadFloat: 0.5}
	if rng.IntN(3) == 0 {
		s.End = listslice.NoEnd
	}
	if _, err := s.Length(); err == nil {
		s.Padded = rng.IntN(2) == 0
	}
	return s
}

func randomBoxCox(rng *rand.Rand) boxcox.Op {
	b := boxcox.Op{Lambda1: []float32{0, 1, 2, 0.5, -1, 0.3}[rng.IntN(6)], Mode: boxcox.Mode(rng.IntN(2))}
	if b.Mode == boxcox.Caffe2 {
		b.Lambda2 = float32(rng.IntN(3))
	}
	return b
}

func randomBuckets(rng *rand.Rand, kind program.Kind, risky bool) *bucketize.Op {
	b := &bucketize.Op{Side: bucketize.Side(rng.IntN(2)), NaN: bucketize.NaN(rng.IntN(3))}
	if risky && rng.IntN(4) == 0 {
		b.NaN = bucketize.NaNError
	}
	at := -float64(rng.IntN(50))
	for range 1 + rng.IntN(20) {
		at += float64(rng.IntN(40)) / 4
		switch kind {
		case program.Int64:
			b.BordersInt = append(b.BordersInt, int64(at))
		case program.Float32:
			b.Borders32 = append(b.Borders32, float32(at))
		default:
			b.Borders64 = append(b.Borders64, at)
		}
	}
	return b
}

// randomMode returns a mode of ngram behind operators: a chain lists windows once.
func randomMode(rng *rand.Rand, ops []program.Op) ngram.Mode {
	if slices.ContainsFunc(ops, func(op program.Op) bool {
		windows, ok := op.(ngram.Op)
		return ok && windows.Mode == ngram.RAP
	}) {
		return ngram.Fold
	}
	return ngram.Mode(rng.IntN(2))
}
