package service

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/millrace/millrace/bench/cluster"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/api/v1/apiv1connect"
	"github.com/millrace/millrace/host/identity"
)

// Of the ledger's job.
const (
	ledgerRanks = 4
	ledgerGroup = 512 // acknowledgements of a call
	ledgerCalls = 2   // under way of a rank
)

// ledger measures durable acknowledgements of a job whose splits have one mini-batch each.
func (o *Options) ledger(ctx context.Context) (_ *Ledger, err error) {
	o.Progress(fmt.Sprintf("ledger: %d splits", o.Splits))
	spec := &apiv1.JobSpec{Ranks: ledgerRanks, RankTail: "keep", Plan: &apiv1.PlanOptions{Batch: 1, SplitBatches: 1}}
	s, err := o.newStage(ctx, cluster.TCP, 1, 1, int64(o.Splits), spec, 1024)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	base, err := identity.BaseURL(s.Member.URL)
	if err != nil {
		return nil, err
	}
	hc, err := identity.HTTPClient(identity.Options{})
	if err != nil {
		return nil, err
	}
	defer hc.CloseIdleConnections()
	c := apiv1connect.NewControlClient(hc, base)
	id := s.job.ID()
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex
		errs error
	)
	begin := time.Now()
	for rank := range uint32(ledgerRanks) {
		a, err := c.Attach(ctx, &apiv1.AttachRequest{Id: id, Rank: rank})
		if err != nil {
			return nil, err
		}
		groups := make(chan *apiv1.NumberRange)
		wg.Go(func() {
			defer close(groups)
			for _, own := range a.Owned {
				for from := own.From; from < own.To; from += ledgerGroup {
					select {
					case groups <- &apiv1.NumberRange{From: from, To: min(from+ledgerGroup, own.To)}:
					case <-ctx.Done():
						return
					}
				}
			}
		})
		for range ledgerCalls {
			wg.Go(func() {
				for g := range groups {
					_, err := c.Acknowledge(ctx, &apiv1.AcknowledgeRequest{Id: id, Session: a.Session, Epoch: a.Epoch,
						Numbers: []*apiv1.NumberRange{g}})
					if err != nil {
						mu.Lock()
						errs = errors.Join(errs, err)
						mu.Unlock()
						for range groups { // the rest is not worth asking
						}
						return
					}
				}
			})
		}
	}
	wg.Wait()
	elapsed := time.Since(begin).Seconds()
	if errs != nil {
		return nil, errs
	}
	l := &Ledger{Splits: o.Splits, Seconds: elapsed, PerSecond: float64(o.Splits) / elapsed}
	l.ResidentBytes, l.MaxResidentBytes = s.Member.Resident()
	s.job = nil // rank 0 was attached again: this session is fenced off, and Close would return that error
	return l, nil
}
