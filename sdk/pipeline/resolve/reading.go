package resolve

import (
	"github.com/millrace/millrace/fpga/catalogue"
	"github.com/millrace/millrace/fpga/operator/decimal"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/pipeline/columntypes"
	"github.com/millrace/millrace/sdk/pipeline/problem"
)

// kindOf returns the kind to which a column of several types is converted for a use.
func kindOf(u catalogue.Use) program.Kind {
	switch u {
	case catalogue.UsedAsIDs:
		return program.Int64
	case catalogue.UsedAsFloat32:
		return program.Float32
	}
	return program.Float64
}

// usageOf returns how operators use a column. The tensor of their values is to; it is 0 if other operators take the
// values.
func usageOf(ops []pipeline.Op, to program.Dest) catalogue.Use {
	for i := range ops {
		entry := pipeline.EntryOf(ops[i].Name)
		if entry == nil || entry.Reads == nil {
			return catalogue.UsedAsIDs
		}
		if use := entry.Reads(&ops[i]); use != catalogue.UsedAsUnknown {
			return use
		}
	}
	switch {
	case to == program.ToSparse:
		return catalogue.UsedAsIDs
	case to == 0 && len(ops) == 0:
		return catalogue.UsedAsUnknown
	}
	return catalogue.UsedAsFloat32 // the constants of operators are values
}

// readBy sets how a column is read.
func (o *Operand) readBy(reading program.Reading, kind program.Kind) {
	c := &o.Column
	c.Kind, c.Reading, c.Bits, c.Unsigned = kind, reading, 0, false
	o.kind, o.ids, o.settled = kind, rangeOfColumn(c), true
}

// settle decides how a column is read for a use: a decimal as its value or as its unscaled integer, and several types
// as one. first is the name of the first operator. settle reports false after an error.
func (r *resolver) settle(o *Operand, use catalogue.Use, first string, a problem.Place) bool {
	c := &o.Column
	if use == catalogue.UsedAsUnknown || o.Step != nil || len(o.Ops) > 0 || o.vocabulary != nil || o.settled {
		return true
	}
	class := c.Class()
	_, scale, isDecimal := columntypes.DecimalScale(c.Logical)
	switch {
	case class == columntypes.Instants, class == columntypes.Clocks:
		if first != "to_seconds" && (first != "to_days" || class == columntypes.Clocks) {
			r.Add(a, problem.ErrColumnType, "partitions differ in the unit: it is %s; begin with to_seconds or to_days, "+
				"which read each by its own unit", c.Logical)
			return false
		}
		o.readBy(program.ReadSeconds, program.Int64)
	case use == catalogue.UsedByOperator:
	case class == columntypes.Numbers && use == catalogue.UsedAsIDs && !c.IDsAgree():
		r.Add(a, problem.ErrColumnType, "partitions differ, and equal values are not equal ids: it is %s; make ids of the "+
			"values with bucketize, or write the column with one type", c.Logical)
		return false
	case class == columntypes.Numbers:
		o.readBy(program.ReadValues, kindOf(use))
	case isDecimal && use != catalogue.UsedAsIDs:
		if !r.checkDecimal(c.Logical, "a DECIMAL in dense has", a) {
			return false
		}
		o.kind = kindOf(use)
		o.Ops = []program.Op{decimal.Op{Scale: uint8(scale), To: o.kind}}
	case use == catalogue.UsedAsIDs && c.Kind == program.Float64 && c.Logical == "" && !c.Map.IsMap():
		o.readBy(program.ReadValues, program.Int64)
		o.ids = catalogue.Range{Low: -1<<53 + 1, High: 1<<53 - 1}
	}
	return true
}

// checkDecimal refuses a decimal that no engine reads. what is the subject and the verb of the error.
func (r *resolver) checkDecimal(logical, what string, a problem.Place) bool {
	precision, scale, _ := columntypes.DecimalScale(logical)
	if scale < 0 || scale > precision || precision < 1 || precision > maxDecimalPrecision {
		r.Add(a, problem.ErrColumnType, "%s at most %d digits, and the column is %s", what, maxDecimalPrecision, logical)
		return false
	}
	return true
}
