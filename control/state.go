package control

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/millrace/millrace/control/record"
	"github.com/millrace/millrace/control/store"
)

// storeState stores a job's state, unless it is stored already.
func (l *leader) storeState(ctx context.Context, j *job) error {
	return l.writeState(ctx, j, false)
}

// writeState stores a job's state, or the job's next state. It writes one state at a time, so that the last state is
// stored last. It writes nothing if the state is stored already or the job is forgotten.
func (l *leader) writeState(ctx context.Context, j *job, next bool) error {
	j.storing.Lock()
	defer j.storing.Unlock()
	var ops []store.Op
	var err error
	l.mu.Lock()
	if l.mu.jobs[j.ID] == j && (next || j.Unwritten()) {
		ops, err = j.stateOps(next, time.Now())
	}
	l.mu.Unlock()
	if err == nil && len(ops) > 0 {
		err = l.commit(ctx, ops...)
	}
	if err != nil {
		l.mu.Lock()
		j.StoreFailed()
		l.mu.Unlock()
	}
	return err
}

// stateOps renders the job's state, or its next state, and the autoscaler's decisions.
func (j *job) stateOps(next bool, now time.Time) (ops []store.Op, err error) {
	s := j.Storing(now)
	if next {
		s = j.StoringNext(now)
	}
	state, err := jsonOp(record.Key(j.ID, "state"), s)
	if err != nil {
		return nil, err
	}
	ops = append(ops, state)
	if len(j.decisions) > 0 {
		list := make([]json.RawMessage, len(j.decisions))
		for i, d := range j.decisions {
			list[i] = d
		}
		decisions, err := jsonOp(record.Key(j.ID, "decisions"), list)
		if err != nil {
			return nil, err
		}
		ops = append(ops, decisions)
	}
	if s.Phase.Ended() { // no leader needs these records of an ended job
		ops = append(ops, store.DeletePrefix(record.Key(j.ID, "data/")), store.DeletePrefix(record.Key(j.ID, "e")),
			store.DeletePrefix(record.Key(j.ID, record.PassingPrefix)), store.Delete(record.Key(j.ID, "ranks")))
	}
	return ops, nil
}

// storeEdition renders the data of an edition that a later leader needs, in the order in which to write them.
func storeEdition(j *job, g *edition) ([]store.Op, error) {
	pieces, err := record.Pack(g.data)
	if err != nil {
		return nil, err
	}
	g.Pieces = len(pieces)
	ops := make([]store.Op, len(pieces))
	for i, p := range pieces {
		ops[i] = store.Put(record.DataKey(j.Submission.ID, g.Number, i), p)
	}
	return ops, nil
}

// jsonOp renders a JSON record.
func jsonOp(key string, v any) (store.Op, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return store.Op{}, fmt.Errorf("%s: %w", key, err)
	}
	return store.Put(key, b), nil
}

// commitAll writes in as many transactions as are needed, in order.
func (l *leader) commitAll(ctx context.Context, ops []store.Op) error {
	// A piece is 128 KiB and etcd takes requests of 1.5 MiB.
	const most = 8
	for part := range slices.Chunk(ops, most) {
		if err := l.commit(ctx, part...); err != nil {
			return err
		}
	}
	return nil
}
