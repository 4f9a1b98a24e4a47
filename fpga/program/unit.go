package program

import (
	"fmt"
	"slices"
)

// units lists every unit that a program may want, with its name and the version that this build writes and reads.
var units = map[Unit]struct {
	name    string
	version uint16
}{
	UnitFillNull:        {"fill_null", 1},
	UnitClamp:           {"clamp", 1},
	UnitLog:             {"log", 1},
	UnitBucketize:       {"bucketize", 1},
	UnitSigridHash:      {"sigrid_hash", 1},
	UnitPositiveModulus: {"positive_modulus", 1},
	UnitHexToInt:        {"hex_to_int", 1},
	UnitZeroExtend:      {"zero_extend", 1},
	UnitFirstX:          {"firstx", 1},
	UnitConvert:         {"convert", 1},
	UnitLogit:           {"logit", 1},
	UnitBoxCox:          {"box_cox", 1},
	UnitNGram:           {"ngram", 1},
	UnitHashBytes:       {"hash_bytes", 1},
	UnitLocalHour:       {"get_local_hour", 1},
	UnitMapID:           {"map_id", 1},
	UnitNormalize:       {"normalize", 1},
	UnitMinMax:          {"min_max", 1},
	UnitListSlice:       {"list_slice", 1},
	UnitFillNaN:         {"fill_nan", 1},
	UnitRescale:         {"rescale", 1},
	UnitInt96Time:       {"int96_time", 1},
	UnitDecimal:         {"decimal", 1},
	UnitFloat16:         {"float16", 1},
	UnitFixedLength:     {"fixed_length", 1},
	UnitCartesian:       {"cartesian", 1},
	UnitIDListTransform: {"id_list_transform", 1},
	UnitHashCross:       {"hash_cross", 1},
	UnitHashBucket:      {"hash_bucket", 1},
	UnitComputeScore:    {"compute_score", 1},
	UnitEnumerate:       {"enumerate", 1},
	UnitWithScores:      {"with_scores", 1},
	UnitScores:          {"scores", 1},
	UnitOneHot:          {"onehot", 2},
	UnitWasm:            {"wasm", 1},
	UnitVocabulary:      {"vocabulary", 1},
	UnitParquet:         {"parquet", 1},
	UnitText:            {"text", 1},
	UnitMap:             {"map", 1},
}

// Version returns the version of the unit that this build knows; 0 when it does not know the unit.
func (u Unit) Version() uint16 { return units[u].version }

// String returns the operator's name as pipelines write it.
func (u Unit) String() string {
	if k, ok := units[u]; ok {
		return k.name
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
	refs := make([]UnitRef, 0, len(units))
	for u, k := range units {
		refs = append(refs, UnitRef{u, k.version})
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
	if p.hasMaps() {
		refs = append(refs, UnitRef{UnitMap, UnitMap.Version()})
	}
	add := func(u Unit) {
		if ref := (UnitRef{u, u.Version()}); !slices.Contains(refs, ref) {
			refs = append(refs, ref)
		}
	}
	p.forEachOp(func(op Op) { add(op.Unit()) })
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

// forEachOp calls f for every operator of one input, in the order of the wire form.
func (p *Program) forEachOp(f func(Op)) {
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
