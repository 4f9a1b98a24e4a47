package health

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/sdk"
)

func ptr[T any](v T) *T { return &v }

func TestWhatADriveDoesNotReportIsNil(t *testing.T) {
	r := interpret(&nvme.SMARTLog{AvailableSpare: 255, SpareThreshold: 10})
	assert.Nil(t, r.Temperature, "0 kelvin is not a temperature")
	assert.Nil(t, r.Spare)
	assert.Nil(t, r.Threshold, "of a spare that is not known")
	assert.Nil(t, r.BytesRead)
	assert.Nil(t, r.BytesWrote)
	assert.Empty(t, r.Sensors)
	assert.Empty(t, r.Warnings)
	assert.Equal(t, ptr(0), r.Used)
	assert.Zero(t, r.MediaErrors)
}

func TestValuesOfTheLog(t *testing.T) {
	l := nvme.SMARTLog{
		CriticalWarning: 0b1000_1001, Temperature: 323, AvailableSpare: 100, SpareThreshold: 10, PercentageUsed: 255,
		DataUnitsRead: 3, DataUnitsWritten: math.MaxUint64, HostReads: 5, HostWrites: 6, BusyMinutes: 7, PowerCycles: 8,
		PowerOnHours:    9,
		UnsafeShutdowns: 10, MediaErrors: 11, ErrorEntries: 12, WarningMinutes: 13, CriticalMinutes: 14,
		TemperatureSensors: [8]uint16{0, 272, 0, 0, 0, 0, 0, 400},
	}
	var wire nvme.SMARTLog
	require.NoError(t, wire.Unmarshal(l.Marshal()))
	assert.Equal(t, &SMARTLog{
		Warnings:    []string{"spare space is below the threshold", "media is read-only", "unknown warning, bit 7"},
		Temperature: ptr(50), Sensors: []int{-1, 127}, Spare: ptr(100), Threshold: ptr(10), Used: ptr(255),
		BytesRead: ptr(uint64(1_536_000)), BytesWrote: ptr(uint64(math.MaxUint64)), Reads: 5, Writes: 6, Busy: 7,
		PowerCycles: 8, PowerOn: 9,
		Unsafe: 10, MediaErrors: 11, ErrorCount: 12, WarningTime: 13, TooHotTime: 14,
	}, interpret(&wire))
}

func TestReadCounts(t *testing.T) {
	dev, err := sdk.Open(t.Context(), "mem:?size=1MiB&slm=1MiB", sdk.DeviceOptions{})
	require.NoError(t, err)
	defer dev.Close()
	before, err := Read(t.Context(), dev)
	require.NoError(t, err)
	assert.Equal(t, dev.Info().Serial, before.Serial)
	assert.Nil(t, before.BytesRead)
	require.NoError(t, dev.ReadBlocks(t.Context(), make([]byte, 512), 0))
	after, err := Read(t.Context(), dev)
	require.NoError(t, err)
	assert.Equal(t, before.Reads+1, after.Reads)
	require.NotNil(t, after.BytesRead)
	assert.Equal(t, uint64(unit), *after.BytesRead, "rounded up")
}
