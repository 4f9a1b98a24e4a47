// Package features holds the features that a host has set for its controller: what Set and Get Features read and write.
// It is pure; the controller's lock guards its State.
package features

import (
	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/controller/health"
)

// State is the values of a controller's features.
type State struct {
	Over, Under uint16 // Temperature thresholds are in kelvin.
	WriteCache  bool   // The host has not turned the volatile write cache off.
	Queues      int    // Queues is how many I/O queues the host may open.
	KeepAlive   uint32 // milliseconds
	AsyncEvents uint32 // Asynchronous Event Configuration

	arbitration, recovery, atomicity, progress uint32
	mostQueues                                 int
	behavior                                   [hostBehaviorSize]byte
}

const hostBehaviorSize = 512

// KeepAliveGranularity is that of keep alive timeouts, in units of 100 ms.
const KeepAliveGranularity = 10

// Default returns the features of a controller that a host has connected with a keep alive timeout in milliseconds, and
// which has some I/O queues at most.
func Default(keepAlive uint32, queues int) State {
	return State{Over: health.WarningTemperature, WriteCache: true, Queues: queues, mostQueues: queues,
		KeepAlive: roundKeepAlive(keepAlive)}
}

// roundKeepAlive rounds a keep alive timeout up to the granularity that Identify reports.
func roundKeepAlive(ms uint32) uint32 {
	const g = KeepAliveGranularity * 100
	return uint32(min((uint64(ms)+g-1)/g*g, 0xffffffff/g*g))
}

// Values of the select field of Get Features.
const (
	SelectCurrent      = 0
	SelectDefault      = 1
	SelectSaved        = 2
	SelectCapabilities = 3
)

// Capabilities of a feature, as Get Features reports them.
const (
	PerNamespace = 1 << 1
	Changeable   = 1 << 2
)

// Capabilities has every feature that there is. None can be saved.
var Capabilities = map[uint8]uint32{
	nvme.FeatureArbitration: Changeable, nvme.FeaturePowerManagement: Changeable, nvme.FeatureTemperature: Changeable,
	nvme.FeatureErrorRecovery: Changeable | PerNamespace, nvme.FeatureWriteCache: Changeable,
	nvme.FeatureQueues: Changeable, nvme.FeatureWriteAtomicity: Changeable, nvme.FeatureAsyncEvents: Changeable,
	nvme.FeatureKeepAlive: Changeable, nvme.FeatureHostBehavior: Changeable, nvme.FeatureCommandSets: Changeable,
	nvme.FeatureSoftwareProgress: Changeable, nvme.FeatureHostID: 0,
}

// CheckSet checks the entry of a Set Features for a feature that there is, and returns the bytes of its data.
func CheckSet(cmd *nvme.Command) (uint64, nvme.Status) {
	if cmd.DW(10)>>31 != 0 {
		return 0, nvme.FeatureNotSaveable
	}
	switch uint8(cmd.DW(10)) {
	case nvme.FeatureHostBehavior:
		return hostBehaviorSize, nvme.Success
	case nvme.FeatureHostID: // it came with the connection
		return 0, nvme.CommandSequenceError
	}
	return 0, nvme.Success
}

// Set sets a feature to a value, or to data where the feature has some. It returns what completes the command.
func (s *State) Set(fid uint8, v uint32, data []byte) (uint32, nvme.Status) {
	switch fid {
	case nvme.FeatureArbitration:
		s.arbitration = v
	case nvme.FeaturePowerManagement:
		if v&0x1f != 0 { // there is one power state
			return 0, nvme.InvalidField
		}
	case nvme.FeatureTemperature:
		return 0, s.setThreshold(v)
	case nvme.FeatureErrorRecovery:
		if v&(1<<16) != 0 { // reads of deallocated blocks are not errors here
			return 0, nvme.InvalidField
		}
		s.recovery = v
	case nvme.FeatureWriteCache:
		s.WriteCache = v&1 != 0
	case nvme.FeatureQueues:
		sq, cq := v&0xffff, v>>16
		if sq == 0xffff || cq == 0xffff {
			return 0, nvme.InvalidField
		}
		s.Queues = int(min(sq, cq, uint32(s.mostQueues-1))) + 1
		return s.queueWord(), nvme.Success
	case nvme.FeatureWriteAtomicity:
		s.atomicity = v & 1
	case nvme.FeatureAsyncEvents:
		s.AsyncEvents = v
	case nvme.FeatureKeepAlive:
		s.KeepAlive = roundKeepAlive(v)
	case nvme.FeatureHostBehavior:
		copy(s.behavior[:], data)
	case nvme.FeatureCommandSets:
		if v&0x1ff != 0 { // there is one combination
			return 0, nvme.CommandSetRejected
		}
	case nvme.FeatureSoftwareProgress:
		s.progress = v & 0xff
	}
	return 0, nvme.Success
}

func (s *State) queueWord() uint32 { return uint32(s.Queues-1)<<16 | uint32(s.Queues-1) }

// setThreshold sets the over (0) or under (1) temperature threshold of the composite temperature or of all sensors.
func (s *State) setThreshold(v uint32) nvme.Status {
	if sensor := v >> 16 & 0xf; sensor != 0 && sensor != 0xf {
		return nvme.InvalidField
	}
	switch v >> 20 & 3 {
	case 0:
		s.Over = uint16(v)
	case 1:
		s.Under = uint16(v)
	default:
		return nvme.InvalidField
	}
	return nvme.Success
}

// CheckGet checks the entry of a Get Features for a feature that there is, and returns the bytes of its data.
func CheckGet(cmd *nvme.Command) (uint64, nvme.Status) {
	switch sel := cmd.DW(10) >> 8 & 7; {
	case sel > SelectCapabilities:
		return 0, nvme.InvalidField
	case sel == SelectCapabilities:
		return 0, nvme.Success
	}
	switch uint8(cmd.DW(10)) {
	case nvme.FeatureHostBehavior:
		return hostBehaviorSize, nvme.Success
	case nvme.FeatureHostID:
		if cmd.DW(11)&1 == 0 { // only extended host identifiers over fabrics
			return 0, nvme.InvalidField
		}
		return 16, nvme.Success
	}
	return 0, nvme.Success
}

// Get returns the value of a feature, and fills data where the feature has some. selector is dword 11 of the command.
func (s *State) Get(fid uint8, selector uint32, data []byte) (uint32, nvme.Status) {
	switch fid {
	case nvme.FeatureArbitration:
		return s.arbitration, nvme.Success
	case nvme.FeatureTemperature:
		switch {
		case selector>>16&0xf != 0 || selector>>20&3 > 1:
			return 0, nvme.InvalidField
		case selector>>20&3 == 1:
			return uint32(s.Under), nvme.Success
		}
		return uint32(s.Over), nvme.Success
	case nvme.FeatureErrorRecovery:
		return s.recovery, nvme.Success
	case nvme.FeatureWriteCache:
		if s.WriteCache {
			return 1, nvme.Success
		}
	case nvme.FeatureQueues:
		return s.queueWord(), nvme.Success
	case nvme.FeatureWriteAtomicity:
		return s.atomicity, nvme.Success
	case nvme.FeatureAsyncEvents:
		return s.AsyncEvents, nvme.Success
	case nvme.FeatureKeepAlive:
		return s.KeepAlive, nvme.Success
	case nvme.FeatureHostBehavior:
		copy(data, s.behavior[:])
	case nvme.FeatureSoftwareProgress:
		return s.progress, nvme.Success
	}
	return 0, nvme.Success
}
