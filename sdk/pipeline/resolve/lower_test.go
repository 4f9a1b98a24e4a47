package resolve

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/millrace/millrace/fpga/catalogue"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk/pipeline/columntypes"
)

func TestWidth(t *testing.T) {
	all := catalogue.AllIntegers
	assert.Equal(t, all, rangeOfColumn(&columntypes.Column{Kind: program.Int64}))
	assert.Equal(t, all, rangeOfColumn(&columntypes.Column{Kind: program.Bytes, Bits: 8}))
	for want, c := range map[catalogue.Range]columntypes.Column{
		all:                    {Kind: program.Int64, Bits: 64, Unsigned: true},
		{Low: -128, High: 127}: {Kind: program.Int64, Bits: 8},
		{Low: 0, High: 255}:    {Kind: program.Int64, Bits: 8, Unsigned: true},
		{Low: math.MinInt32, High: math.MaxInt32}: {Kind: program.Int64, Bits: 32},
		{Low: 0, High: math.MaxUint32}:            {Kind: program.Int64, Bits: 32, Unsigned: true},
		{Low: 0, High: 1}:                         {Kind: program.Int64, Bits: 1},
	} {
		assert.Equal(t, want, rangeOfColumn(&c))
	}
}
