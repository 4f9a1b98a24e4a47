package control

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect"

	"github.com/millrace/millrace/control/fleet"
	"github.com/millrace/millrace/control/ledger"
	"github.com/millrace/millrace/control/upkeep"
	"github.com/millrace/millrace/host/api"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/identity"
	"github.com/millrace/millrace/sdk/dataset"
)

// finishesAtOnce is how many nodes are asked at once to forget editions.
const finishesAtOnce = 16

// newUpkeep makes the keeper of the leader's nodes.
func (l *leader) newUpkeep() *upkeep.Keeper {
	return upkeep.New(upkeep.Config{
		Jobs: func() []upkeep.Job { return upkeepJobs(l.mu.jobs) }, Holds: l.mu.fleet.Holds, Retry: retryNode,
		KeepReturned: ticketTime,
	})
}

// upkeepJobs describes the jobs that have not ended to the keeper of the nodes, the earliest first.
func upkeepJobs(jobs map[string]*job) []upkeep.Job {
	var live []*job
	for _, j := range jobs {
		if !j.Phase().Ended() {
			live = append(live, j)
		}
	}
	slices.SortFunc(live, func(a, b *job) int {
		return cmp.Or(a.Submission.Submitted.Compare(b.Submission.Submitted),
			strings.Compare(a.Submission.ID, b.Submission.ID))
	})
	list := make([]upkeep.Job, len(live))
	for i, j := range live {
		list[i] = j.forUpkeep()
	}
	return list
}

// forUpkeep describes the job to the keeper of the nodes.
func (j *job) forUpkeep() upkeep.Job {
	u := upkeep.Job{ID: j.Submission.ID, Ranks: j.spec.Ranks, Makers: j.steering.Makers, NeedsWorkers: j.needsWorkers}
	for _, g := range j.passes {
		u.Editions = append(u.Editions, upkeep.Edition{
			Digest: g.Digest, Manifest: g.data.Manifest, Begun: g.onNodes && j.OnNodes(), Pass: true,
		})
	}
	for _, number := range slices.Sorted(maps.Keys(j.editions)) {
		if g := j.editions[number]; g.Digest != (dataset.Digest{}) && j.Uses(g.Digest) {
			u.Editions = append(u.Editions, upkeep.Edition{
				Digest: g.Digest, Manifest: g.data.Manifest, Begun: g.onNodes,
			})
		}
	}
	return u
}

// preparations returns what nodes are prepared for: the job's editions, and passes over its filter's columns.
func (j *job) preparations() []*edition {
	return slices.AppendSeq(slices.Clone(j.passes), maps.Values(j.editions))
}

// digests returns the digests of what nodes are prepared for.
func (j *job) digests() (list []dataset.Digest) {
	for _, g := range j.preparations() {
		list = append(list, g.Digest)
	}
	return list
}

// nodeReport describes what a node reported last to the keeper of the nodes.
func nodeReport(f *fleet.Fleet, name string) upkeep.Report {
	s, draining := f.Status(name), f.Draining(name)
	r := upkeep.Report{
		Node: name, Incarnation: s.GetIncarnation(), Sources: len(s.GetSources()) > 0, Owned: s.GetOwner() != "",
		SelfDrains: s.GetDraining(), DrainAsked: f.Asked(name),
	}
	for _, hexed := range s.GetJobs() {
		if d, ok := digestOf(hexed); ok {
			r.Jobs = append(r.Jobs, d)
		}
	}
	for _, d := range s.GetDrives() {
		r.Drives = append(r.Drives, upkeep.Drive{
			Drive: ledgerDrive(name, d, nil), State: driveState(d.State, draining), Why: d.State,
		})
	}
	return r
}

// digestOf reads a job's digest as nodes list it.
func digestOf(hexed string) (d dataset.Digest, ok bool) {
	b, err := hex.DecodeString(hexed)
	if err != nil || len(b) != len(d) {
		return d, false
	}
	return dataset.Digest(b), true
}

// carryOutUpkeepLocked carries out an effect of the nodes' keeper.
func (l *leader) carryOutUpkeepLocked(e upkeep.Effect, now time.Time) {
	switch e := e.(type) {
	case upkeep.Prepare:
		l.callPrepareLocked(e)
	case upkeep.Finish:
		l.wg.Go(func() {
			l.finishing <- struct{}{}
			err := l.calls.finish(l.ctx, e.Node, e.Digest)
			<-l.finishing
			if err != nil && l.ctx.Err() == nil {
				l.logger.Warn("finish a job on a node", "node", e.Node, "digest", e.Digest.String()[:12], "error", err)
			}
			l.answered(func(time.Time) { l.mu.upkeep.Finished(e) })
		})
	case upkeep.Drain:
		l.wg.Go(func() {
			err := l.calls.drain(l.ctx, e.Node, e.Drain)
			if err != nil && l.ctx.Err() == nil {
				l.logger.Warn("tell a node to drain", "node", e.Node, "drain", e.Drain, "error", err)
			}
			l.answered(func(now time.Time) { l.mu.upkeep.Drained(e, nodeResult(err), now) })
		})
	case upkeep.NeedRoom:
		l.askForRoomLocked(e, now)
	case upkeep.Reply:
		if answer, ok := l.mu.asking[e.Call]; ok { // Otherwise the caller waits no more.
			answer <- e.Err // The channel has room for the one answer.
			delete(l.mu.asking, e.Call)
		}
	default:
		l.changeLedgerLocked(e, now)
	}
}

// changeLedgerLocked carries out an effect of the nodes' keeper that changes the ledger.
func (l *leader) changeLedgerLocked(e upkeep.Effect, now time.Time) {
	var err error
	switch e := e.(type) {
	case upkeep.ListDrives:
		err = listDrives(l.mu.fleet, l.mu.machine.Ledger, e, now)
	case upkeep.DriveChanged:
		switch e.To {
		case upkeep.Broken, upkeep.Lost:
			err = l.mu.machine.Ledger.LoseDrive(e.Drive, e.Why, now)
		default:
			err = l.mu.machine.Ledger.DrainDrive(e.Drive, e.To == upkeep.Draining, now)
		}
		if e.To != upkeep.Lost { // The log has a line for the node.
			l.logger.Info("drive", "node", e.Drive.Node, "drive", e.Drive.Name, "from", string(e.From), "to",
				string(e.To), "why", e.Why)
		}
	case upkeep.RemoveDrive:
		err = l.mu.machine.Ledger.RemoveDrive(e.Drive, now)
	case upkeep.Enlist:
		err = l.mu.machine.Ledger.Enlist(e.Job, e.Worker, e.Ready, now)
		if j := l.mu.jobs[e.Job]; err == nil && e.Ready && e.Serves != nil {
			(&conductor{l, j}).reviewSharesLocked(now)
		}
	default:
		l.logger.Error("an effect that the leader does not know", "what", fmt.Sprintf("%T", e))
	}
	if err != nil && !errors.Is(err, ledger.ErrUnknown) { // The ledger may not have the drive, or the job any more.
		l.logger.Error("change the ledger's view of a node", "error", err)
	}
}

// listDrives puts all drives of a node into the ledger.
func listDrives(f *fleet.Fleet, l *ledger.Ledger, e upkeep.ListDrives, now time.Time) error {
	var errs []error
	words := f.Words(e.Node)
	for _, d := range e.Drives {
		switch d.Reach {
		case ledger.Held:
			d.Partitions = words[d.ID.Name]
		case ledger.Source:
			d.Partitions = f.StoreWords(e.Node)
		}
		errs = append(errs, l.PutDrive(d, now))
	}
	return errors.Join(errs...)
}

// nodeResult classifies the error of a call of a node.
func nodeResult(err error) upkeep.Result {
	switch {
	case err == nil:
		return upkeep.Result{}
	case isRoomError(err):
		return upkeep.Result{Outcome: upkeep.NoRoom, Err: err}
	case connect.CodeOf(err) == connect.CodeFailedPrecondition:
		return upkeep.Result{Outcome: upkeep.Refused, Err: err}
	}
	return upkeep.Result{Outcome: upkeep.Failed, Err: err}
}

// answered passes the answer of a node to the keeper of the nodes. A leader whose term has ended needs no answer.
func (l *leader) answered(take func(now time.Time)) {
	if l.ctx.Err() == nil {
		l.happen(take)
	}
}

// await has the keeper of the nodes answer a call that has the given number. It returns the answer.
func (l *leader) await(ctx context.Context, call func(number uint64)) error {
	answer := make(chan error, 1)
	l.mu.Lock()
	l.mu.lastAsk++
	number := l.mu.lastAsk
	l.mu.asking[number] = answer
	call(number)
	l.settleLocked(time.Now())
	l.mu.Unlock()
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.mu.asking, number)
		return ctx.Err()
	}
}

// prepared has a node prepared for an edition, and waits for the answer.
func (l *leader) prepared(node string, d dataset.Digest) error {
	err := l.await(l.ctx, func(number uint64) { l.mu.upkeep.Ask(number, node, d) })
	var away *upkeep.AwayError
	if errors.As(err, &away) {
		return connect.NewError(connect.CodeUnavailable, err)
	}
	return err
}

// callPrepareLocked gives a node what it needs for an edition.
func (l *leader) callPrepareLocked(e upkeep.Prepare) {
	j := l.mu.jobs[e.Job]
	list := j.preparations()
	g := list[slices.IndexFunc(list, func(g *edition) bool { return g.Digest == e.Digest })] // upkeepJobs listed it
	sources := sourcesFor(l.mu.fleet, e.Node, g)
	l.wg.Go(func() {
		var result upkeep.Result
		req, err := prepareRequest(j, g)
		if err == nil {
			req.Sources = sources
			var places []uint32
			places, err = l.calls.prepare(l.ctx, e.Node, req)
			result = nodeResult(err)
			result.OwnFiles = g.wordsAt(places)
		} else {
			result = upkeep.Result{Outcome: upkeep.Refused, Err: err}
		}
		if err != nil && l.ctx.Err() == nil {
			l.logger.Warn("prepare a node", "node", e.Node, "job", e.Job, "error", err)
		}
		l.answered(func(now time.Time) { l.mu.upkeep.Prepared(e, result, now) })
	})
}

// prepareRequest returns what a node needs for an edition, but for the sources of partitions.
func prepareRequest(j *job, g *edition) (*apiv1.PrepareRequest, error) {
	manifest, err := g.data.Manifest.MarshalJSON()
	if err != nil {
		return nil, err
	}
	req := &apiv1.PrepareRequest{Job: g.Digest[:], Pipeline: j.spec.Pipeline, Manifest: manifest,
		Plan: apiv1.WritePlan(j.Plan), Weight: j.spec.Weight, FilterPass: g.pass, Modules: j.spec.Modules}
	switch {
	case g.pass != nil:
		req.Plan = apiv1.WritePlan(passPlan)
	case g.Selection != nil:
		req.Selection = &apiv1.JobSelection{Sha256: g.Selection.Digest[:], Bytes: g.Selection.Bytes}
		fallthrough
	default:
		req.Vocabularies = j.wireVocabularies()
	}
	if g.data.Several || g.pass != nil {
		if req.Columns, err = api.EncodeColumns(g.data.Columns); err != nil {
			return nil, err
		}
	}
	return req, nil
}

// wordsAt returns the names, in the ledger's form, of the partitions at places in the manifest.
func (g *edition) wordsAt(places []uint32) (words []string) {
	for _, p := range places {
		if int64(p) < int64(len(g.Words)) {
			words = append(words, g.Words[p])
		}
	}
	return words
}

// reachedAt returns where a node is called. A node of another machine has the leader call no address of the leader's
// own machine: there other processes answer, which do not expect it.
func (l *leader) reachedAt(node string) reached {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.mu.fleet.Status(node)
	urls := s.GetUrls()
	if !l.mu.nearby[node] {
		urls = slices.DeleteFunc(slices.Clone(urls), identity.OfThisMachine)
	}
	return reached{urls, s.GetOwner()}
}
