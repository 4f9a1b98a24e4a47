package program

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// String renders the program for people and for golden tests: a line for the source, one for each column, one for
// each sink with its chain, one for the output. Long lists of borders are shown by their ends.
func (p *Program) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "source %v", p.Source)
	if p.Source == CriteoTSV {
		fmt.Fprintf(&b, ", label field %t, malformed rows %v", p.Label, p.Malformed)
	}
	b.WriteByte('\n')
	graphs, graphStart := 0, 0
	for i := range p.Columns {
		c := &p.Columns[i]
		kind := c.Kind.String()
		if c.List {
			kind = "list<" + kind + ">"
		}
		fmt.Fprintf(&b, "column %d %q %s", i, c.Name, kind)
		if part := c.LeafPart(); part != NoPart {
			fmt.Fprintf(&b, " map %v", part)
		}
		if p.Source != Parquet {
			fmt.Fprintf(&b, " field %d", c.Field)
		}
		if c.Absent {
			b.WriteString(" may be absent")
		}
		if c.FitsInt64 {
			b.WriteString(" fits int64")
		}
		switch c.Reading {
		case ReadValues:
			b.WriteString(" by annotation")
		case ReadSeconds:
			b.WriteString(" by annotation in seconds")
		}
		b.WriteByte('\n')
		keys := Int64 // of the map whose values the column has
		if p.textKeys(i) {
			keys = Bytes
		}
		for _, k := range c.Picks {
			if c.Part != MapValues {
				fmt.Fprintf(&b, "  [%s] scored %t\n", k.keyString(keys), k.Scored)
			}
		}
		for j := range c.Sinks {
			b.WriteString("  ")
			if j < len(c.Picks) {
				fmt.Fprintf(&b, "[%s] ", c.Picks[j].keyString(keys))
				if c.Picks[j].Scored {
					b.WriteString("scored ")
				}
			}
			b.WriteString(c.Sinks[j].chainString(c.Kind) + "\n")
		}
		if c.Part == GraphFirst {
			graphStart = i
		}
		if i == graphStart+p.Parts(graphStart)-1 && p.Columns[graphStart].Part == GraphFirst && graphs < len(p.Graphs) {
			p.Graphs[graphs].write(&b, p.Columns[graphStart:i+1])
			graphs++
		}
	}
	for i := range p.LookupTables {
		t := &p.LookupTables[i]
		form := "in an array of"
		if t.Hashed {
			form = "hashed in"
		}
		fmt.Fprintf(&b, "lookup table %d: %d keys %s %d entries at byte %d\n", i, t.Keys, form, t.Entries, t.Offset)
	}
	o := p.Output
	fmt.Fprintf(&b, "output label %t, dense %d, keys %d, ids %v, fixed %t", o.Label, o.Dense, o.Keys, o.IDs, o.Fixed)
	if o.DenseType != DenseFloat32 {
		fmt.Fprintf(&b, ", dense type %v", o.DenseType)
	}
	if o.Weights {
		b.WriteString(", weights")
	}
	b.WriteByte('\n')
	return b.String()
}

// chainString writes the sink's place and chain, which begins with a kind, on one line.
func (s *Sink) chainString(kind Kind) string {
	var b strings.Builder
	if s.To == ToLabel {
		b.WriteString("label:")
	} else {
		fmt.Fprintf(&b, "%v %d:", s.To, s.Index)
	}
	writeOps(&b, s.Ops, kind, false)
	if s.Refuses != RefusesNothing {
		fmt.Fprintf(&b, " refuses %v", s.Refuses)
	}
	return b.String()
}

// writeOps writes a chain that begins with a kind, and returns the kind that it yields. behind says that the chain
// follows another operator.
func writeOps(b *strings.Builder, ops []Op, kind Kind, behind bool) Kind {
	for i, op := range ops {
		if i > 0 || behind {
			b.WriteString(" |")
		}
		b.WriteByte(' ')
		b.WriteString(opString(op, kind))
		if !isNil(op) {
			kind = op.Out(kind)
		}
	}
	return kind
}

// write writes a graph: a line a step and a line a sink. Values are named by the numbers of columns and steps.
func (g *Graph) write(b *strings.Builder, columns []Column) {
	values := make([]ValueType, 0, len(columns)+len(g.Steps))
	for _, v := range GraphValues(columns) {
		values = append(values, v.Type)
	}
	typeOf := func(n uint32) (v ValueType) {
		if int(n) < len(values) {
			v = values[n]
		}
		return v
	}
	for i := range g.Steps {
		s := &g.Steps[i]
		fmt.Fprintf(b, "  value %d = %v:", len(values), s.Inputs)
		var inputs []ValueType
		for _, n := range s.Inputs {
			inputs = append(inputs, typeOf(n))
		}
		var v ValueType
		if s.Combine != nil {
			v, _ = s.Combine.Yield(inputs)
			b.WriteString(" " + combinerString(s.Combine))
		} else if len(inputs) > 0 {
			v = inputs[0]
		}
		v.Kind = writeOps(b, s.Ops, v.Kind, s.Combine != nil)
		fmt.Fprintf(b, " -> %v\n", v)
		values = append(values, v)
	}
	for i := range g.Sinks {
		s := &g.Sinks[i]
		scored := ""
		if s.Scored {
			scored = "scored "
		}
		fmt.Fprintf(b, "  value %d to %s%s\n", s.Value, scored, s.Sink.chainString(typeOf(s.Value).Kind))
	}
}

func combinerString(c Combiner) string {
	switch o := c.(type) {
	case Cartesian:
		return fmt.Sprintf("cartesian max_length %d overflow %v", o.MaxLength, o.Overflow)
	case ComputeScore:
		text := "compute_score " + o.Function.String()
		if o.ZeroNorm != ZeroNormFail {
			text += " zero norm " + o.ZeroNorm.String()
		}
		return text
	case HashCross:
		return fmt.Sprintf("hash_cross %d", o.Buckets)
	case Wasm:
		return "wasm " + o.String()
	}
	return c.Unit().String()
}

func opString(op Op, kind Kind) string {
	switch o := op.(type) {
	case nil:
		return "nil"
	case FillNull:
		if kind == Int64 {
			return fmt.Sprintf("fill_null %d", o.Int)
		}
		return fmt.Sprintf("fill_null %v", o.Float)
	case Clamp:
		if kind == Int64 {
			return fmt.Sprintf("clamp %s..%s", boundString(o.IntLo), boundString(o.IntHi))
		}
		return fmt.Sprintf("clamp %v..%v", o.FloatLo, o.FloatHi)
	case Log:
		return fmt.Sprintf("log +%v", o.Add)
	case *Bucketize:
		if o == nil {
			return "nil"
		}
		return fmt.Sprintf("bucketize %s side %v nan %v", bordersString(o), o.Side, o.NaN)
	case SigridHash:
		return fmt.Sprintf("sigrid_hash salt %d max %d", o.Salt, o.Max)
	case PositiveModulus:
		return fmt.Sprintf("positive_modulus %d", o.M)
	case OneHot:
		if o.Ranges {
			return fmt.Sprintf("onehot %d from %v to %v", o.Classes, o.Lower, o.Upper)
		}
		return fmt.Sprintf("onehot %d", o.Classes)
	case Lookup:
		return o.String()
	case HashBucket:
		return fmt.Sprintf("hash_bucket %d", o.Buckets)
	case FirstX:
		return fmt.Sprintf("firstx %d", o.N)
	case Convert:
		return fmt.Sprintf("convert %v", o.To)
	case NGram:
		if o.Mode != NGramFold {
			return fmt.Sprintf("ngram %d mode %v", o.N, o.Mode)
		}
		return fmt.Sprintf("ngram %d", o.N)
	case HashBytes:
		return fmt.Sprintf("hash_bytes %v", o.Function)
	case *LocalHour:
		if o == nil {
			return "nil"
		}
		return fmt.Sprintf("get_local_hour from %s offsets %s", shortenBorders(o.Starts), shortenBorders(o.Offsets))
	case *MapID:
		switch {
		case o == nil:
			return "nil"
		case len(o.Keys) == 0:
			return fmt.Sprintf("map_id %s default %d", shortenBorders(o.Values), o.Default)
		}
		return fmt.Sprintf("map_id %s to %s default %d", shortenBorders(o.Keys), shortenBorders(o.Values), o.Default)
	case Rescale:
		return fmt.Sprintf("rescale %d/%d", o.Multiplier, o.Divisor)
	case FixedLength:
		if o.Pads {
			return fmt.Sprintf("fixed_length %d, filled up with %v", o.Length, o.Pad)
		}
		return fmt.Sprintf("fixed_length %d", o.Length)
	case Int96Time:
		return fmt.Sprintf("int96_time %v", o.To)
	case Decimal:
		return fmt.Sprintf("decimal scale %d to %v", o.Scale, o.To)
	case Logit:
		return fmt.Sprintf("logit eps %v", o.Eps)
	case ListSlice:
		text := fmt.Sprintf("list_slice %d..%s", o.Start, boundString(o.End))
		switch {
		case o.Padded && kind == Int64:
			text += fmt.Sprintf(" pad %d", o.PadInt)
		case o.Padded:
			text += fmt.Sprintf(" pad %v", o.PadFloat)
		}
		return text
	case FillNaN:
		return fmt.Sprintf("fill_nan %v", o.Value)
	case Normalize:
		return fmt.Sprintf("normalize mean %v deviation %v", o.Mean, o.Deviation)
	case MinMax:
		return fmt.Sprintf("min_max %v..%v", o.Min, o.Max)
	case BoxCox:
		return fmt.Sprintf("box_cox lambda1 %v lambda2 %v mode %v", o.Lambda1, o.Lambda2, o.Mode)
	}
	return op.Unit().String()
}

// boundString renders an integer, and the least and the greatest int64 as min and max.
func boundString(x int64) string {
	switch x {
	case math.MinInt64:
		return "min"
	case math.MaxInt64:
		return "max"
	}
	return strconv.FormatInt(x, 10)
}

func bordersString(b *Bucketize) string {
	switch {
	case len(b.Borders32) > 0:
		return "float32 " + shortenBorders(b.Borders32)
	case len(b.Borders64) > 0:
		return "float64 " + shortenBorders(b.Borders64)
	default:
		return "int64 " + shortenBorders(b.BordersInt)
	}
}

// shortenBorders renders up to four borders, or the number of borders with the first two and the last.
func shortenBorders[T any](v []T) string {
	if len(v) <= 4 {
		return fmt.Sprint(v)
	}
	return fmt.Sprintf("%d[%v %v .. %v]", len(v), v[0], v[1], v[len(v)-1])
}
