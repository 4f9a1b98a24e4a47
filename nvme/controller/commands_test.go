package controller

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/cs"
)

func TestParseTellsTheTransferOrTheStatus(t *testing.T) {
	c := newDrive(t).enabled()
	assert.Equal(t, HostID{NQN: "test", ID: [16]byte{1, 2, 3}}, c.Host())
	for name, test := range map[string]struct {
		queue  uint16
		cmd    nvme.Command
		change func(*nvme.Command)
		want   Transfer
		status nvme.Status
	}{
		"read":        {1, nvme.Read(1, 0, 2, 512), nil, Transfer{nvme.ControllerToHost, 1024}, nvme.Success},
		"write":       {1, nvme.Write(1, 0, 2, 512, false), nil, Transfer{nvme.HostToController, 1024}, nvme.Success},
		"store":       {1, cs.Store(0, 3), nil, Transfer{nvme.HostToController, 3}, nvme.Success},
		"flush":       {1, nvme.Flush(1), nil, Transfer{}, nvme.Success},
		"set feature": {0, nvme.SetFeature(nvme.FeatureWriteCache, 1), nil, Transfer{}, nvme.Success},
		"in capsule": {1, nvme.Write(1, 0, 1, 512, false), func(c *nvme.Command) {
			c.SetSGL(nvme.SGL{Length: 512, Type: nvme.SGLDataBlockOffset})
		}, Transfer{nvme.HostToController, 512}, nvme.Success},
		"in capsule at an offset": {1, nvme.Write(1, 0, 1, 512, false), func(c *nvme.Command) {
			c.SetSGL(nvme.SGL{Address: 8, Length: 512, Type: nvme.SGLDataBlockOffset})
		}, Transfer{}, nvme.InvalidSGLOffset},
		"flush without a descriptor": {1, nvme.Flush(1), func(c *nvme.Command) { c.SetSGL(nvme.SGL{}) }, Transfer{},
			nvme.Success},
		"set feature without a descriptor": {0, nvme.SetFeature(nvme.FeatureWriteCache, 1),
			func(c *nvme.Command) { c.SetSGL(nvme.SGL{}) }, Transfer{}, nvme.Success},
		"read without a descriptor": {1, nvme.Read(1, 0, 1, 512), func(c *nvme.Command) { c.SetSGL(nvme.SGL{}) },
			Transfer{}, nvme.InvalidSGLType},
		"data at an address": {1, nvme.Read(1, 0, 1, 512), func(c *nvme.Command) {
			c.SetSGL(nvme.SGL{Address: 4096, Length: 512})
		}, Transfer{}, nvme.InvalidSGLType},
		"nothing at an address": {1, nvme.Flush(1), func(c *nvme.Command) { c.SetSGL(nvme.SGL{Address: 4096}) },
			Transfer{}, nvme.InvalidSGLType},
		"PRPs of a command without data": {1, nvme.Flush(1), func(c *nvme.Command) { c.SetSGL(nvme.SGL{}); c[1] = 0 },
			Transfer{}, nvme.InvalidField},
		"keyed descriptor": {1, nvme.Flush(1), func(c *nvme.Command) { c.SetSGL(nvme.SGL{Type: 0x40}) }, Transfer{},
			nvme.InvalidSGLType},
		"PRPs":  {1, nvme.Flush(1), func(c *nvme.Command) { c[1] = 0 }, Transfer{}, nvme.InvalidField},
		"fused": {1, nvme.Flush(1), func(c *nvme.Command) { c[1] |= 1 }, Transfer{}, nvme.InvalidField},
		"directive": {1, nvme.Write(1, 0, 1, 512, false), func(c *nvme.Command) { c.SetDW(12, 1<<20) }, Transfer{},
			nvme.InvalidField},
		"no such queue":   {2, nvme.Flush(1), nil, Transfer{}, nvme.CommandSequenceError},
		"namespace 0":     {1, nvme.Flush(0), nil, Transfer{}, nvme.InvalidNamespace},
		"namespace 4":     {1, nvme.Flush(4), nil, Transfer{}, nvme.InvalidNamespace},
		"read of all":     {1, nvme.Read(nvme.AllNamespaces, 0, 1, 512), nil, Transfer{}, nvme.InvalidNamespace},
		"flush of memory": {1, nvme.Flush(2), nil, Transfer{}, nvme.InvalidOpcode},
		"vendor on ns 3":  {1, cs.Fetch(0, 4), func(c *nvme.Command) { c.SetNSID(3) }, Transfer{}, nvme.InvalidOpcode},
		"fabrics":         {0, nvme.New(0x7f, 0), nil, Transfer{}, nvme.InvalidOpcode},
		"bidirectional":   {1, nvme.New(0x83, 1), nil, Transfer{}, nvme.InvalidOpcode},
	} {
		t.Run(name, func(t *testing.T) {
			if test.change != nil {
				test.change(&test.cmd)
			}
			transfer, status := c.Parse(test.queue, &test.cmd)
			assert.Equal(t, test.want, transfer)
			assert.Equal(t, test.status.Final(), status)
			if !status.OK() {
				out := c.Execute(context.Background(), test.queue, &test.cmd, make([]byte, test.cmd.DataLength()))
				assert.Equal(t, status, out.Status(), "executing what Parse refused")
			}
		})
	}
	cmd := nvme.Read(1, 0, 1, 512)
	for _, n := range []int{0, 511, 513} {
		out := c.Execute(context.Background(), 1, &cmd, make([]byte, n))
		assert.ErrorIs(t, out.Status(), nvme.DataTransferError)
	}
}

func TestAnEventReachesTheRequestThatWaits(t *testing.T) {
	d := newDrive(t)
	c := d.enabled()
	set := nvme.SetFeature(nvme.FeatureAsyncEvents, noticeNamespace)
	out := c.Execute(context.Background(), 0, &set, nil)
	require.True(t, out.Status().OK())
	done := make(chan nvme.Completion)
	go func() {
		cmd := nvme.AsyncEventRequest()
		cmd.SetCID(5)
		done <- c.Execute(context.Background(), 0, &cmd, nil)
	}()
	until(t, func() bool { return waiting(c) == 1 })
	d.NamespaceChanged(2)
	out = <-done
	assert.Equal(t, nvme.EventNamespaceChanged, nvme.ParseAsyncEvent(out.DW0()))
	assert.Zero(t, waiting(c))
	d.NamespaceChanged(2) // masked: the page was not read
	assert.Empty(t, c.events.pending)
}
