package controller

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/controller/health"
)

// TestWhatHappensDuringGetLogIsInThePage, because it is not reported again: its event was reported before.
func TestWhatHappensDuringGetLogIsInThePage(t *testing.T) {
	var during func()
	d := newDrive(t, func(o *Options) {
		o.Lost = func() (int64, int64) {
			if f := during; f != nil {
				during = nil
				f()
			}
			return 0, 0
		}
	})
	c := d.connect()
	hot := health.Sensors{Temperature: 330, AvailableSpare: 100}
	admin(t, c, nvme.SetFeature(nvme.FeatureAsyncEvents, nvme.WarningTemperature), nil, nvme.Success)
	admin(t, c, nvme.SetFeature(nvme.FeatureTemperature, 320), nil, nvme.Success)
	d.SetHealth(hot)
	require.Equal(t, nvme.EventTemperature, <-waitEvent(c))
	d.SetHealth(health.Sensors{Temperature: 300, AvailableSpare: 100})
	during = func() { d.SetHealth(hot) }
	b := make([]byte, nvme.SMARTLogSize)
	admin(t, c, nvme.GetLog(nvme.LogSMART, nvme.AllNamespaces, 0, nvme.SMARTLogSize), b, nvme.Success)
	var s nvme.SMARTLog
	require.NoError(t, s.Unmarshal(b))
	assert.EqualValues(t, nvme.WarningTemperature, s.CriticalWarning)
	d.SetHealth(hot)
	assert.Equal(t, nvme.EventTemperature, <-waitEvent(c), "the page was read")
}

// TestLostBlocksAreTold in SMART and in log page C2h, in whole blocks, as long as they are lost.
func TestLostBlocksAreTold(t *testing.T) {
	off, n := int64(1000), int64(600)
	c := newDrive(t, func(o *Options) { o.Lost = func() (int64, int64) { return off, n } }).connect()
	read := func() (warning uint8, lost []nvme.LostRange) {
		b := make([]byte, nvme.LostLogSize)
		admin(t, c, nvme.GetLog(nvme.LogLost, nvme.AllNamespaces, 0, nvme.LostLogSize), b, nvme.Success)
		lost, err := nvme.UnmarshalLost(b)
		require.NoError(t, err)
		var s nvme.SMARTLog
		admin(t, c, nvme.GetLog(nvme.LogSMART, nvme.AllNamespaces, 0, nvme.SMARTLogSize), b[:nvme.SMARTLogSize], nvme.Success)
		require.NoError(t, s.Unmarshal(b))
		return s.CriticalWarning, lost
	}
	warning, lost := read()
	assert.EqualValues(t, nvme.WarningReliability, warning)
	assert.Equal(t, []nvme.LostRange{{SLBA: 1, Blocks: 3}}, lost, "bytes 1000 to 1600 lie in blocks 1 to 3")
	n = 0
	warning, lost = read()
	assert.Zero(t, warning)
	assert.Empty(t, lost)
	c = newDrive(t).connect()
	warning, lost = read()
	assert.Zero(t, warning)
	assert.Empty(t, lost, "a drive that loses nothing")
}
