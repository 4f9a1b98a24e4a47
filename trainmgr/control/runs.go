package control

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"time"

	"connectrpc.com/connect"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/trainmgr/control/ledger"
	"github.com/millrace/millrace/trainmgr/control/record"
)

// maxRun bounds the name of a training run, in bytes.
const maxRun = 256

// run stands for the training run that a launcher said it belongs to: the beginning of the name's SHA-256. The zero
// value stands for a launcher that named none.
type run [record.RunBytes]byte

// runOf returns what stands for a run's name.
func runOf(name string) (r run, err error) {
	if len(name) > maxRun {
		return r, fmt.Errorf("%w: the name of the run has %d bytes, at most %d", ledger.ErrArgument, len(name), maxRun)
	}
	if name == "" {
		return r, nil
	}
	sum := sha256.Sum256([]byte(name))
	copy(r[:], sum[:])
	return r, nil
}

// belongs notes which run attached as a rank last.
func (j *job) belongs(r *rank, caller run) {
	if r.run != caller {
		r.run, j.dirty = caller, true
	}
}

// runs lists the ranks' runs, as they are stored; nil when no rank is known to belong to one.
func (j *job) runs() []byte {
	b := make([]byte, 0, len(j.ranks)*record.RunBytes)
	for i := range j.ranks {
		b = append(b, j.ranks[i].run[:]...)
	}
	if len(bytes.Trim(b, "\x00")) == 0 {
		return nil
	}
	return b
}

// restoreRuns is runs' inverse.
func (j *job) restoreRuns() {
	for i := range j.ranks {
		if from := i * record.RunBytes; from+record.RunBytes <= len(j.Runs) {
			j.ranks[i].run = run(j.Runs[from : from+record.RunBytes])
		}
	}
}

// ownRun refuses a caller that would go on, without knowing, where another run stopped: what that run acknowledged is
// lost to the caller's model, on whichever rank. A rank that the caller's run attached before is its own. l.mu is held.
func (l *leader) ownRun(j *job, n uint32, caller run, now time.Time) error {
	if caller == (run{}) || int64(n) >= int64(len(j.ranks)) || j.ranks[n].run == caller {
		return nil // the ledger refuses a rank that does not exist
	}
	n, consumed, err := l.consumed(j, n, caller)
	if err != nil || !consumed {
		return err
	}
	st, err := l.ledger.Rank(j.ID, n, now)
	if err != nil {
		return err
	}
	if l.ending(j, now) {
		return j.isDone()
	}
	detail := &apiv1.PartlyConsumed{
		Job: j.ID, Rank: n, Epoch: st.Epoch, Epochs: j.spec.Epochs, Delivered: st.Delivered, Minibatches: st.Owned, Finished: j.finished,
	}
	where := fmt.Sprintf("rank %d is in epoch %d of %d and has acknowledged %d of its %d mini-batches", n, st.Epoch+1, j.spec.Epochs, st.Delivered, st.Owned)
	if j.finished {
		where = "every mini-batch was acknowledged, and its trainers have not said that they are through"
	}
	werr := connect.NewError(connect.CodeFailedPrecondition, fmt.Errorf(
		"job %s was partly consumed by another run: %s. Give the state or token of your last checkpoint, or say resume to go on without what was acknowledged; "+
			"for all of the data submit the job under another name, or cancel this one first. If this is a rank of the same run, give all of its ranks the same run", j.ID, where))
	d, err := connect.NewErrorDetail(detail)
	if err != nil {
		return err
	}
	werr.AddDetail(d)
	return werr
}

// consumed finds a rank that another run than the caller's attached last and of which something was acknowledged, the
// caller's first. l.mu is held.
func (l *leader) consumed(j *job, n uint32, caller run) (rank uint32, found bool, err error) {
	touched := func(n uint32) bool {
		epoch, delivered, perr := l.ledger.Progress(j.ID, n)
		err = perr
		return perr == nil && (epoch > j.first() || delivered > 0)
	}
	if touched(n) || err != nil {
		return n, err == nil, err
	}
	for i := range j.ranks {
		if m := uint32(i); j.ranks[i].run != caller && touched(m) || err != nil {
			return m, err == nil, err
		}
	}
	return n, false, nil
}
