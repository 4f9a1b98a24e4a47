package control

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/millrace/millrace/host/api"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/api/v1/apiv1connect"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/tensor"
)

// Bounds of the calls that ask nodes where ids are looked up.
const (
	lookupTime    = 2 * time.Second // of all calls together: a job is shown without the nodes that have not answered
	lookupsAtOnce = 16              // nodes
)

// report asks a node for the reports of its drives on a job.
func (n *nodeCalls) report(ctx context.Context, node string, job dataset.Digest) (list []api.DriveReport, err error) {
	err = n.call(ctx, node, lookupTime, func(ctx context.Context, c apiv1connect.NodeClient) error {
		list = nil
		resp, err := c.Report(ctx, &apiv1.ReportRequest{Job: job[:]})
		if err != nil {
			return err
		}
		for _, b := range resp.Drives {
			var r api.DriveReport
			if err := json.Unmarshal(b, &r); err != nil {
				return err
			}
			list = append(list, r)
		}
		return nil
	})
	return list, err
}

// addLookups adds to the status of a job with vocabularies where the ids of some keys are looked up. nodes are those
// that are prepared for the job. A node that does not answer in time is left out.
func (l *leader) addLookups(ctx context.Context, s *apiv1.JobStatus, keys []tensor.Key, nodes []string) {
	if len(s.GetSpec().GetVocabularies()) == 0 || len(s.Digest) != len(dataset.Digest{}) {
		return
	}
	digest, count := dataset.Digest(s.Digest), lookupCount{}
	for i := range keys {
		count[keys[i].Name] = &apiv1.KeyLookups{Key: keys[i].Name}
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTime)
	defer cancel()
	var (
		mu   sync.Mutex
		wg   sync.WaitGroup
		gate = make(chan struct{}, lookupsAtOnce)
	)
	for _, node := range nodes {
		wg.Go(func() {
			gate <- struct{}{}
			defer func() { <-gate }()
			reports, err := l.calls.report(ctx, node, digest)
			if err != nil {
				l.logger.Debug("ask a node where ids are looked up", "job", s.Id, "node", node, "error", err)
			}
			mu.Lock()
			defer mu.Unlock()
			for i := range reports {
				count.add(&reports[i])
			}
		})
	}
	wg.Wait()
	s.Lookups = count.sorted()
}

// lookupCount counts, for each key of a job, the drives whose ids are looked up in a place.
type lookupCount map[string]*apiv1.KeyLookups

// add counts a drive. Keys that the job does not have are passed over.
func (c lookupCount) add(r *api.DriveReport) {
	for _, key := range r.LookedUpInDrive {
		if k := c[key]; k != nil {
			k.InDrive++
		}
	}
	for _, key := range r.LookedUpByHost {
		if k := c[key]; k != nil {
			k.OnNode++
		}
	}
}

// sorted returns the counts of the keys whose ids are looked up, in the order of the keys' names.
func (c lookupCount) sorted() (list []*apiv1.KeyLookups) {
	for _, k := range c {
		if k.InDrive > 0 || k.OnNode > 0 {
			list = append(list, k)
		}
	}
	slices.SortFunc(list, func(a, b *apiv1.KeyLookups) int { return cmp.Compare(a.Key, b.Key) })
	return list
}
