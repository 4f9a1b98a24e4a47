package slicer

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/operator/cartesian"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk/target"
)

// A slice of text has one task, which reads all columns of a graph; a slice of Parquet has a task for each.
func TestTasksOfGraphs(t *testing.T) {
	p := &program.Program{
		Source: program.CriteoTSV,
		Columns: []program.Column{
			{Name: "cat_0", Kind: program.Int64, Field: 14, Part: program.GraphFirst},
			{Name: "cat_1", Kind: program.Int64, Field: 15, Part: program.GraphNext},
		},
		Graphs: []program.Graph{{
			Steps: []program.Step{{Inputs: []uint32{0, 1}, Combine: cartesian.Op{MaxLength: 1}}},
			Sinks: []program.GraphSink{{Value: 2, Sink: program.Sink{To: program.ToSparse}}},
		}},
		Output: program.Output{Keys: 1},
	}
	made, err := Prepare(p, target.Limits{Engine: "cpu"})
	require.NoError(t, err)
	require.Equal(t, 1, made.MaxTasks)

	p.Source = program.Parquet
	p.Columns[0].Field, p.Columns[1].Field = 0, 0
	_, err = Prepare(p, target.Limits{Engine: "cpu", Tasks: 1})
	require.ErrorContains(t, err, `cpu takes 1 tasks a slice: column "cat_0" is of a map or graph, which wants 2 together`)
	_, err = Prepare(p, target.Limits{Engine: "cpu", Tasks: 2})
	require.NoError(t, err)
}
