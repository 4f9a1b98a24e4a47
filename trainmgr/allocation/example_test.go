package allocation_test

import (
	"fmt"

	"github.com/millrace/millrace/trainmgr/allocation"
)

// A trainer takes 250,000 rows/s and a drive makes 100,000: three drives run at once. The fourth drive takes the
// place of a drive that has no split left.
func ExampleAllocate() {
	drives := []allocation.Worker{
		{Name: "drive0", RowsPerSecond: 100_000, Rows: 5_000_000},
		{Name: "drive1", RowsPerSecond: 100_000, Rows: 5_000_000},
		{Name: "drive2", RowsPerSecond: 100_000, Rows: 5_000_000},
		{Name: "drive3", RowsPerSecond: 100_000, Rows: 5_000_000},
	}
	a, err := allocation.Allocate(250_000, drives, 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(a.Drives, "drives at once, a stall of", a.ExpectedStall)
	fmt.Println(a.Note)
	// With a limit of two drives, the trainer waits.
	a, err = allocation.Allocate(250_000, drives, 2)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(a.Drives, "drives at once, a stall of", a.ExpectedStall)
	fmt.Println(a.Note)
	// Output:
	// 3 drives at once, a stall of 0s
	// 3 of 4 drives sustain the trainer's 250000 rows/s
	// 2 drives at once, a stall of 20s
	// the job's options allow 2 drives at once, the trainer's 250000 rows/s want 3
}

// One worker runs at a time. Worker 1 holds the most rows and begins; when it has no split left, worker 0 takes its
// place.
func ExampleSchedule() {
	s := allocation.NewSchedule(false, 1, []int{1, 1})
	s.Add(100, []int{0})
	s.Add(300, []int{1})
	s.Add(300, []int{1})
	for s.Pending() > 0 {
		split, worker, ok := s.Start()
		if !ok {
			fmt.Println("nothing may start now")
			return
		}
		fmt.Printf("worker %d makes split %d\n", worker, split)
		s.End(split)
	}
	// Output:
	// worker 1 makes split 1
	// worker 1 makes split 2
	// worker 0 makes split 0
}
