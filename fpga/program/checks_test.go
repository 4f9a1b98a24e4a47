package program_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/operator/bucketize"
	"github.com/millrace/millrace/fpga/program"
)

// TestValidateLooksAtATableOnce reads a program of many operators over one large table. The program is small on the
// wire, so reading it must be cheap too.
func TestValidateLooksAtATableOnce(t *testing.T) {
	ints, reals, doubles := []int64{1, 2}, []float32{1, 2}, []float64{1, 2}
	for _, c := range []struct {
		op     program.Op
		kind   program.Kind
		damage func()
	}{
		{&bucketize.Op{Borders32: reals}, program.Float32, func() { reals[1] = 0 }},
		{&bucketize.Op{Borders64: doubles}, program.Float64, func() { doubles[1] = 0 }},
		{&bucketize.Op{BordersInt: ints}, program.Int64, func() { ints[1] = 0 }},
	} {
		in := program.Input{Kind: c.kind}
		first, second := program.CheckedTwice(c.op, in, c.damage)
		require.NoError(t, first)
		require.NoError(t, second, "a table that was checked is not checked again")
		require.Error(t, c.op.Check(in))
	}
}

// TestReadingOfAMapsPart checks that a part of a map is read as it is stored.
func TestReadingOfAMapsPart(t *testing.T) {
	part := program.Column{Kind: program.Int64, Part: program.MapKeys, Reading: program.ReadValues}
	require.ErrorContains(t, part.ValidateReading(program.Parquet), "read as it is stored")
}
