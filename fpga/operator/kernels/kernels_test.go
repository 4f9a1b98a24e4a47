package kernels

import (
	"context"
	"path"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/millrace/millrace/fpga/block"
	"github.com/millrace/millrace/fpga/program"
)

// TestEveryOperatorHasAKernel checks that each unit of an operator has one kernel, in the folder that its name says.
func TestEveryOperatorHasAKernel(t *testing.T) {
	decoders := map[program.Unit]bool{program.UnitParquet: true, program.UnitText: true, program.UnitMap: true}
	folderOf := func(f any) string {
		name := runtime.FuncForPC(reflect.ValueOf(f).Pointer()).Name()
		return path.Base(path.Dir(name))
	}
	for _, known := range program.Known() {
		u := known.Unit
		step, isStep := steps[u]
		combiner, combines := combiners[u]
		folder := strings.ReplaceAll(u.String(), "_", "")
		switch {
		case decoders[u]:
			assert.False(t, isStep || combines, u)
		case isStep:
			assert.False(t, combines, u)
			assert.Equal(t, folder, folderOf(step))
		default:
			if assert.True(t, combines, u) {
				assert.Equal(t, folder, folderOf(combiner))
			}
		}
	}
	assert.Len(t, program.Known(), len(steps)+len(combiners)+len(decoders))
}

// unknown is an operator of a unit that has no kernel.
type unknown struct{ program.Op }

func (unknown) Unit() program.Unit { return 999 }

// unknownCombiner is an operator of several inputs of such a unit.
type unknownCombiner struct{ program.Combiner }

func (unknownCombiner) Unit() program.Unit { return 999 }

func TestAnOperatorWithoutAKernelIsAnError(t *testing.T) {
	tables := block.NewTables(context.Background(), nil)
	_, err := CompileStep(unknown{}, program.Int64, tables)
	assert.ErrorContains(t, err, "is not an operator of this engine")
	_, err = CompileCombiner(unknownCombiner{}, tables)
	assert.ErrorContains(t, err, "is not an operator of several inputs of this engine")
}
