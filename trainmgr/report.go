package trainmgr

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/millrace/millrace/host/api"
	"github.com/millrace/millrace/internal/quantity"
	"github.com/millrace/millrace/trainmgr/inputqueue"
)

// Report describes how a job went, so far or at its end. Field names in JSON carry their unit.
type Report struct {
	Job               string  `json:"job"`
	Rows              int64   `json:"rows"`
	LeftOutRows       int64   `json:"left_out_rows"` // rows of an epoch's data that no rank gets
	MiniBatches       int64   `json:"mini_batches"`
	ShortMiniBatches  uint64  `json:"short_mini_batches"` // An epoch has this many with fewer rows than a batch.
	Bytes             int64   `json:"bytes"`
	ElapsedSeconds    float64 `json:"elapsed_seconds"`
	RowsPerSecond     float64 `json:"rows_per_second"`
	TRowsPerSecond    float64 `json:"t_rows_per_second"` // 0 if not measured
	PRowsPerSecond    float64 `json:"p_rows_per_second"` // mean of the drives that hold data
	Drives            int     `json:"drives"`            // allowed at once: ceil(T/P)
	DrivesWanted      int     `json:"drives_wanted"`
	DrivesBusiest     int     `json:"drives_peak"`   // most at once
	StallSeconds      float64 `json:"stall_seconds"` // the trainer waited, after its first mini-batch
	Stalls            int     `json:"stalls"`
	FirstWaitSeconds  float64 `json:"first_wait_seconds"`
	WorkersBlockedSec float64 `json:"workers_blocked_seconds"` // workers waited for room, added up
	QueueDepthMean    float64 `json:"queue_depth_mean"`        // mini-batches
	QueueMaxBytes     int64   `json:"queue_max_bytes"`
	QueueLimitBytes   int64   `json:"queue_limit_bytes"`
	WaitSeconds       float64 `json:"wait_seconds"` // for engine threads
	MoveSeconds       float64 `json:"move_seconds"`
	DecodeSeconds     float64 `json:"decode_seconds"`
	TransformSeconds  float64 `json:"transform_seconds"`
	FetchSeconds      float64 `json:"fetch_seconds"`
	// ExpectedStallSecond is the sum over all epochs.
	ExpectedStallSecond float64           `json:"expected_stall_seconds"`
	AllocationNote      string            `json:"allocation"`
	HeldBackBy          string            `json:"bottleneck"`
	Notes               []string          `json:"notes,omitempty"`
	PerDrive            []api.DriveReport `json:"per_drive"`
	// Offload describes how the drives and the trainer's own CPUs shared the splits; nil if they did not share them.
	Offload *OffloadReport `json:"offload,omitempty"`
	// Autoscale describes how the number of drives followed the trainer; nil if it was fixed.
	Autoscale *AutoscaleReport `json:"autoscale,omitempty"`
}

// Report returns the job's report so far.
func (j *Job) Report(ctx context.Context) (*Report, error) {
	drives, notes, err := j.source.Report(ctx)
	if err != nil {
		return nil, fmt.Errorf("report: %w", err)
	}
	j.mu.Lock()
	tally, epoch := j.tally, j.epoch
	drives = tally.countDelivered(drives)
	j.mu.Unlock()
	epochs := append([]inputqueue.Statistics(nil), tally.epochs...)
	elapsed := tally.elapsed
	if tally.current != nil {
		epochs = append(epochs, tally.current.Statistics())
		tally.busiestDrives = max(tally.busiestDrives, tally.current.BusiestDrives())
		elapsed += j.options.Now().Sub(tally.begun)
	}
	allocated := j.source.Allocation()
	r := &Report{
		Job: j.digest.String(), Rows: tally.rows, LeftOutRows: epoch.LeftOutRows, MiniBatches: tally.batches,
		ShortMiniBatches: epoch.Plan.ShortMiniBatches(), Bytes: tally.bytes,
		ElapsedSeconds: elapsed.Seconds(), TRowsPerSecond: allocated.RowsPerSecond,
		Drives: allocated.Drives, DrivesWanted: allocated.Wanted, DrivesBusiest: tally.busiestDrives,
		QueueLimitBytes: j.options.QueueBytes, AllocationNote: allocated.Note,
		ExpectedStallSecond: allocated.ExpectedStall.Seconds() * float64(j.options.Epochs), PerDrive: drives,
		Notes: notes,
	}
	if elapsed > 0 {
		r.RowsPerSecond = float64(tally.rows) / elapsed.Seconds()
	}
	for _, p := range allocated.P {
		r.PRowsPerSecond += p / float64(len(allocated.P))
	}
	r.addQueues(epochs)
	r.addDrives(drives)
	r.HeldBackBy = r.bottleneck(j.options.modelledClock)
	if source, ok := j.source.(*storageSource); ok && source.scaling != nil {
		r.Autoscale = source.scaling.report()
	}
	if source, ok := j.source.(*storageSource); ok && source.splitSharing != nil {
		r.Offload = source.splitSharing.report()
		if whole := r.ElapsedSeconds + r.Offload.ProfileSeconds; whole > 0 {
			r.Offload.ProfileShare = r.Offload.ProfileSeconds / whole
		}
	}
	return r, nil
}

// countDelivered returns the drives' reports with the rows, fragments and mini-batches that the trainer got from each
// drive: a drive whose node was started again does not know them. The report of a drive that is gone has nothing else.
// Job.mu is held.
func (t *tally) countDelivered(drives []api.DriveReport) []api.DriveReport {
	drives = slices.Clone(drives)
	reported := map[string]bool{}
	for i := range drives {
		d := &drives[i]
		reported[d.Name], d.CountedRows = true, d.Rows
		t.drives[d.Name].setIn(d)
	}
	for _, name := range slices.Sorted(maps.Keys(t.drives)) {
		if !reported[name] {
			d := api.DriveReport{Name: name, Problem: "its times and bytes are unknown: it does not answer"}
			t.drives[name].setIn(&d)
			drives = append(drives, d)
		}
	}
	return drives
}

// setIn sets what the trainer got from a drive in the drive's report.
func (t driveTally) setIn(d *api.DriveReport) {
	d.Rows, d.Fragments, d.MiniBatches = t.rows, t.fragments, t.batches
}

// addQueues adds the statistics of each epoch's input queue.
func (r *Report) addQueues(epochs []inputqueue.Statistics) {
	var total inputqueue.Statistics
	for i, q := range epochs {
		r.StallSeconds += q.Stall.Seconds()
		r.Stalls += q.Stalls
		if i == 0 {
			r.FirstWaitSeconds = q.FirstWait.Seconds()
		} else { // the trainer runs already, so the wait for a later epoch's first mini-batch is a stall
			r.StallSeconds += q.FirstWait.Seconds()
		}
		r.WorkersBlockedSec += q.Blocked.Seconds()
		r.QueueMaxBytes = max(r.QueueMaxBytes, q.MaxBytes)
		total.DepthTime += q.DepthTime
		total.Elapsed += q.Elapsed
	}
	r.QueueDepthMean = total.DepthMean()
}

// addDrives adds the work of each drive, and a note for each drive with a problem.
func (r *Report) addDrives(drives []api.DriveReport) {
	for _, d := range drives {
		r.WaitSeconds += d.Wait.Seconds()
		r.MoveSeconds += d.Move.Seconds()
		r.DecodeSeconds += d.Decode.Seconds()
		r.TransformSeconds += d.Transform.Seconds()
		r.FetchSeconds += d.Fetch.Seconds()
		if d.RowsDropped > 0 {
			r.Notes = append(r.Notes, fmt.Sprintf("drive %s dropped %s", d.Name,
				quantity.Of(d.RowsDropped, "malformed row")))
		}
		if d.CountedRows < d.Rows && d.Problem == "" {
			r.Notes = append(r.Notes, fmt.Sprintf("drive %s began to count again, as after a restart of its node: its "+
				"times, bytes and counters are of %d of the rows", d.Name, d.CountedRows))
		}
		if d.Problem != "" {
			r.Notes = append(r.Notes, fmt.Sprintf("drive %s: %s", d.Name, d.Problem))
		}
	}
}

// ignoredStall is the share of the time that a trainer may wait before the report looks for a cause.
const ignoredStall = 0.05

// bottleneck names the part that limited the job's speed. It names a stage of the drives unless their timing is
// modelled: the times of stages are this machine's, and the model decides which stage is the slowest.
func (r *Report) bottleneck(modelled bool) string {
	if r.ElapsedSeconds <= 0 || r.MiniBatches == 0 {
		return "nothing has run yet"
	}
	stalled := r.StallSeconds / r.ElapsedSeconds
	if stalled < ignoredStall {
		return fmt.Sprintf("the trainer: it waited %.1f%% of the time, and the queue held %.1f mini-batches on average",
			100*stalled, r.QueueDepthMean)
	}
	where := ""
	if !modelled {
		where = "; they spent most of their time in " + r.longestStage()
	}
	switch {
	case r.WorkersBlockedSec > r.StallSeconds:
		return fmt.Sprintf("the input queue's bound: workers waited %.2f s for room "+
			"and the trainer %.2f s for mini-batches: raise the queue's bytes",
			r.WorkersBlockedSec, r.StallSeconds)
	case r.ExpectedStallSecond > 0:
		return fmt.Sprintf("the drives, as foretold (%s)%s", r.AllocationNote, where)
	}
	return fmt.Sprintf("the drives: the trainer waited %.1f%% of the time%s", 100*stalled, where)
}

// longestStage returns the stage of the drives that took most of this machine's time.
func (r *Report) longestStage() string {
	longest, longestSeconds := "move", r.MoveSeconds
	for _, stage := range []struct {
		name    string
		seconds float64
	}{{"decode", r.DecodeSeconds}, {"transform", r.TransformSeconds}, {"fetch", r.FetchSeconds}} {
		if stage.seconds > longestSeconds {
			longest, longestSeconds = stage.name, stage.seconds
		}
	}
	return longest
}
