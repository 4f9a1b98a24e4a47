package deploy_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/image"
	"github.com/millrace/millrace/host/deploy"
)

// keep runs Keep for so many looks; between tells, after each, what to change.
func keep(t *testing.T, d *deploy.Deployer, f *fleet, looks int, between func(look int)) []deploy.Kept {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var all []deploy.Kept
	require.NoError(t, d.Keep(ctx, time.Millisecond, func() []deploy.Drive { return f.drives }, func(k deploy.Kept) {
		if len(all) == looks {
			return
		}
		all = append(all, k)
		if between != nil {
			between(len(all))
		}
		if len(all) == looks {
			cancel()
		}
	}))
	return all
}

func TestKeep(t *testing.T) {
	b, m := numbered(t, 7)
	f := newFleet(t, "a", "b")
	d := deploy.New(deploy.Options{Image: b, Gate: f.gate()})
	all := keep(t, d, f, 4, func(look int) {
		if look == 2 { // somebody takes one back
			_, err := f.drives[1].Device.RollbackImage(t.Context())
			require.NoError(t, err)
		}
	})
	assert.Len(t, all[0].Drift, 2)
	assert.Equal(t, []deploy.State{deploy.Updated, deploy.Updated}, states(all[0].Report))
	assert.Empty(t, all[1].Drift)
	assert.Empty(t, all[1].Report.Drives, "nothing is done where nothing drifts")
	assert.Equal(t, "b", all[2].Drift[0].Drive)
	assert.Equal(t, []deploy.State{deploy.Updated}, states(all[2].Report))
	assert.Empty(t, all[3].Drift)
	for _, d := range f.drives {
		assert.Equal(t, m.ID, runs(t, d))
	}
}

// TestKeepDoesNotTryAgainWhatFailed: neither on the drive that failed, nor on the next.
func TestKeepDoesNotTryAgainWhatFailed(t *testing.T) {
	b, _ := numbered(t, 7)
	_, stock := anImage(t, func(*image.Spec) {})
	f := newFleet(t, "a", "b", "c")
	all := keep(t, deploy.New(deploy.Options{Image: b, Gate: f.gate("b")}), f, 4, nil)
	assert.Equal(t, []deploy.State{deploy.Updated, deploy.RolledBack, deploy.Untouched}, states(all[0].Report))
	require.Error(t, all[0].Err)
	for _, k := range all[1:] {
		assert.True(t, k.Halted)
		assert.Empty(t, k.Report.Drives)
		assert.Len(t, k.Drift, 2, "it is told of")
	}
	assert.Equal(t, stock.ID, runs(t, f.drives[2]))

	f = newFleet(t, "a", "b", "c")
	all = keep(t, deploy.New(deploy.Options{Image: b, Gate: f.gate("b"), Policy: deploy.Policy{Failures: 1}}), f, 3, nil)
	assert.Equal(t, []deploy.State{deploy.Updated, deploy.RolledBack, deploy.Updated}, states(all[0].Report))
	for _, k := range all[1:] {
		assert.False(t, k.Halted)
		assert.Empty(t, k.Report.Drives)
		assert.Len(t, k.Drift, 1)
	}
}

func TestKeepEndsWithItsContext(t *testing.T) {
	b, _ := numbered(t, 7)
	f := newFleet(t, "a")
	ctx, cancel := context.WithCancel(t.Context())
	looks := 0
	d := deploy.New(deploy.Options{Image: b, Gate: func(ctx context.Context, _ deploy.Drive) error {
		cancel()
		<-ctx.Done()
		return ctx.Err()
	}})
	require.NoError(t, d.Keep(ctx, 0, func() []deploy.Drive { return f.drives }, func(k deploy.Kept) {
		looks++
		assert.Equal(t, []deploy.State{deploy.RolledBack}, states(k.Report))
		assert.False(t, k.Halted, "the image did nothing wrong")
	}))
	assert.Equal(t, 1, looks)
	require.Error(t, deploy.New(deploy.Options{}).Keep(t.Context(), 0, nil, nil))
}
