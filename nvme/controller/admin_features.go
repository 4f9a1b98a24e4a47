package controller

import "github.com/millrace/millrace/nvme"

// features are the features that a host has set for its controller. The controller's mu guards them.
type features struct {
	arbitration, recovery, atomicity, progress uint32
	over, under                                uint16 // temperature thresholds, kelvin
	writeCache                                 bool
	queues                                     int    // I/O queues that the host may open
	kato                                       uint32 // milliseconds
	behavior                                   [hostBehaviorSize]byte
}

const hostBehaviorSize = 512

func defaultFeatures(kato uint32) features {
	return features{over: warningTemperature, writeCache: true, queues: MaxQueues, kato: roundKATO(kato)}
}

// roundKATO rounds a keep alive timeout up to the granularity that Identify reports.
func roundKATO(ms uint32) uint32 {
	const g = katoGranularity * 100
	return uint32(min((uint64(ms)+g-1)/g*g, 0xffffffff/g*g))
}

// Values of the select field of Get Features.
const (
	selectCurrent      = 0
	selectDefault      = 1
	selectSaved        = 2
	selectCapabilities = 3
)

// Capabilities of a feature, as Get Features reports them.
const (
	capNamespace  = 1 << 1
	capChangeable = 1 << 2
)

// featureCapabilities has every feature that there is. None can be saved.
var featureCapabilities = map[uint8]uint32{
	nvme.FeatureArbitration: capChangeable, nvme.FeaturePowerManagement: capChangeable,
	nvme.FeatureTemperature:   capChangeable,
	nvme.FeatureErrorRecovery: capChangeable | capNamespace, nvme.FeatureWriteCache: capChangeable,
	nvme.FeatureQueues: capChangeable, nvme.FeatureWriteAtomicity: capChangeable, nvme.FeatureAsyncEvents: capChangeable,
	nvme.FeatureKeepAlive: capChangeable, nvme.FeatureHostBehavior: capChangeable, nvme.FeatureCommandSets: capChangeable,
	nvme.FeatureSoftwareProgress: capChangeable, nvme.FeatureHostID: 0,
}

// checkFeature checks what Set and Get Features have in common.
func checkFeature(c *Controller, cmd *nvme.Command) (fid uint8, st nvme.Status) {
	fid = uint8(cmd.DW(10))
	caps, ok := featureCapabilities[fid]
	nsid := cmd.NSID()
	switch {
	case !ok, c.sub.discovery != nil && !discoveryFeature(fid):
		return fid, nvme.InvalidField
	case caps&capNamespace != 0:
		if csi, ok := c.commandSet(nsid); nsid != nvme.AllNamespaces && nsid != 0 && (!ok || csi != nvme.CSINVM) {
			return fid, nvme.InvalidNamespace
		}
	case nsid != 0 && nsid != nvme.AllNamespaces:
		return fid, nvme.FeatureNotNamespaced
	}
	return fid, nvme.Success
}

func checkSetFeatures(c *Controller, _ *namespace, cmd *nvme.Command) (uint64, nvme.Status) {
	fid, st := checkFeature(c, cmd)
	if !st.OK() {
		return 0, st
	}
	if cmd.DW(10)>>31 != 0 {
		return 0, nvme.FeatureNotSaveable
	}
	switch fid {
	case nvme.FeatureHostBehavior:
		return hostBehaviorSize, nvme.Success
	case nvme.FeatureHostID: // it came with the connection
		return 0, nvme.CommandSequenceError
	}
	return 0, nvme.Success
}

func runSetFeatures(r *request) nvme.Status {
	v, fid := r.cmd.DW(11), uint8(r.cmd.DW(10))
	r.c.mu.Lock()
	defer r.c.mu.Unlock()
	f := &r.c.features
	switch fid {
	case nvme.FeatureArbitration:
		f.arbitration = v
	case nvme.FeaturePowerManagement:
		if v&0x1f != 0 { // there is one power state
			return nvme.InvalidField
		}
	case nvme.FeatureTemperature:
		return f.setThreshold(v)
	case nvme.FeatureErrorRecovery:
		if v&(1<<16) != 0 { // reads of deallocated blocks are not errors here
			return nvme.InvalidField
		}
		f.recovery = v
	case nvme.FeatureWriteCache:
		f.writeCache = v&1 != 0
	case nvme.FeatureQueues:
		sq, cq := v&0xffff, v>>16
		switch {
		case len(r.c.queues) > 0:
			return nvme.CommandSequenceError
		case sq == 0xffff || cq == 0xffff:
			return nvme.InvalidField
		}
		f.queues = int(min(sq, cq, MaxQueues-1)) + 1
		r.result = uint64(f.queueWord())
	case nvme.FeatureWriteAtomicity:
		f.atomicity = v & 1
	case nvme.FeatureAsyncEvents:
		r.c.events.config = v
	case nvme.FeatureKeepAlive:
		f.kato = roundKATO(v)
	case nvme.FeatureHostBehavior:
		copy(f.behavior[:], r.data)
	case nvme.FeatureCommandSets:
		if v&0x1ff != 0 { // there is one combination
			return nvme.CommandSetRejected
		}
		r.result = r.c.sub.commandSets()
	case nvme.FeatureSoftwareProgress:
		f.progress = v & 0xff
	}
	return nvme.Success
}

func (f *features) queueWord() uint32 { return uint32(f.queues-1)<<16 | uint32(f.queues-1) }

// setThreshold sets the over (0) or under (1) temperature threshold of the composite temperature or of all sensors.
func (f *features) setThreshold(v uint32) nvme.Status {
	if sensor := v >> 16 & 0xf; sensor != 0 && sensor != 0xf {
		return nvme.InvalidField
	}
	switch v >> 20 & 3 {
	case 0:
		f.over = uint16(v)
	case 1:
		f.under = uint16(v)
	default:
		return nvme.InvalidField
	}
	return nvme.Success
}

func checkGetFeatures(c *Controller, _ *namespace, cmd *nvme.Command) (uint64, nvme.Status) {
	fid, st := checkFeature(c, cmd)
	if !st.OK() {
		return 0, st
	}
	switch sel := cmd.DW(10) >> 8 & 7; {
	case sel > selectCapabilities:
		return 0, nvme.InvalidField
	case sel == selectCapabilities:
		return 0, nvme.Success
	}
	switch fid {
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

func runGetFeatures(r *request) nvme.Status {
	fid, sel := uint8(r.cmd.DW(10)), r.cmd.DW(10)>>8&7
	if sel == selectCapabilities {
		r.result = uint64(featureCapabilities[fid])
		return nvme.Success
	}
	r.c.mu.Lock()
	defer r.c.mu.Unlock()
	f, config := r.c.features, r.c.events.config
	if sel == selectDefault || sel == selectSaved {
		f, config = defaultFeatures(r.c.kato), 0
	}
	var v uint32
	switch fid {
	case nvme.FeatureArbitration:
		v = f.arbitration
	case nvme.FeatureTemperature:
		sel := r.cmd.DW(11)
		if sensor := sel >> 16 & 0xf; sensor != 0 || sel>>20&3 > 1 {
			return nvme.InvalidField
		}
		v = uint32(f.over)
		if sel>>20&3 == 1 {
			v = uint32(f.under)
		}
	case nvme.FeatureErrorRecovery:
		v = f.recovery
	case nvme.FeatureWriteCache:
		if f.writeCache {
			v = 1
		}
	case nvme.FeatureQueues:
		v = f.queueWord()
	case nvme.FeatureWriteAtomicity:
		v = f.atomicity
	case nvme.FeatureAsyncEvents:
		v = config
	case nvme.FeatureKeepAlive:
		v = f.kato
	case nvme.FeatureHostBehavior:
		copy(r.data, f.behavior[:])
	case nvme.FeatureSoftwareProgress:
		v = f.progress
	case nvme.FeatureHostID:
		copy(r.data, r.c.host.ID[:])
	}
	r.result = uint64(v)
	return nvme.Success
}
