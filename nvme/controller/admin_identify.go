package controller

import (
	"encoding/binary"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/controller/features"
	"github.com/millrace/millrace/nvme/controller/health"
	"github.com/millrace/millrace/nvme/cs"
)

// Fields of Identify Controller whose values are choices of this controller.
const (
	cmicManyControllers = 1 << 1
	oaes                = noticeNamespace | noticeFirmware
	ctratt              = 1<<0 | 1<<6 // 128-bit host identifiers, traffic based keep alive
	lpa                 = 1<<1 | 1<<2 | 1<<5
	frmw                = 1 | 1<<1  // one firmware slot, read only
	vwc                 = 1 | 3<<1  // a volatile write cache; Flush takes every namespace
	sgls                = 1 | 1<<20 // SGLs without alignment; in-capsule data at an offset
	capsuleCommand      = (64 + 8192) / 16
	capsuleResponse     = 1
	sharedNamespace     = 1 // NMIC
	deallocateZeros     = 1 | 1<<3
	writeProtected      = 1
	controllerTypeIO    = 1
)

func checkIdentify(*Controller, *namespace, *nvme.Command) (uint64, nvme.Status) {
	return nvme.IdentifySize, nvme.Success
}

func runIdentify(r *request) nvme.Status {
	cns, nsid, csi := uint8(r.cmd.DW(10)), r.cmd.NSID(), uint8(r.cmd.DW(11)>>24)
	b, st := r.c.identifyPage(cns, nsid, csi, uint16(r.cmd.DW(10)>>16))
	copy(r.data, b)
	return st
}

func (c *Controller) identifyPage(cns uint8, nsid uint32, csi uint8, cntid uint16) ([]byte, nvme.Status) {
	s := c.sub
	set, active := c.commandSet(nsid)
	ns := s.blockNamespace(nsid)
	known := s.tables.io[csi] != nil
	empty := make([]byte, nvme.IdentifySize)
	if s.discovery != nil && cns != nvme.CNSController {
		return nil, nvme.InvalidField
	}
	switch cns {
	case nvme.CNSController:
		if s.discovery != nil {
			return c.identifyDiscovery(), nvme.Success
		}
		return c.identifyController(), nvme.Success
	case nvme.CNSActiveNamespaces, nvme.CNSSetActiveNamespaces:
		if nsid >= nvme.AllNamespaces-1 {
			return nil, nvme.InvalidNamespace
		}
		if cns == nvme.CNSSetActiveNamespaces && !known {
			return nil, nvme.InvalidField
		}
		var ids []uint32
		for _, id := range s.namespaces() {
			if of, ok := c.commandSet(id); ok && id > nsid && (cns == nvme.CNSActiveNamespaces || of == csi) {
				ids = append(ids, id)
			}
		}
		return nvme.MarshalNamespaceList(ids), nvme.Success
	case nvme.CNSSetController:
		if !known {
			return nil, nvme.InvalidField
		}
		return empty, nvme.Success // no limits beside MDTS
	case nvme.CNSCommandSets:
		if cntid != 0xffff && cntid != c.id {
			return nil, nvme.InvalidField
		}
		binary.LittleEndian.PutUint64(empty, s.commandSets())
		return empty, nvme.Success
	case nvme.CNSNamespace, nvme.CNSNamespaceDescriptors, nvme.CNSSetNamespace, nvme.CNSIndependentNamespace:
		if !active || set == nvme.CSINVM && ns == nil { // removed between two looks, or namespace 1 without flash
			if cns == nvme.CNSNamespace && nsid >= 1 && nsid <= MaxNSID {
				return empty, nvme.Success // an identifier that could be a namespace's and is none (NVMe 2.0, 5.17.2.1)
			}
			return nil, nvme.InvalidNamespace
		}
	}
	switch cns {
	case nvme.CNSNamespace:
		if set != nvme.CSINVM {
			return empty, nvme.Success // hosts take zeros for "not one of mine" and an error for a fault
		}
		return ns.identifyPage(), nvme.Success
	case nvme.CNSNamespaceDescriptors:
		id := nvme.NamespaceIDs{UUID: s.namespaceUUID(nsid), CSI: set}
		if ns != nil {
			id.UUID = ns.uuid
		}
		return id.Marshal(), nvme.Success
	case nvme.CNSSetNamespace:
		switch {
		case !known:
			return nil, nvme.InvalidField
		case csi != set:
			return nil, nvme.InvalidCommandSet
		case set == nvme.CSISLM:
			id := cs.MemoryNamespace{Size: s.slm.Size(), Granularity: 2, Reserve: 12}
			return id.Marshal(), nvme.Success
		case set == nvme.CSICompute:
			id := cs.ComputeNamespace{
				MaxActive: 1, MaxRangeSets: MaxRangeSets, RangeGranularity: 2, MaxRanges: cs.MaxRanges,
				MaxProgramMiB: uint64(s.prog.Limits().Slots) * (s.prog.Limits().MaxBytes >> 20),
			}
			return id.Marshal(), nvme.Success
		}
		return empty, nvme.Success // no protection information, no storage tags
	case nvme.CNSIndependentNamespace:
		id := nvme.IndependentNamespace{MultiPath: sharedNamespace, Ready: true}
		if ns != nil && ns.readOnly {
			id.Attributes = writeProtected
		}
		return id.Marshal(), nvme.Success
	}
	return nil, nvme.InvalidField
}

// commandSets is the one combination of I/O command sets there is: a bit for each.
func (s *Subsystem) commandSets() uint64 {
	if s.opt.Compute == nil {
		return 1 << nvme.CSINVM
	}
	return 1<<nvme.CSINVM | 1<<nvme.CSISLM | 1<<nvme.CSICompute
}

func (c *Controller) identifyController() []byte {
	s := c.sub
	var capacity uint64
	_ = s.spaces.Load().eachNamespace(func(ns *namespace) error { capacity += ns.blocks << ns.shift; return nil })
	id := nvme.IdentifyController{
		Serial: s.opt.Serial, Model: s.opt.Model, Firmware: s.firmwareRevision(), MultiPath: cmicManyControllers,
		MDTS:         mdtsShift,
		ControllerID: c.id, Version: nvme.VersionSpec, AsyncEvents: oaes, Attributes: ctratt,
		ControllerType: controllerTypeIO,
		AbortLimit:     AbortLimit - 1, AsyncEventLimit: AsyncEventLimit - 1, FirmwareUpdates: s.firmwareUpdates(),
		LogAttributes: lpa,
		ErrorEntries:  health.ErrorEntries - 1, AdminVendorFormat: 0, WarningTemperature: health.WarningTemperature,
		CriticalTemperature: health.CriticalTemperature, TotalCapacity: capacity,
		KeepAliveGranularity: features.KeepAliveGranularity,
		SQES:                 0x66, CQES: 0x44, MaxCommands: MaxDepth, Namespaces: MaxNSID,
		NVMCommands: nvme.ONCSCompare | nvme.ONCSDataset | nvme.ONCSWriteZeroes | nvme.ONCSSaveSelect, WriteCache: vwc,
		SGLs: sgls, SubsystemNQN: s.opt.NQN, CommandCapsule: capsuleCommand, ResponseCapsule: capsuleResponse,
		DataDescriptors: 1,
	}
	return id.Marshal()
}

func (ns *namespace) identifyPage() []byte {
	id := nvme.IdentifyNamespace{
		Size: ns.blocks, Capacity: ns.blocks, Utilization: ns.blocks, MultiPath: sharedNamespace, Deallocate: deallocateZeros,
		CapacityBytes: ns.blocks << ns.shift, NGUID: ns.uuid,
		Formats: []nvme.LBAFormat{{BlockShift: uint8(ns.shift)}},
	}
	if ns.readOnly {
		id.Attributes = writeProtected
	}
	return id.Marshal()
}
