package program

import (
	"fmt"
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
		if p.TextKeys(i) {
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
		b.WriteString(operatorText(op, kind))
		if !IsNil(op) {
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
			b.WriteString(" " + operatorText(s.Combine, 0))
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
