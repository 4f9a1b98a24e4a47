package ledger_test

import (
	"fmt"
	"log"
	"time"

	"github.com/millrace/millrace/control/ledger"
	"github.com/millrace/millrace/sdk/dataset"
)

// A job of one rank over one partition of 40 rows: four mini-batches in two splits, on a drive that makes one split at
// a time.
func Example() {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	partition := dataset.Partition{Name: "day0", Bytes: 4096, Rows: 40, RowGroups: []int64{40}}
	manifest, err := dataset.NewManifest([]dataset.Partition{partition})
	if err != nil {
		log.Fatal(err)
	}
	plan, err := dataset.NewPlan(manifest, dataset.Options{Batch: 10, SplitBatches: 2, Shuffle: dataset.ShuffleNone})
	if err != nil {
		log.Fatal(err)
	}

	l := ledger.New(ledger.Config{Fence: 1})
	check := func(err error) {
		if err != nil {
			log.Fatal(err)
		}
	}
	check(l.PutDrive(ledger.Drive{
		ID: ledger.DriveID{Node: "n0", Name: "d0"}, Streams: 1, Partitions: []string{"day0"},
	}, now))
	check(l.AddJob(ledger.Job{ID: "ads"}))
	check(l.Begin(ledger.Epoch{Job: "ads", Plan: plan, Partitions: []string{"day0"}}, now))

	rank, err := l.Attach("ads", 0, nil, now)
	check(err)
	check(l.Want("ads", rank.Session, 0, 2, now))
	for _, acknowledged := range []dataset.Range{{From: 0, To: 2}, {From: 2, To: 4}} {
		for _, g := range l.Ready().Grants {
			fmt.Printf("rank %d is granted mini-batches %d to %d on %v\n", g.Rank, g.From, g.To-1, g.Drive)
		}
		check(l.Acknowledge("ads", rank.Session, 0, []dataset.Range{acknowledged}, now))
	}
	for _, done := range l.Ready().Done {
		fmt.Printf("epoch %d of %s is delivered, %d records to store\n", done.Number, done.Job, l.Pending())
	}
	// Output:
	// rank 0 is granted mini-batches 0 to 1 on n0/d0
	// rank 0 is granted mini-batches 2 to 3 on n0/d0
	// epoch 0 of ads is delivered, 2 records to store
}
