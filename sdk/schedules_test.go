package sdk_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	pq "github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/image"
	"github.com/millrace/millrace/fpga/image/stock"
	"github.com/millrace/millrace/nvme/controller"
	"github.com/millrace/millrace/nvme/fabrics"
	"github.com/millrace/millrace/sdk"
	"github.com/millrace/millrace/sdk/processor"
	"github.com/millrace/millrace/sdk/processor/processortest"
)

const (
	shortSchedules = 12  // of every run of the tests
	longSchedules  = 400 // with MILLRACE_LONG

	// lateBound is by how many ticks of the ruler a mini-batch may come after the one before it, whatever happens in
	// other regions. On a machine of two processors, four engine threads, a self-test, the hosts and the ruler share
	// them: the slowest has an eighth of what the ruler has, and a mini-batch is the work of a few ticks. The rest is for
	// the moments at which a process waits for its turn, some at each of the commands of a mini-batch.
	lateBound = 1000

	// scheduleTime is the longest time until a host has made a whole run.
	scheduleTime = 2 * time.Minute
)

// TestRandomSchedulesOfRegions: hosts load, activate, switch, move, reset their controllers and are lost, and the drive
// is killed, at random, while each host has a job in a region. Every job's bytes are right or its error has a type and
// a cause; afterwards every region takes programs and images; and no mini-batch is late because of what happens in
// other regions. MILLRACE_SCHEDULE=N runs the schedule of one seed.
func TestRandomSchedulesOfRegions(t *testing.T) {
	schedules := uint64(shortSchedules)
	if os.Getenv("MILLRACE_LONG") != "" {
		schedules = longSchedules
	}
	var seeds []uint64
	for seed := range schedules {
		seeds = append(seeds, seed)
	}
	if s := os.Getenv("MILLRACE_SCHEDULE"); s != "" {
		seed, err := strconv.ParseUint(s, 10, 64)
		require.NoError(t, err, "MILLRACE_SCHEDULE")
		seeds = []uint64{seed}
	}
	jobs, images := scheduledJobs(t), scheduledImages(t)
	var late []uint64
	errors := uint64(0)
	for _, seed := range seeds {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			s := newScheduleStage(t, jobs, images)
			defer func() {
				if t.Failed() {
					t.Logf("MILLRACE_SCHEDULE=%d has this schedule:\n%s", seed, scheduleText(newSchedule(seed)))
				}
			}()
			s.run(newSchedule(seed))
			for _, h := range s.hosts {
				late = append(late, h.late...)
				errors += h.errs.Load()
			}
		})
		if t.Failed() {
			return
		}
	}
	slices.Sort(late)
	require.NotEmpty(t, late)
	t.Logf("%d schedules, %d runs ended with an error; of %d mini-batches, half came within %d ticks of the one before, "+
		"99 %% within %d, the last within %d (bound %d)", len(seeds), errors, len(late), late[len(late)/2],
		late[len(late)*99/100], late[len(late)-1], lateBound)
}

// scheduledJobs are the jobs of the hosts, with the reference's mini-batches.
func scheduledJobs(t *testing.T) (jobs [scheduleHosts]*scheduledJob) {
	t.Helper()
	data := processortest.WriteParquet(t, processortest.Layout{Rows: 1500, Group: 700, Page: 2 << 10, Codec: &pq.Snappy,
		Seed: 43})
	for h := range jobs {
		j := &scheduledJob{data: data, run: processor.Run{First: int64(5 * h), Rows: 1400, Batch: 128}}
		j.program, j.schema = processortest.Programs()[[]string{"jagged", "fixed", "jagged"}[h]]()
		run := j.run
		run.Partition = processortest.Open(t, data, true)
		j.want = processortest.Reference(t, j.program, j.schema, run)
		jobs[h] = j
	}
	return jobs
}

// scheduledImages are images that offer what the stock image does, and the stock image last.
func scheduledImages(t *testing.T) (images [][]byte) {
	t.Helper()
	stock, err := stock.Image()
	require.NoError(t, err)
	m, err := image.Parse(stock)
	require.NoError(t, err)
	for n := range scheduleImages {
		spec := m.Spec
		spec.Partition.Slots = uint16(7 + n)
		b, err := image.Build(&spec)
		require.NoError(t, err)
		images = append(images, b)
	}
	return append(images, stock)
}

// scheduleStage is a drive and its hosts while a schedule happens.
type scheduleStage struct {
	t      *testing.T
	drive  *driveProcess
	ruler  *ruler
	images [][]byte
	hosts  []*scheduledHost
	made   atomic.Uint64  // mini-batches of all hosts
	beside sync.WaitGroup // events with images, which go on while the next events happen
}

func newScheduleStage(t *testing.T, jobs [scheduleHosts]*scheduledJob, images [][]byte) *scheduleStage {
	s := &scheduleStage{t: t, images: images, drive: newDriveProcess(t, jobs[0].data), ruler: newRuler()}
	t.Cleanup(s.ruler.stop)
	for h, job := range jobs {
		set := []sdk.Commands{sdk.Vendor, sdk.Standard}[h%2]
		s.hosts = append(s.hosts, &scheduledHost{t: t, name: fmt.Sprintf("host %d (%s)", h, set), set: set, id: uuid.New(),
			job: job, drive: s.drive, ruler: s.ruler, made: &s.made, region: h})
	}
	return s
}

// run lets a schedule happen beside the jobs, and checks what is left.
func (s *scheduleStage) run(events []scheduledEvent) {
	ctx, cancel := context.WithCancel(s.t.Context())
	var working sync.WaitGroup
	defer working.Wait()
	defer s.beside.Wait()
	defer cancel()
	for _, h := range s.hosts {
		working.Go(func() { h.work(ctx) })
	}
	s.awaitRuns(1)
	for _, e := range events {
		s.await("mini-batches", func(before uint64) bool { return s.made.Load() >= before+uint64(e.after) })
		if s.t.Failed() {
			return
		}
		s.happen(ctx, e)
	}
	s.beside.Wait()
	s.awaitRuns(2) // the run that is under way may have begun before the last event
	cancel()
	working.Wait()
	for _, h := range s.hosts {
		for _, late := range h.late {
			assert.LessOrEqual(s.t, late, uint64(lateBound), "%s: ticks between two mini-batches", h.name)
		}
	}
	if !s.t.Failed() {
		s.checkRegions()
		s.drive.end()
	}
}

// awaitRuns waits until every host has made some more whole runs.
func (s *scheduleStage) awaitRuns(n uint64) {
	for _, h := range s.hosts {
		before := h.runs.Load()
		s.await(h.name+": whole runs", func(uint64) bool { return h.runs.Load() >= before+n })
	}
}

// await waits until done, which gets the mini-batches that there were at the beginning. It ends early if the test has
// failed.
func (s *scheduleStage) await(what string, done func(before uint64) bool) {
	before := s.made.Load()
	for begin := time.Now(); !done(before) && !s.t.Failed(); time.Sleep(time.Millisecond) {
		if time.Since(begin) > scheduleTime {
			assert.Fail(s.t, "no progress", "%s: none within %v", what, scheduleTime)
			return
		}
	}
}

// happen makes an event happen. An event with an image goes on after happen has returned.
func (s *scheduleStage) happen(ctx context.Context, e scheduledEvent) {
	h := s.hosts[e.host]
	switch e.kind {
	case loadEvent:
		s.withDevice(h, func(dev *sdk.Device) error {
			_, _, err := dev.PlaceImage(ctx, s.images[e.image])
			return err
		}, func() {})
	case activateEvent:
		s.activate(ctx, h, e)
	case switchEvent:
		h.begin() // with the standard command set, the region has no image for a moment
		s.withDevice(h, func(dev *sdk.Device) error { return s.activateImage(ctx, dev, e.image) }, h.end)
	case moveEvent:
		s.beside.Wait() // what is activated in the region would be a fault of this host, too
		h.move(e.region)
	case resetEvent:
		h.fault(func() {
			if _, conn := h.association(); conn != nil {
				set := fabrics.PropertySet(controller.PropertyCC, 4, controller.DefaultCC&^1)
				_, err := conn.Admin(ctx, &set, nil)
				s.typed(err)
			}
		})
	case lossEvent:
		h.fault(h.cut)
	case killEvent:
		for _, h := range s.hosts {
			h.begin()
			defer h.end()
		}
		s.drive.kill()
		s.drive.start()
	}
}

// withDevice runs an event beside the job of a host, in the association of the job, if there is one, and then end.
func (s *scheduleStage) withDevice(h *scheduledHost, do func(dev *sdk.Device) error, end func()) {
	dev, _ := h.association()
	s.beside.Go(func() {
		defer end()
		if dev != nil {
			s.typed(do(dev))
		}
	})
}

// activate activates an image in any region, in an association of its own. The hosts that have their jobs there may
// fail.
func (s *scheduleStage) activate(ctx context.Context, h *scheduledHost, e scheduledEvent) {
	var concerned []*scheduledHost
	for _, other := range s.hosts {
		if other.uses(e.region) {
			other.begin()
			concerned = append(concerned, other)
		}
	}
	s.beside.Go(func() {
		defer func() {
			for _, other := range concerned {
				other.end()
			}
		}()
		dev, _, _, err := openScheduled(ctx, s.drive, h.id, h.set, e.region)
		if err != nil {
			s.typed(err)
			return
		}
		s.typed(s.activateImage(ctx, dev, e.image))
		s.typed(dev.Close())
	})
}

// activateImage puts an image into a slot, unless it is there, and activates it in the region of a device.
func (s *scheduleStage) activateImage(ctx context.Context, dev *sdk.Device, number int) error {
	slot, _, err := dev.PlaceImage(ctx, s.images[number])
	if err != nil {
		return err
	}
	return dev.ActivateImage(ctx, slot)
}

func (s *scheduleStage) typed(err error) {
	if err != nil {
		assert.True(s.t, typedDriveError(err), "an error of no type: %v", err)
	}
}

// checkRegions checks that in every region programs run as in a new drive: with the image that is active there, with
// the stock image, and with one that is loaded now.
func (s *scheduleStage) checkRegions() {
	for _, number := range []int{-1, scheduleImages, 0} {
		for region := range scheduleRegions {
			h := s.hosts[region%scheduleHosts]
			dev, _, _, err := openScheduled(s.t.Context(), s.drive, uuid.New(), h.set, region)
			require.NoError(s.t, err, "region %d", region)
			if number < 0 {
				r, err := dev.ImageLog(s.t.Context())
				require.NoError(s.t, err)
				if _, ok := r.In(region).Active(); !ok { // the host that replaced it was lost before the second step
					require.NoError(s.t, dev.ActivateImage(s.t.Context(), 0))
				}
			} else {
				require.NoError(s.t, s.activateImage(s.t.Context(), dev, number), "region %d, image %d", region, number)
			}
			require.NoError(s.t, h.job.runOn(s.t.Context(), dev, func() {}, h.differs), "region %d, image %d", region,
				number)
			require.NoError(s.t, dev.Close())
		}
	}
}
