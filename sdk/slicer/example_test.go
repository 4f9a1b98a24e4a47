package slicer_test

import (
	"fmt"

	"github.com/millrace/millrace/fpga/operator/fillnull"
	"github.com/millrace/millrace/fpga/operator/sigridhash"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
	"github.com/millrace/millrace/sdk/partition"
	"github.com/millrace/millrace/sdk/slicer"
	"github.com/millrace/millrace/sdk/target"
)

// Example plans the mini-batches of a partition with one column of 1000 rows, for an engine that does all that it is
// asked for.
func Example() {
	footer := &format.File{
		Leaves: []format.Leaf{{Path: "id", Name: "id", Physical: format.Int64}},
		RowGroups: []format.RowGroup{{Rows: 1000, Columns: []format.Chunk{
			{NumValues: 1000, Offset: 4, Compressed: 8032, Uncompressed: 8032},
		}}},
	}
	part := partition.FromFooter("day_0", 9000, footer, nil)
	limits := target.Limits{Engine: "example", Memory: 1 << 20, Block: 512}
	prog, err := slicer.Prepare(&program.Program{
		Source: program.Parquet, Output: program.Output{Keys: 1, Fixed: true},
		Columns: []program.Column{{Name: "id", Kind: program.Int64, Sinks: []program.Sink{
			{To: program.ToSparse, Ops: []program.Op{fillnull.Op{}, sigridhash.Op{Max: 100}}},
		}}},
	}, limits)
	if err != nil {
		fmt.Println(err)
		return
	}
	head := prog.ImageSpan().Len
	memory := slicer.NewWorkspace(target.Span{Addr: head, Len: limits.Memory - head}, prog.MaxTasks)
	config := slicer.Config{Program: prog, Limits: limits, Memory: memory}
	s, err := slicer.New(config, part, slicer.Rows{Count: part.Rows, Batch: 600})
	if err != nil {
		fmt.Println(err)
		return
	}
	for {
		step, err := s.Next()
		if err != nil {
			fmt.Println(err)
			return
		}
		switch x := step.(type) {
		case *slicer.Execute:
			task := x.Slice.Tasks[0]
			fmt.Printf("execute: %d moves of %d bytes, rows %d+%d\n", len(x.Moves), x.Traffic.Planned, task.Row, task.Count)
			result := program.Result{Values: uint64(task.Count), Tasks: []program.TaskResult{{
				Rows: task.Count, Cursor: program.Cursor{Skip: task.Cursor.Skip + uint64(task.Count)},
			}}}
			if err := s.Result(&result); err != nil {
				fmt.Println(err)
				return
			}
		case *slicer.Done:
			fmt.Println("done:", x.Rows, "rows")
			memory.Release(x.Buffer)
		case *slicer.End:
			fmt.Println("end")
			return
		}
	}
	// Output:
	// execute: 1 moves of 8192 bytes, rows 0+600
	// done: 600 rows
	// execute: 0 moves of 0 bytes, rows 0+400
	// done: 400 rows
	// end
}
