package controller

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/controller/health"
	"github.com/millrace/millrace/nvme/cs"
)

// event waits for an event in the background.
func waitEvent(c nvme.Conn) chan nvme.AsyncEvent {
	ch := make(chan nvme.AsyncEvent, 1)
	go func() {
		cmd := nvme.AsyncEventRequest()
		out, err := c.Admin(context.Background(), &cmd, nil)
		if err == nil {
			ch <- nvme.ParseAsyncEvent(out.DW0())
		}
		close(ch)
	}()
	return ch
}

func TestEventsAreReportedOnceUntilTheirPageIsRead(t *testing.T) {
	d := newDrive(t)
	c := d.connect()
	d.NamespaceChanged(1) // no host asked
	admin(t, c, nvme.SetFeature(nvme.FeatureAsyncEvents, noticeNamespace|noticeFirmware), nil, nvme.Success)
	d.NamespaceChanged(3)
	d.NamespaceChanged(3)
	assert.Equal(t, nvme.EventNamespaceChanged, <-waitEvent(c), "kept until somebody asks")
	next := waitEvent(c)
	d.NamespaceChanged(2) // masked: the page has not been read
	d.FirmwareActivating()
	assert.Equal(t, nvme.EventFirmware, <-next)

	page := make([]byte, 4096)
	cmd := nvme.GetLog(nvme.LogChangedNamespaces, 0, 0, 4096)
	cmd.SetDW(10, cmd.DW(10)|1<<15) // retain
	admin(t, c, cmd, page, nvme.Success)
	assert.Equal(t, []uint32{1, 2, 3}, nvme.UnmarshalNamespaceList(page))
	next = waitEvent(c)
	d.NamespaceChanged(2)
	admin(t, c, nvme.GetLog(nvme.LogFirmware, 0, 0, 512), page[:512], nvme.Success)
	d.FirmwareActivating()
	assert.Equal(t, nvme.EventFirmware, <-next, "the namespace event is still masked")
	admin(t, c, nvme.GetLog(nvme.LogChangedNamespaces, 0, 0, 4096), page, nvme.Success)
	admin(t, c, nvme.GetLog(nvme.LogChangedNamespaces, 0, 0, 4096), page, nvme.Success)
	assert.Empty(t, nvme.UnmarshalNamespaceList(page))
	d.NamespaceChanged(1)
	assert.Equal(t, nvme.EventNamespaceChanged, <-waitEvent(c))
}

func TestHealthEventsFollowTheConfigurationAndTheThreshold(t *testing.T) {
	d := newDrive(t)
	c := d.connect()
	hot := health.Sensors{Temperature: 330, AvailableSpare: 100, Unreliable: true}
	d.SetHealth(hot)
	admin(t, c, nvme.SetFeature(nvme.FeatureAsyncEvents, nvme.WarningTemperature), nil, nvme.Success)
	d.SetHealth(hot) // below the threshold, and the other warning was not asked for
	admin(t, c, nvme.SetFeature(nvme.FeatureTemperature, 330), nil, nvme.Success)
	d.SetHealth(hot)
	assert.Equal(t, nvme.EventTemperature, <-waitEvent(c))
	admin(t, c, nvme.SetFeature(nvme.FeatureAsyncEvents, nvme.WarningReliability|nvme.WarningSpare), nil, nvme.Success)
	d.SetHealth(health.Sensors{Temperature: 300, Unreliable: true, AvailableSpare: 1, SpareThreshold: 2})
	got := []nvme.AsyncEvent{<-waitEvent(c), <-waitEvent(c)}
	assert.ElementsMatch(t, []nvme.AsyncEvent{nvme.EventReliability, nvme.EventSpare}, got)
}

func TestImageActivationTellsOtherHosts(t *testing.T) {
	d := newDrive(t)
	a, b := d.connect(), d.connect()
	admin(t, b, nvme.SetFeature(nvme.FeatureAsyncEvents, noticeNamespace), nil, nvme.Success)
	next := waitEvent(b)
	admin(t, a, cs.ImageDownload(cs.Chunk{Slot: 1, Size: 4, Len: 4}), make([]byte, 4), nvme.Success)
	admin(t, a, cs.ImageActivate(1), nil, nvme.Success)
	assert.Equal(t, nvme.EventNamespaceChanged, <-next)
}

// waiting is the number of event requests that wait.
func waiting(c *Controller) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.events.waiting)
}

func until(t testing.TB, what func() bool) {
	t.Helper()
	require.Eventually(t, what, waitLong, waitShort)
}

func TestEventRequestLimit(t *testing.T) {
	d := newDrive(t)
	c := d.enabled()
	done := make(chan nvme.Completion, AsyncEventLimit)
	for cid := range uint16(AsyncEventLimit) {
		go func() {
			cmd := nvme.AsyncEventRequest()
			cmd.SetCID(cid)
			done <- c.Execute(context.Background(), 0, &cmd, nil)
		}()
	}
	until(t, func() bool { return waiting(c) == AsyncEventLimit })
	cmd := nvme.AsyncEventRequest()
	cmd.SetCID(100)
	out := c.Execute(context.Background(), 0, &cmd, nil)
	assert.ErrorIs(t, out.Status(), nvme.AsyncEventLimitExceeded)

	abort := nvme.Abort(0, 2)
	abort.SetCID(101)
	out = c.Execute(context.Background(), 0, &abort, nil)
	assert.True(t, out.Status().OK())
	assert.Zero(t, out.DW0())
	ended := <-done
	assert.ErrorIs(t, ended.Status(), nvme.CommandAborted)
	assert.Equal(t, uint16(2), ended.CID())
	until(t, func() bool { return waiting(c) == AsyncEventLimit-1 })

	require.NoError(t, c.Close())
	for range AsyncEventLimit - 1 {
		ended = <-done
		assert.ErrorIs(t, ended.Status(), nvme.QueueDeleted)
	}
}

// TestAnAbortThatComesTooLateTakesNothing aborts a command that has already given the host an event, memory or a range
// set: the command completes with success and its result, because the host could not give back what it does not know.
func TestAnAbortThatComesTooLateTakesNothing(t *testing.T) {
	c := newDrive(t).enabled()
	set, err := cs.CreateRangeSet([]cs.Range{{Addr: 0, Len: 4096}})
	require.NoError(t, err)
	for _, test := range []struct {
		name string
		cmd  nvme.Command
		data []byte
		want nvme.Status
	}{
		{"keep alive", nvme.KeepAlive(), nil, nvme.CommandAborted},
		{"reserve", cs.SLMReserve(0, 4096), nil, nvme.Success},
		{"range set", set.Command, set.Data, nvme.Success},
	} {
		h, ns, _, st := c.checkEntry(0, &test.cmd)
		require.True(t, st.OK(), test.name)
		r := &request{c: c, h: h, caller: context.Background(), cmd: &test.cmd, data: test.data, ns: ns}
		require.True(t, c.beginRequest(r).OK(), test.name)
		st = r.contained()
		require.True(t, st.OK(), "%s: %s", test.name, st)
		c.mu.Lock()
		r.abortWith(nvme.CommandAborted)
		c.mu.Unlock()
		assert.Equal(t, test.want, c.endRequest(r, st), test.name)
	}
	assert.Len(t, c.sets, 1)
}

func TestAbort(t *testing.T) {
	d := newDrive(t)
	d.compute.started, d.compute.hold = make(chan struct{}), make(chan struct{})
	c := d.enabled()
	p := cs.Preprocess{}
	b, err := p.Marshal()
	require.NoError(t, err)
	cmd := cs.PreprocessCommand(uint32(len(b)))
	cmd.SetCID(7)
	done := make(chan nvme.Completion)
	go func() { done <- c.Execute(context.Background(), 1, &cmd, b) }()
	<-d.compute.started

	again := c.Execute(context.Background(), 1, &cmd, b)
	assert.ErrorIs(t, again.Status(), nvme.CommandIDConflict)

	for _, test := range []struct {
		name             string
		queue, commandID uint16
		aborted          bool
	}{
		{"another command", 1, 8, false},
		{"another queue", 2, 7, false},
		{"the admin queue", 0, 7, false},
		{"the command", 1, 7, true},
	} {
		abort := nvme.Abort(test.queue, test.commandID)
		abort.SetCID(99)
		out := c.Execute(context.Background(), 0, &abort, nil)
		require.True(t, out.Status().OK(), test.name)
		assert.Equal(t, test.aborted, out.DW0() == 0, test.name)
	}
	out := <-done
	assert.ErrorIs(t, out.Status(), nvme.CommandAborted)
	assert.False(t, out.Status().DNR())
	abort := nvme.Abort(0, 99) // itself
	abort.SetCID(99)
	out = c.Execute(context.Background(), 0, &abort, nil)
	assert.Equal(t, uint32(1), out.DW0())
}
