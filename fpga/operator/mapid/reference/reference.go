// Package reference computes map_id by its definition.
package reference

import (
	"github.com/millrace/millrace/fpga/operator/mapid"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/rowvalue"
	unit "github.com/millrace/millrace/fpga/unit/mapid"
)

// Unit is the operator's unit.
const Unit = mapid.Unit

// New implements [rowvalue.Constructor].
func New(op rowvalue.Operator, _ []program.ValueType, _ *rowvalue.Environment) (rowvalue.Reference, error) {
	o := op.(*mapid.Op)
	return rowvalue.OfValues(func(id int64) (any, error) {
		if len(o.Keys) == 0 {
			return unit.ReferenceDense(id, o.Values, o.Default), nil
		}
		return unit.Reference(id, o.Keys, o.Values, o.Default), nil
	}), nil
}
