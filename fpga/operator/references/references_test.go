package references

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/operator"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/rowvalue"
	"github.com/millrace/millrace/fpga/rowvalue/rowvaluetest"
)

// TestEveryOperatorHasAReference compares the list with the units that programs know.
func TestEveryOperatorHasAReference(t *testing.T) {
	decoders := []program.Unit{program.UnitParquet, program.UnitText, program.UnitMap}
	for _, u := range program.Known() {
		_, ok := constructors[u.Unit]
		assert.Equal(t, !slices.Contains(decoders, u.Unit), ok, "%v has a reference", u.Unit)
	}
	assert.Len(t, constructors, len(program.Known())-len(decoders))
}

// TestKnownAnswers compares the references with the known answers of their operators. The operators of lookup tables
// and modules, whose answers need an environment, have tests of their own.
func TestKnownAnswers(t *testing.T) {
	for u, answers := range operator.KnownAnswers() {
		t.Run(u.String(), func(t *testing.T) { rowvaluetest.Check(t, constructors[u], answers) })
	}
}

// unknown is an operator that the drive lacks.
type unknown struct{}

func (unknown) Unit() program.Unit { return 999 }

func TestUnknownOperator(t *testing.T) {
	_, err := New(unknown{}, nil, rowvalue.NewEnvironment(&program.Program{}))
	require.ErrorContains(t, err, "unit(999) has no reference")
}
