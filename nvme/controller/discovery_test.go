package controller

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/fabrics"
)

func TestDiscovery(t *testing.T) {
	entry := fabrics.Entry{Type: fabrics.NVM, Address: netip.MustParseAddrPort("127.0.0.1:4420"),
		NQN: "nqn.2024-01.io.millrace:d"}
	s := NewDiscovery(DiscoveryOptions{Entries: []fabrics.Entry{entry}})
	c, err := s.Connect(HostID{NQN: "nqn.2024-01.io.millrace:h"}, 0)
	defer func() { assert.WithinDuration(t, time.Now(), c.LastSeen(), time.Minute) }() // no idle association
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close()) }()
	require.True(t, c.PropertySet(PropertyCC, 4, 0x460001).OK())
	assert.True(t, c.OpenQueue(1, 32).Is(nvme.InvalidQueueID), "no I/O queues")

	cid := uint16(0)
	do := func(cmd nvme.Command) (nvme.Completion, []byte) {
		cid++
		cmd.SetCID(cid)
		tr, st := c.Parse(0, &cmd)
		if !st.OK() {
			return nvme.NewCompletion(cid, st), nil
		}
		b := make([]byte, tr.Length)
		return c.Execute(context.Background(), 0, &cmd, b), b
	}

	cpl, b := do(nvme.Identify(nvme.CNSController, 0, 0))
	require.True(t, cpl.Status().OK())
	var id nvme.IdentifyController
	require.NoError(t, id.Unmarshal(b))
	assert.Equal(t, uint8(2), id.ControllerType)
	assert.Equal(t, fabrics.DiscoveryNQN, id.SubsystemNQN)
	assert.Zero(t, id.Namespaces)
	assert.NotZero(t, id.KeepAliveGranularity)

	for name, cmd := range map[string]nvme.Command{
		"identify namespace": nvme.Identify(nvme.CNSNamespace, 1, 0),
		"namespace list":     nvme.Identify(nvme.CNSActiveNamespaces, 0, 0),
		"queues feature":     nvme.SetFeature(nvme.FeatureQueues, 0),
		"SMART":              nvme.GetLog(nvme.LogSMART, 0, 0, 512),
	} {
		cpl, _ := do(cmd)
		assert.False(t, cpl.Status().OK(), name)
	}

	_, b = do(nvme.GetLog(fabrics.LogDiscovery, 0, 0, 4096))
	var l fabrics.DiscoveryLog
	require.NoError(t, l.Unmarshal(b))
	assert.Equal(t, fabrics.DiscoveryLog{Generation: 1, Entries: []fabrics.Entry{entry}}, l)

	// A change is reported to every host that asked for the event.
	cpl, _ = do(nvme.SetFeature(nvme.FeatureAsyncEvents, 1<<31))
	require.True(t, cpl.Status().OK())
	s.SetEntries(nil)
	cpl, _ = do(nvme.AsyncEventRequest())
	require.True(t, cpl.Status().OK())
	assert.Equal(t, eventDiscoveryChanged, nvme.ParseAsyncEvent(cpl.DW0()))
	_, b = do(nvme.GetLog(fabrics.LogDiscovery, 0, 0, 1024))
	require.NoError(t, l.Unmarshal(b))
	assert.Equal(t, fabrics.DiscoveryLog{Generation: 2}, l)

	assert.True(t, s.IsDiscovery())
	newSubsystem := &Subsystem{}
	newSubsystem.SetEntries([]fabrics.Entry{entry}) // a drive has none: nothing happens
}
