package control

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/millrace/millrace/control/ledger/format"
	"github.com/millrace/millrace/control/record"
	"github.com/millrace/millrace/control/store"
)

// loaded holds the stored values of one job.
type loaded struct {
	spec, state []byte
	decisions   []byte
	pieces      map[int][][]byte // by edition, in order
	passing     map[int][][]byte // the numbers of passing rows: by edition, in order
	records     []format.Record
}

// load reads all records that earlier leaders stored. Nothing else runs yet.
func (l *leader) load() error {
	ctx, cancel := context.WithTimeout(l.ctx, time.Minute)
	defer cancel()
	var err error
	if l.key, err = l.term.Secret(ctx, record.ClusterKey, record.KeyBytes); err != nil {
		return err
	}
	if err := l.copies.load(ctx, l.term, l.logger); err != nil {
		return err
	}
	now := time.Now()
	err = l.term.Scan(ctx, record.NodePrefix, func(key string, value []byte) error {
		if err := l.mu.fleet.Restore(now, value); err != nil {
			l.logger.Warn("a stored node cannot be read and is passed over", "key", key, "error", err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	jobs := map[string]*loaded{}
	err = l.term.Scan(ctx, record.JobPrefix, func(key string, value []byte) error {
		id, rest, ok := record.SplitKey(key)
		if !ok {
			return nil
		}
		if jobs[id] == nil {
			jobs[id] = &loaded{pieces: map[int][][]byte{}, passing: map[int][][]byte{}}
		}
		return jobs[id].sortIn(id, rest, slices.Clone(value))
	})
	if err != nil {
		return err
	}
	for id, v := range jobs {
		if v.spec == nil {
			// The submission was interrupted: its data were written, and its spec was not.
			if err := l.commit(ctx, store.DeletePrefix(record.Key(id, ""))); err != nil {
				return err
			}
			continue
		}
		j, err := l.restoreJob(v, now)
		if err != nil {
			return fmt.Errorf("job %s: %w", id, err)
		}
		l.mu.jobs[id] = j
	}
	l.settleLocked(now)
	return nil
}

// sortIn assigns one stored value to its field.
func (v *loaded) sortIn(id, rest string, value []byte) error {
	switch {
	case rest == "spec":
		v.spec = value
	case rest == "state":
		v.state = value
	case rest == "decisions":
		v.decisions = value
	case strings.HasPrefix(rest, "data/"):
		// Keys come in ascending order, and so do the pieces.
		g, err := strconv.Atoi(strings.Split(rest, "/")[1])
		if err != nil {
			return fmt.Errorf("job %s: stored key %q", id, rest)
		}
		v.pieces[g] = append(v.pieces[g], value)
	case strings.HasPrefix(rest, record.PassingPrefix):
		g, err := strconv.Atoi(strings.Split(rest, "/")[1])
		if err != nil {
			return fmt.Errorf("job %s: stored key %q", id, rest)
		}
		v.passing[g] = append(v.passing[g], value)
	default:
		r, err := format.RecordOf(id, rest, value)
		if err != nil {
			return fmt.Errorf("job %s: %w", id, err)
		}
		v.records = append(v.records, r)
	}
	return nil
}

// restoreJob makes a job from its stored values, and restores its state in the ledger.
func (l *leader) restoreJob(v *loaded, now time.Time) (*job, error) {
	stored, spec, err := record.ReadSubmission(v.spec)
	if err != nil {
		return nil, fmt.Errorf("spec: %w", err)
	}
	j, _, err := newJob(stored, spec, l.key)
	if err != nil {
		return nil, fmt.Errorf("spec: %w", err)
	}
	var state record.State
	if err := json.Unmarshal(v.state, &state); err != nil {
		return nil, fmt.Errorf("state: %w", err)
	}
	if len(v.decisions) > 0 {
		var list []json.RawMessage
		if err := json.Unmarshal(v.decisions, &list); err != nil {
			return nil, fmt.Errorf("decisions: %w", err)
		}
		for _, d := range list {
			j.decisions = append(j.decisions, d)
		}
	}
	if state.Phase.Ended() {
		return j, l.mu.machine.Add(j.Job, state, nil, now)
	}
	for _, g := range state.Editions {
		if len(v.pieces[g.Number]) != g.Pieces {
			return nil, fmt.Errorf("edition %d: %d pieces of %d are stored", g.Number, len(v.pieces[g.Number]),
				g.Pieces)
		}
		data, err := record.Unpack(v.pieces[g.Number])
		if err != nil {
			return nil, fmt.Errorf("edition %d: %w", g.Number, err)
		}
		full, err := newEdition(j, data, g.Number, g.First)
		if err != nil {
			return nil, fmt.Errorf("edition %d: %w", g.Number, err)
		}
		if err := full.restoreSelection(j, g.Selection, v.passing[g.Number]); err != nil {
			return nil, fmt.Errorf("edition %d: %w", g.Number, err)
		}
		if full.Digest != g.Digest {
			return nil, fmt.Errorf("edition %d: its digest is %s and was %s: another build cuts the data "+
				"differently", g.Number, full.Digest, g.Digest)
		}
		full.Edition.Edition = g
		full.onNodes = !full.needsSelection() // a node without the edition gets it after its next heartbeat
		j.editions[g.Number] = full
	}
	if err := j.rememberPartitions(state, v.pieces); err != nil {
		return nil, err
	}
	if err := l.mu.machine.Add(j.Job, state, v.records, now); err != nil || !j.Phase().Begun() {
		return j, err
	}
	a := j.State().Allocation
	j.needsWorkers = j.workersMake() && (!j.drivesMake() || a.Workers != 0)
	j.steering.Restore(a.Drives, a.Workers)
	return j, allow(l.mu.machine.Ledger, j.ID, a, now)
}

// rememberPartitions notes the partitions of editions that all ranks have left, so that a job with follow does not
// mistake them for new ones.
func (j *job) rememberPartitions(state record.State, pieces map[int][][]byte) error {
	for n, p := range pieces {
		if n >= state.Taken || len(state.Editions) > 0 && n >= state.Editions[0].Number {
			continue // the edition is in use, or its leader stored it and died before it was used
		}
		data, err := record.Unpack(p)
		if err != nil {
			return fmt.Errorf("edition %d: %w", n, err)
		}
		for _, part := range data.Manifest.Partitions {
			j.formerly[part.Name] = struct{}{}
		}
	}
	return nil
}

// forget erases jobs that have ended, the oldest first, until keep are left.
func (l *leader) forget(ctx context.Context, keep int) error {
	l.mu.Lock()
	var old []*job
	for _, life := range l.mu.machine.Lives.Ended(keep) {
		old = append(old, l.mu.jobs[life.ID])
	}
	l.mu.Unlock()
	for _, j := range old {
		if err := l.erase(ctx, j); err != nil {
			return err
		}
	}
	return nil
}

// erase forgets a job, unless its state is being written.
func (l *leader) erase(ctx context.Context, j *job) error {
	j.storing.Lock()
	defer j.storing.Unlock()
	if err := l.commit(ctx, store.DeletePrefix(record.Key(j.ID, ""))); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.mu.jobs, j.ID)
	l.mu.machine.Forget(j.ID)
	return nil
}
