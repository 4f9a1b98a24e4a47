package program

import (
	"fmt"
	"slices"
)

// unitName is the name of a unit, and the version that this build writes and reads.
type unitName struct {
	name    string
	version uint16
}

// decodingUnits are the units that are not operators.
var decodingUnits = map[Unit]unitName{
	UnitParquet: {"parquet", 1},
	UnitText:    {"text", 1},
	UnitMap:     {"map", 1},
}

// known returns the name of a unit; ok is false if this build does not know the unit.
func (u Unit) known() (n unitName, ok bool) {
	if n, ok = operatorUnits[u]; !ok {
		n, ok = decodingUnits[u]
	}
	return n, ok
}

// Version returns the version of the unit that this build knows; 0 when it does not know the unit.
func (u Unit) Version() uint16 {
	n, _ := u.known()
	return n.version
}

// String returns the operator's name as pipelines write it.
func (u Unit) String() string {
	if n, ok := u.known(); ok {
		return n.name
	}
	return fmt.Sprintf("unit(%d)", uint16(u))
}

// UnitRef is a unit at a version. A program wants such units, and an image offers them.
type UnitRef struct {
	Unit    Unit
	Version uint16
}

// Known returns every unit of this build, in order of its number. A stock image offers them.
func Known() []UnitRef {
	refs := make([]UnitRef, 0, len(operatorUnits)+len(decodingUnits))
	for _, of := range []map[Unit]unitName{operatorUnits, decodingUnits} {
		for u, n := range of {
			refs = append(refs, UnitRef{u, n.version})
		}
	}
	sortUnits(refs)
	return refs
}

// Units returns the units that the program wants, the decoding unit of its source included, each once, in order of
// their numbers. An image that lacks one of them cannot run the program.
func (p *Program) Units() []UnitRef {
	decode := UnitParquet
	if p.Source != Parquet {
		decode = UnitText
	}
	refs := []UnitRef{{decode, decode.Version()}}
	if p.HasMaps() {
		refs = append(refs, UnitRef{UnitMap, UnitMap.Version()})
	}
	add := func(u Unit) {
		if ref := (UnitRef{u, u.Version()}); !slices.Contains(refs, ref) {
			refs = append(refs, ref)
		}
	}
	p.ForEachOp(func(op Op) { add(op.Unit()) })
	for i := range p.Graphs {
		for j := range p.Graphs[i].Steps {
			if c := p.Graphs[i].Steps[j].Combine; c != nil {
				add(c.Unit())
			}
		}
	}
	sortUnits(refs)
	return refs
}

// ForEachOp calls f for every operator of one input, in the order of the wire form.
func (p *Program) ForEachOp(f func(Op)) {
	each := func(ops []Op) {
		for _, op := range ops {
			f(op)
		}
	}
	for i := range p.Columns {
		for j := range p.Columns[i].Sinks {
			each(p.Columns[i].Sinks[j].Ops)
		}
	}
	for i := range p.Graphs {
		for j := range p.Graphs[i].Steps {
			each(p.Graphs[i].Steps[j].Ops)
		}
		for j := range p.Graphs[i].Sinks {
			each(p.Graphs[i].Sinks[j].Sink.Ops)
		}
	}
}

func sortUnits(refs []UnitRef) {
	slices.SortFunc(refs, func(a, b UnitRef) int { return int(a.Unit) - int(b.Unit) })
}
