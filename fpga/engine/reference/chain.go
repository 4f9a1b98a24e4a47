package reference

import (
	"errors"
	"fmt"
	"math"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/boxcox"
	"github.com/millrace/millrace/fpga/unit/bucketize"
	"github.com/millrace/millrace/fpga/unit/clamp"
	"github.com/millrace/millrace/fpga/unit/fillnan"
	"github.com/millrace/millrace/fpga/unit/firstx"
	"github.com/millrace/millrace/fpga/unit/hashbytes"
	"github.com/millrace/millrace/fpga/unit/hashcross"
	"github.com/millrace/millrace/fpga/unit/hextoint"
	"github.com/millrace/millrace/fpga/unit/listslice"
	"github.com/millrace/millrace/fpga/unit/localhour"
	"github.com/millrace/millrace/fpga/unit/logit"
	"github.com/millrace/millrace/fpga/unit/logn"
	"github.com/millrace/millrace/fpga/unit/mapid"
	"github.com/millrace/millrace/fpga/unit/minmax"
	"github.com/millrace/millrace/fpga/unit/ngram"
	"github.com/millrace/millrace/fpga/unit/normalize"
	"github.com/millrace/millrace/fpga/unit/positivemodulus"
	"github.com/millrace/millrace/fpga/unit/rescale"
	"github.com/millrace/millrace/fpga/unit/sigridhash"
	"github.com/millrace/millrace/fpga/unit/vocabulary"
	"github.com/millrace/millrace/fpga/unit/wasm"
	"github.com/millrace/millrace/fpga/unit/zeroextend"
)

// ErrData says that the partition holds a value that the pipeline does not allow: a token that is no number, a NaN
// under nan: error, a null that reaches dense or label, an id that does not fit.
var ErrData = errors.New("bad data")

// evaluator applies operators. It remembers logarithms and powers, because their references take a tenth of a
// millisecond.
type evaluator struct {
	results   map[expression]float32 // at most maxKeptResults
	modules   program.Modules
	functions map[program.Wasm]*wasm.Reference

	lookupTables []program.LookupTable
	lookups      map[uint32]vocabulary.Reference // by the number of their table
}

// newEvaluator returns an evaluator of a program's operators.
func newEvaluator(p *program.Program) evaluator {
	return evaluator{results: map[expression]float32{}, modules: p.Modules,
		functions: map[program.Wasm]*wasm.Reference{}, lookupTables: p.LookupTables,
		lookups: map[uint32]vocabulary.Reference{}}
}

// expression is an operator of float32 values, Log, Logit or BoxCox, and the bits of the value that it is given.
type expression struct {
	op program.Op
	x  uint32
}

// maxKeptResults bounds how many results an evaluator remembers.
const maxKeptResults = 1 << 20

// evaluate returns the result of reference, computed once for each operator and value.
func (e *evaluator) evaluate(op program.Op, x float32, reference func() float32) float32 {
	of := expression{op, math.Float32bits(x)}
	y, ok := e.results[of]
	if !ok {
		y = reference()
		if len(e.results) < maxKeptResults {
			e.results[of] = y
		}
	}
	return y
}

func (e *evaluator) runChain(ops []program.Op, c *program.Column, row any) (any, error) {
	kind := c.Kind
	for _, op := range ops {
		if fixed, ok := op.(program.FixedLength); ok {
			return fixLength(row, fixed)
		}
		if hot, ok := op.(program.OneHot); ok {
			return oneHotOf(hot, row), nil
		}
		if slice, ok := op.(program.ListSlice); ok && slice.Padded && c.List && (row == nil || holdsNull(row.([]any))) {
			row = []any{} // is filled up
		}
		if !c.List || row != nil {
			var err error
			if row, err = e.applyOperator(op, kind, row); err != nil {
				return nil, fmt.Errorf("%v: %w", op.Unit(), err)
			}
		}
		kind = op.Out(kind)
	}
	return row, nil
}

func (e *evaluator) applyOperator(op program.Op, kind program.Kind, row any) (any, error) {
	list, isList := row.([]any)
	if !isList {
		return e.applyScalar(op, kind, row)
	}
	if !keepsNulls(op) && holdsNull(list) {
		return nil, nil
	}
	if first, ok := op.(program.FirstX); ok {
		return firstx.Reference(list, first.N), nil
	}
	if slice, ok := op.(program.ListSlice); ok {
		return partOfList(slice, kind, list)
	}
	if windows, ok := op.(program.NGram); ok {
		return windowIDs(list, windows)
	}
	out := make([]any, len(list))
	for i, v := range list {
		var err error
		if out[i], err = e.applyScalar(op, kind, v); err != nil {
			return nil, fmt.Errorf("element %d: %w", i, err)
		}
	}
	return out, nil
}

// keepsNulls reports whether an operator takes lists that hold a null: fill_null fills it, and the conversion of
// FLOAT16 passes it on.
func keepsNulls(op program.Op) bool {
	switch op.(type) {
	case program.FillNull, program.Float16:
		return true
	}
	return false
}

// partOfList returns what list_slice makes of a list without nulls.
func partOfList(slice program.ListSlice, kind program.Kind, list []any) ([]any, error) {
	if !slice.Padded {
		return listslice.Reference(list, slice.Start, slice.End, 0, nil), nil
	}
	length, err := slice.Length()
	if err != nil {
		return nil, err
	}
	pad := fillValue(program.FillNull{Int: slice.PadInt, Float: slice.PadFloat}, kind)
	return listslice.Reference(list, slice.Start, slice.End, length, pad), nil
}

// windowIDs returns what ngram makes of a list of ids without nulls.
func windowIDs(list []any, windows program.NGram) ([]any, error) {
	ids := make([]int64, len(list))
	for i, v := range list {
		ids[i] = v.(int64)
	}
	made := ngram.Reference(ids, windows.N)
	if windows.Mode == program.NGramRAP {
		all, ok := ngram.ListReference(ids, windows.N)
		if !ok {
			return nil, fmt.Errorf("%w: windows of more than %d ids", ErrData, ngram.MaxListed)
		}
		made = all
	}
	out := []any{}
	for _, id := range made {
		out = append(out, id)
	}
	return out, nil
}

func holdsNull(list []any) bool {
	for _, v := range list {
		if v == nil {
			return true
		}
	}
	return false
}

// applyScalar applies an operator to one value. A null stays null, except that fill_null fills it.
func (e *evaluator) applyScalar(op program.Op, kind program.Kind, v any) (any, error) {
	if v == nil {
		if fill, ok := op.(program.FillNull); ok {
			return fillValue(fill, kind), nil
		}
		return nil, nil
	}
	switch o := op.(type) {
	case program.FillNull:
		return v, nil
	case program.Clamp:
		switch x := v.(type) {
		case int64:
			return clamp.Reference(x, o.IntLo, o.IntHi), nil
		case float32:
			return clamp.Reference(x, float32(o.FloatLo), float32(o.FloatHi)), nil
		case float64:
			return clamp.Reference(x, o.FloatLo, o.FloatHi), nil
		}
	case program.Log:
		x := v.(float32)
		return e.evaluate(o, x, func() float32 { return logn.Reference(x, o.Add) }), nil
	case program.Logit:
		x := v.(float32)
		return e.evaluate(o, x, func() float32 { return logit.Reference(x, o.Eps) }), nil
	case program.BoxCox:
		x, params := v.(float32), boxcox.Params{Lambda1: o.Lambda1, Lambda2: o.Lambda2}
		if o.Mode == program.BoxCoxRAP {
			params.Mode = boxcox.RAP
		}
		return e.evaluate(o, x, func() float32 { return boxcox.Reference(x, params) }), nil
	case program.FillNaN:
		if x, ok := v.(float64); ok {
			return fillnan.Reference(x, o.Value), nil
		}
		return fillnan.Reference(v.(float32), float32(o.Value)), nil
	case program.Normalize:
		return normalize.Reference(v.(float32), o.Mean, o.Deviation), nil
	case program.MinMax:
		return minmax.Reference(v.(float32), o.Min, o.Max), nil
	case *program.Bucketize:
		return bucketOf(o, v)
	case program.SigridHash:
		return sigridhash.Reference(v.(int64), o.Salt, o.Max), nil
	case program.PositiveModulus:
		return positivemodulus.Reference(v.(int64), o.M), nil
	case program.Lookup:
		return e.lookUp(o, v.(int64))
	case program.HashBucket:
		return hashcross.Reference([]int64{v.(int64)}, o.Buckets), nil
	case program.ZeroExtend:
		return zeroextend.Reference(v.(int64)), nil
	case program.HexToInt:
		token := v.([]byte)
		if len(token) == 0 {
			return nil, nil
		}
		x, ok := hextoint.Reference(token)
		if !ok {
			return nil, fmt.Errorf("%w: token %q", ErrData, token)
		}
		return int64(x), nil
	case program.HashBytes:
		return hashbytes.Reference(v.([]byte), hashbytes.Function(o.Function)), nil
	case *program.LocalHour:
		return localhour.Reference(v.(int64), o.Starts, o.Offsets), nil
	case *program.MapID:
		if len(o.Keys) > 0 {
			return mapid.Reference(v.(int64), o.Keys, o.Values, o.Default), nil
		}
		return mapid.ReferenceDense(v.(int64), o.Values, o.Default), nil
	case program.Rescale:
		x, ok := rescale.Reference(v.(int64), o.Multiplier, o.Divisor)
		if !ok {
			return nil, fmt.Errorf("%w: %v times %d does not fit int64", ErrData, v, o.Multiplier)
		}
		return x, nil
	case program.Int96Time:
		return timeOfInt96(v.([]byte), o.To)
	case program.Decimal:
		return decimalValue(o, v)
	case program.Float16:
		return widenHalf(v.([]byte))
	case program.Convert:
		return convertValue(o.To, v), nil
	}
	return nil, fmt.Errorf("%T does not take %T", op, v)
}

// fillValue returns the constant of fill_null in a kind.
func fillValue(o program.FillNull, kind program.Kind) any {
	switch kind {
	case program.Float32:
		return float32(o.Float)
	case program.Float64:
		return o.Float
	}
	return o.Int
}

// bucketOf returns the bucket of a value.
func bucketOf(o *program.Bucketize, v any) (any, error) {
	side, nan := bucketize.SideLeft, bucketize.NaNTorchArrow
	if o.Side == program.Right {
		side = bucketize.SideRight
	}
	switch o.NaN {
	case program.NaNFirst:
		nan = bucketize.NaNFirst
	case program.NaNLast:
		nan = bucketize.NaNLast
	case program.NaNError:
		nan = bucketize.NaNFail
	}
	var b int64
	var ok bool
	switch x := v.(type) {
	case int64:
		b, ok = bucketize.Reference(x, o.BordersInt, side, nan)
	case float32:
		b, ok = bucketize.Reference(x, o.Borders32, side, nan)
	case float64:
		b, ok = bucketize.Reference(x, o.Borders64, side, nan)
	}
	if !ok {
		return nil, fmt.Errorf("%w: a NaN", ErrData)
	}
	return b, nil
}

// convertValue converts a value to a kind. It rounds to the nearest value, ties to even. A NaN that it makes is
// 7fc00000h.
func convertValue(to program.Kind, v any) any {
	switch x := v.(type) {
	case int64:
		if to == program.Float32 {
			return float32(x)
		}
		return float64(x)
	case float32:
		return float64(x)
	case float64:
		if math.IsNaN(x) {
			return math.Float32frombits(0x7fc00000)
		}
		return float32(x)
	}
	return v
}
