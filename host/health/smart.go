package health

import (
	"context"
	"math"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/sdk"
)

// SMARTLog is a drive's SMART log. A field is nil if the drive does not report it.
type SMARTLog struct {
	Drive    string   `json:"drive"`
	Model    string   `json:"model"`
	Serial   string   `json:"serial"`
	Firmware string   `json:"firmware"`
	Warnings []string `json:"critical_warnings"` // none: all is well

	Temperature *int    `json:"temperature_celsius"`
	Sensors     []int   `json:"sensors_celsius"` // those that the drive has
	Spare       *int    `json:"available_spare_percent"`
	Threshold   *int    `json:"spare_threshold_percent"`
	Used        *int    `json:"used_percent"`      // Used may pass 100 % of the drive's life; 255 means at least that.
	BytesRead   *uint64 `json:"read_bytes"`        // in steps of 512000, rounded up
	BytesWrote  *uint64 `json:"written_bytes"`     //
	Reads       uint64  `json:"host_reads"`        // commands
	Writes      uint64  `json:"host_writes"`       // commands
	Busy        uint64  `json:"busy_minutes"`      //
	PowerCycles uint64  `json:"power_cycles"`      //
	PowerOn     uint64  `json:"power_on_hours"`    //
	Unsafe      uint64  `json:"unsafe_shutdowns"`  //
	MediaErrors uint64  `json:"media_errors"`      //
	ErrorCount  uint64  `json:"error_log_entries"` // ever made
	WarningTime uint32  `json:"warning_minutes"`   // too warm
	TooHotTime  uint32  `json:"too_hot_minutes"`   // critically

	Lost []sdk.LostRange `json:"lost,omitempty"` // bytes that are missing and read as zeros
}

// unit is the bytes of a data unit: a thousand times 512.
const unit = 512_000

// Read reads a drive's SMART log, and which bytes the drive has lost.
func Read(ctx context.Context, dev *sdk.Device) (*SMARTLog, error) {
	l, err := dev.SMART(ctx)
	if err != nil {
		return nil, err
	}
	i := dev.Info()
	r := interpret(l)
	r.Drive, r.Model, r.Serial, r.Firmware = i.URI, i.Model, i.Serial, i.Firmware
	r.Lost, err = dev.Lost(ctx)
	return r, err
}

// interpret turns values that stand for "not reported" into nil.
func interpret(l *nvme.SMARTLog) *SMARTLog {
	used := int(l.PercentageUsed)
	r := &SMARTLog{
		Warnings: warnings(l.CriticalWarning), Temperature: celsius(l.Temperature), Sensors: []int{},
		Spare: percent(l.AvailableSpare), Threshold: percent(l.SpareThreshold), Used: &used,
		BytesRead: inBytes(l.DataUnitsRead), BytesWrote: inBytes(l.DataUnitsWritten),
		Reads: l.HostReads, Writes: l.HostWrites, Busy: l.BusyMinutes, PowerCycles: l.PowerCycles,
		PowerOn: l.PowerOnHours,
		Unsafe:  l.UnsafeShutdowns, MediaErrors: l.MediaErrors, ErrorCount: l.ErrorEntries,
		WarningTime: l.WarningMinutes, TooHotTime: l.CriticalMinutes,
	}
	if r.Spare == nil {
		r.Threshold = nil
	}
	for _, s := range l.TemperatureSensors {
		if c := celsius(s); c != nil {
			r.Sensors = append(r.Sensors, *c)
		}
	}
	return r
}

// warnings names the bits of the critical warning (Base Specification 2.1, figure 206).
func warnings(b uint8) []string {
	list := []string{}
	for i, name := range []string{
		"spare space is below the threshold", "temperature is outside its thresholds", "reliability is degraded",
		"media is read-only",
		"volatile memory backup failed", "persistent memory region is read-only or unreliable",
		"unknown warning, bit 6", "unknown warning, bit 7",
	} {
		if b&(1<<i) != 0 {
			list = append(list, name)
		}
	}
	return list
}

// celsius returns a temperature in kelvin as one in degrees Celsius. A drive without a sensor reports 0, which is nil.
func celsius(kelvin uint16) *int {
	if kelvin == 0 {
		return nil
	}
	c := int(kelvin) - 273
	return &c
}

// percent returns a value from 0 to 100. Larger values are reserved, and nil.
func percent(v uint8) *int {
	if v > 100 {
		return nil
	}
	p := int(v)
	return &p
}

// inBytes returns data units in bytes. A drive that does not count them reports 0, which is nil. A number that does not
// fit saturates, as it does in the log.
func inBytes(units uint64) *uint64 {
	if units == 0 {
		return nil
	}
	n := uint64(math.MaxUint64)
	if units <= n/unit {
		n = units * unit
	}
	return &n
}
