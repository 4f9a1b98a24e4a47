package remote

import (
	"context"
	"fmt"
	"strings"
	"time"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/internal/wait"
)

// AwaitRunning waits until a job runs, and returns its status. A job that ends before it runs is an error.
func (c *Client) AwaitRunning(ctx context.Context, id string) (*apiv1.JobStatus, error) {
	for status, err := range c.Watch(ctx, id) {
		if err != nil {
			return nil, err
		}
		switch word, _, _ := strings.Cut(status.State, ":"); word {
		case "failed", "cancelled", "abandoned":
			return nil, fmt.Errorf("job %s is %s", status.Id, status.State)
		case "running", "waiting", "done":
			return status, nil
		}
	}
	return nil, fmt.Errorf("job %s: the control plane says no more", id)
}

// ownWorkerTime bounds how long a rank waits for its own worker. After it, the rank begins without the worker.
const ownWorkerTime = 10 * time.Second

// AwaitOwnWorker waits until a worker that serves a rank alone takes its splits, so that the job's share holds from the
// beginning. After ten seconds it returns without an error.
func (c *Client) AwaitOwnWorker(ctx context.Context, id string, rank uint32) error {
	for end := time.Now().Add(ownWorkerTime); time.Now().Before(end); {
		status, err := c.Get(ctx, id)
		if cause := context.Cause(ctx); cause != nil {
			return cause
		}
		if err != nil {
			return err
		}
		for _, r := range status.GetRanks() {
			if r.GetRank() == rank && r.GetOwnWorkers() > 0 {
				return nil
			}
		}
		if err := wait.Sleep(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}
