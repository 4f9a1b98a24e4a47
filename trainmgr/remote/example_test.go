package remote_test

import (
	"context"
	"fmt"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/trainmgr/remote"
)

// One rank of a job: submitted, trained on, with a checkpoint every hundred mini-batches.
func Example() {
	ctx := context.Background()
	train := func(rank uint32, pipeline, token []byte, keep func(token []byte) error) error {
		client, err := remote.Dial(remote.Options{Control: []string{"http://127.0.0.1:7460"}})
		if err != nil {
			return err
		}
		defer func() { _ = client.Close() }()
		status, err := client.Submit(ctx, &apiv1.JobSpec{Name: "ads", Pipeline: pipeline})
		if err != nil {
			return err
		}
		job, err := client.Attach(ctx, status.Id, remote.AttachOptions{Rank: rank, Token: token})
		if err != nil {
			return err
		}
		steps := 0
		for mb, err := range job.MiniBatches(ctx) {
			if err != nil {
				return err
			}
			fmt.Println(mb.Rows) // train
			if steps++; steps%100 == 0 {
				if err := job.Acknowledge(mb.Name); err != nil {
					return err
				}
				if token, err = job.Checkpoint(ctx); err != nil {
					return err
				}
				if err := keep(token); err != nil {
					return err
				}
			}
		}
		if token, err = job.Checkpoint(ctx); err != nil {
			return err
		}
		if err := keep(token); err != nil {
			return err
		}
		return job.Close() // the last checkpoint is safe: the job may end
	}
	_ = train
	// Output:
}
