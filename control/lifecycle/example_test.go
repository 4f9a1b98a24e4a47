package lifecycle_test

import (
	"fmt"
	"time"

	"github.com/millrace/millrace/control/lifecycle"
	"github.com/millrace/millrace/control/record"
	"github.com/millrace/millrace/trainmgr/allocation"
)

// A job from its submission until it runs: its goroutine asks for one duty at a time, and answers with an event.
func Example() {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	m := lifecycle.New(lifecycle.Config{AbandonAfter: 24 * time.Hour})
	stored := lifecycle.Submission(record.Edition{Number: 0})
	job := m.Add(lifecycle.Terms{ID: "ads-1", Name: "ads", Ranks: 1, Epochs: 1}, stored)

	for duty := job.Duty(now); duty != lifecycle.Rest; duty = job.Duty(now) {
		fmt.Println("duty:", duty)
		switch duty {
		case lifecycle.Prepare: // call the nodes
			job.Prepared()
		case lifecycle.Measure: // call them again
			job.Measured(map[string]float64{"n0/d0": 1000}, 0, allocation.Allocation{Drives: 1})
		case lifecycle.Store: // write to etcd
			stored = job.Storing(now)
		case lifecycle.Commit: // write to etcd what follows, then go on
			stored = job.StoringNext(now)
			fmt.Println("stored:", stored.Phase)
			job.Committed()
		}
		for _, e := range m.Ready() {
			fmt.Printf("effect: %T %v\n", e, e)
		}
	}
	// Output:
	// duty: prepare
	// effect: lifecycle.Moved {ads-1 preparing measuring }
	// duty: store
	// duty: measure
	// duty: commit
	// stored: running
	// effect: lifecycle.BeginEpoch {ads-1 0}
	// effect: lifecycle.Moved {ads-1 measuring running }
	// duty: store
}
