package control

import (
	"encoding/hex"
	"slices"
	"time"

	"connectrpc.com/connect"

	"github.com/millrace/millrace/control/record"
	"github.com/millrace/millrace/host/api"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/identity"
	"github.com/millrace/millrace/internal/wait"
	"github.com/millrace/millrace/sdk/dataset"
)

// refreshNode prepares a node for the running jobs and lists its drives, in a goroutine of its own. l.mu is held.
func (k nodeKeeper) refreshNode(name string) {
	a := k.nodes[name]
	if a == nil || !k.fleet.Alive(name) {
		return
	}
	if a.refreshing {
		a.refreshAgain = true
		return
	}
	a.refreshing = true
	k.wg.Add(1)
	go k.refreshLoop(a)
}

// refreshWorkers calls refreshNode for every node that has workers of any reach. l.mu is held.
func (k nodeKeeper) refreshWorkers() {
	k.fleet.Live(func(s *apiv1.NodeStatus) {
		if k.fleet.Reaches(s.Name) {
			k.refreshNode(s.Name)
		}
	})
}

func (k nodeKeeper) refreshLoop(a *nodeState) {
	defer k.wg.Done()
	for {
		ok := k.refreshOnce(a)
		k.mu.Lock()
		if !k.fleet.Alive(a.name) || (ok && !a.refreshAgain) {
			a.refreshing, a.refreshAgain = false, false
			k.mu.Unlock()
			return
		}
		a.refreshAgain = false
		k.mu.Unlock()
		if !ok && wait.Sleep(k.ctx, retryNode) != nil {
			return
		}
	}
}

// refreshOnce prepares the node for the jobs that it is not prepared for, then lists its drives. A job that cannot
// be prepared on the node does not keep the other jobs from the node's drives: only its own grants on the node come
// back.
func (k nodeKeeper) refreshOnce(a *nodeState) bool {
	type item struct {
		j *job
		g *edition
	}
	var items []item
	var over []dataset.Digest
	k.mu.Lock()
	for d := range a.unprepared {
		if !k.uses(d) {
			delete(a.unprepared, d)
		}
	}
	status := k.fleet.Status(a.name)
	for _, hexed := range status.GetJobs() {
		if d, ok := digestOf(hexed); ok && !k.uses(d) {
			delete(a.preparedJobs, d)
			if status.GetOwner() == "" { // a launcher's worker ends with its job
				over = append(over, d) // the job ended while the node could not be reached
			}
		}
	}
	for _, j := range k.jobs {
		if !j.OnNodes() {
			continue
		}
		for _, g := range j.preparations() {
			if g.onNodes && !a.preparedJobs[g.Digest] && (k.serves(a.name, j) ||
				j.drivesMake() && k.fleet.Holds(a.name, g.data.Manifest)) {
				items = append(items, item{j, g})
			}
		}
	}
	drain := k.fleet.Asked(a.name)
	tell := drain != a.drainTold
	k.mu.Unlock()
	for _, d := range over {
		k.finishLeftOver(a.name, d)
	}
	ok := true
	for _, it := range items {
		if err := k.prepare(a.name, it.j, it.g); err != nil {
			k.logger.Warn("prepare a node", "node", a.name, "job", it.j.ID, "error", err)
			ok = ok && connect.CodeOf(err) == connect.CodeFailedPrecondition // another call would give the same answer
		}
	}
	if tell {
		if err := k.calls.drain(k.ctx, a.name, drain); err != nil {
			k.logger.Warn("tell a node to drain", "node", a.name, "drain", drain, "error", err)
			ok = false
		}
	}
	now := time.Now()
	k.mu.Lock()
	defer k.mu.Unlock()
	if tell && ok {
		a.drainTold = drain
	}
	if !a.drivesListed {
		k.listDrives(a, now)
	}
	k.enlist(a, now)
	k.settle(now)
	return ok
}

// digestOf reads a job's digest as nodes list it.
func digestOf(hexed string) (d dataset.Digest, ok bool) {
	b, err := hex.DecodeString(hexed)
	if err != nil || len(b) != len(d) {
		return d, false
	}
	return dataset.Digest(b), true
}

// finishLeftOver makes a node forget an edition that no job needs any more.
func (k nodeKeeper) finishLeftOver(node string, digest dataset.Digest) {
	handing := k.handingLock(digest)
	handing.Lock()
	defer handing.Unlock()
	k.mu.Lock()
	used := k.uses(digest)
	k.mu.Unlock()
	if used {
		return // a job of the digest has begun
	}
	if err := k.calls.finish(k.ctx, node, digest); err != nil {
		k.logger.Warn("finish a job that has ended on a node", "node", node, "digest", digest.String()[:12], "error",
			err)
	}
}

// prepare hands an edition to a node.
func (l *leader) prepare(node string, j *job, g *edition) error {
	manifest, err := g.data.Manifest.MarshalJSON()
	if err != nil {
		return err
	}
	req := &apiv1.PrepareRequest{Job: g.Digest[:], Pipeline: j.spec.Pipeline, Manifest: manifest,
		Plan: record.WirePlan(j.Plan), Weight: j.spec.Weight, Sources: l.sourcesFor(node, g), FilterPass: g.pass,
		Modules: j.spec.Modules}
	switch {
	case g.pass != nil:
		req.Plan = record.WirePlan(passPlan)
	case g.Selection != nil:
		req.Selection = &apiv1.JobSelection{Sha256: g.Selection.Digest[:], Bytes: g.Selection.Bytes}
		fallthrough
	default:
		req.Vocabularies = j.wireVocabularies()
	}
	if g.data.Several || g.pass != nil {
		if req.Columns, err = api.EncodeColumns(g.data.Columns); err != nil {
			return err
		}
	}
	incarnation := l.incarnation(node)
	handing := l.handingLock(g.Digest)
	handing.RLock()
	defer handing.RUnlock()
	l.mu.Lock()
	used := l.uses(g.Digest)
	l.mu.Unlock()
	if !used {
		return nil // the job has ended meanwhile, or has given its room away
	}
	ownFiles, err := l.calls.prepare(l.ctx, node, req)
	l.mu.Lock()
	defer l.mu.Unlock()
	if a := l.nodes[node]; a != nil {
		delete(a.unprepared, g.Digest)
		if err != nil {
			a.unprepared[g.Digest] = err
		}
		if isRoomError(err) {
			l.askForRoom(a, j, time.Now())
		}
	}
	if err != nil {
		return err
	}
	if a, st := l.nodes[node], l.fleet.Status(node); a != nil && st != nil && st.Incarnation == incarnation {
		a.preparedJobs[g.Digest] = true
		a.noteOwnFiles(g, ownFiles)
		if !a.drivesListed && !a.refreshing {
			nodeKeeper{l}.refreshNode(node)
		}
	}
	return nil
}

// noteOwnFiles notes which partitions of an edition a node's workers have in files of their own machine.
func (a *nodeState) noteOwnFiles(g *edition, places []uint32) {
	for _, p := range places {
		if int64(p) < int64(len(g.Words)) && !a.ownFiles[g.Words[p]] {
			a.ownFiles[g.Words[p]] = true
			a.drivesListed = false // the ledger learns of the files when the drives are listed
		}
	}
}

// reachedAt returns where a node is called. A node of another machine has the leader call no address of the leader's
// own machine: there other processes answer, which do not expect it.
func (l *leader) reachedAt(node string) reached {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.fleet.Status(node)
	urls := s.GetUrls()
	if a := l.nodes[node]; a == nil || !a.thisMachine {
		urls = slices.DeleteFunc(slices.Clone(urls), identity.OfThisMachine)
	}
	return reached{urls, s.GetOwner()}
}

func (l *leader) incarnation(node string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.fleet.Status(node).GetIncarnation()
}
