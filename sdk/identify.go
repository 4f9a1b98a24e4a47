package sdk

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/controller"
	"github.com/millrace/millrace/nvme/cs"
)

// Log pages.
const (
	logSMART    = 0x02
	logPrograms = 0x82
	logVendor   = 0xc0
)

// identify asks the drive what it is. The answers are foreign bytes: every size is checked before it is used.
func (d *Device) identify(ctx context.Context) error {
	var id nvme.IdentifyController
	b, err := d.identifyPage(ctx, nvme.CNSController, 0, 0)
	if err == nil {
		err = id.Unmarshal(b)
	}
	if err != nil {
		return fmt.Errorf("controller: %w", err)
	}
	// MDTS 0 means no limit; a drive that takes more than this gets this.
	const most = 1 << 20
	d.mdts = most
	if id.MDTS != 0 && id.MDTS < 8 {
		d.mdts = 4096 << id.MDTS
	}
	if l, ok := d.conn.(nvme.Limiter); ok {
		d.mdts = min(d.mdts, l.MaxTransfer())
	}
	d.info = Info{
		URI: d.name, Model: id.Model, Serial: id.Serial, Firmware: id.Firmware, NQN: id.SubsystemNQN, MDTS: d.mdts,
	}
	if b, err = d.identifyPage(ctx, nvme.CNSActiveNamespaces, 0, 0); err != nil {
		return fmt.Errorf("active namespaces: %w", err)
	}
	for _, nsid := range nvme.UnmarshalNamespaceList(b) {
		ns, err := d.identifyNamespace(ctx, nsid)
		if err != nil {
			return fmt.Errorf("namespace %d: %w", nsid, err)
		}
		d.info.Namespaces = append(d.info.Namespaces, ns)
	}
	computes := d.hasNamespace(nvme.CSICompute)
	if d.info.Diskless = d.info.BlockSize == 0; d.info.Diskless && !computes {
		return errors.New("there is neither a namespace 1 with blocks nor one that computes")
	}
	if computes {
		return d.identifyCompute(ctx)
	}
	return nil
}

func (d *Device) identifyPage(ctx context.Context, cns uint8, nsid uint32, csi uint8) ([]byte, error) {
	b := make([]byte, nvme.IdentifySize)
	cmd := nvme.Identify(cns, nsid, csi)
	_, err := d.admin(ctx, &cmd, b)
	return b, err
}

func (d *Device) identifyNamespace(ctx context.Context, nsid uint32) (Namespace, error) {
	b, err := d.identifyPage(ctx, nvme.CNSNamespaceDescriptors, nsid, 0)
	if isStatus(err, nvme.InvalidField) {
		// A drive from before NVMe 1.3 has no such list; its namespaces hold blocks.
		clear(b)
		err = nil
	}
	if err != nil {
		return Namespace{}, err
	}
	var ids nvme.NamespaceIDs
	if err := ids.Unmarshal(b); err != nil {
		return Namespace{}, err
	}
	ns := Namespace{ID: nsid, CSI: ids.CSI, UUID: uuid.UUID(ids.UUID).String()}
	switch ids.CSI {
	case nvme.CSINVM:
		if b, err = d.identifyPage(ctx, nvme.CNSNamespace, nsid, 0); err != nil {
			return ns, err
		}
		var n nvme.IdentifyNamespace
		if err := n.Unmarshal(b); err != nil {
			return ns, err
		}
		size, err := n.BlockSize()
		if err != nil {
			return ns, err
		}
		const mostBytes = 1 << 62
		if size < 512 || int(size) > d.mdts || size&(size-1) != 0 || n.Size == 0 || n.Size > mostBytes/uint64(size) {
			return ns, fmt.Errorf("%d blocks of %d bytes cannot be", n.Size, size)
		}
		ns.Size = n.Size * uint64(size)
		if nsid == cs.NamespaceNVM {
			d.info.BlockSize, d.info.Size, d.info.ReadOnly = int(size), int64(ns.Size), n.Attributes&1 != 0
		}
	case nvme.CSISLM:
		if b, err = d.identifyPage(ctx, nvme.CNSSetNamespace, nsid, nvme.CSISLM); err != nil {
			return ns, err
		}
		var n cs.MemoryNamespace
		if err := n.Unmarshal(b); err != nil {
			return ns, err
		}
		ns.Size = n.Size
		d.info.SLM.Size = n.Size
	}
	return ns, nil
}

func (d *Device) hasNamespace(csi uint8) bool {
	for _, ns := range d.info.Namespaces {
		if ns.CSI == csi {
			return true
		}
	}
	return false
}

// identifyCompute learns backend, threads and programs.
func (d *Device) identifyCompute(ctx context.Context) error {
	l, err := d.counters(ctx)
	if err != nil {
		return fmt.Errorf("vendor log: %w", err)
	}
	d.info.Backend, d.info.Threads = l.Backend, int(l.Threads)
	d.info.HostIOShare = cmp.Or(int(l.HostIOShare), controller.NoHostIOLimit)
	if err := d.identifyRegion(ctx); err != nil {
		return fmt.Errorf("region %d: %w", d.region, err)
	}
	list, err := d.programs(ctx)
	if err != nil {
		return fmt.Errorf("program list: %w", err)
	}
	for i, p := range list {
		q := Program{Slot: i, Occupancy: p.Occupancy.String(), Active: p.Active, Bytes: p.Bytes}
		if p.Occupancy != cs.SlotEmpty {
			q.PUID = fmt.Sprintf("%016x", p.PUID)
		}
		d.info.Programs = append(d.info.Programs, q)
	}
	return nil
}

// identifyRegion learns how many regions there are, and the share of the device's region.
func (d *Device) identifyRegion(ctx context.Context) error {
	d.info.Region, d.window = d.region, cs.Range{Len: d.info.SLM.Size}
	for _, ns := range d.info.Namespaces {
		if ns.CSI == nvme.CSICompute {
			d.info.Regions++
		}
	}
	switch {
	case d.region >= d.info.Regions:
		return fmt.Errorf("the drive has %d, counted from 0: name another with region=, or make the drive with more: %w",
			d.info.Regions, ErrRegion)
	case d.info.Regions == 1:
		return nil
	}
	r, err := d.imageLog(ctx)
	if err != nil {
		return err
	}
	if len(r.Regions) != d.info.Regions {
		return fmt.Errorf("the drive reports %d regions and has %d namespaces of programs: %w", len(r.Regions),
			d.info.Regions, ErrRegion)
	}
	g := &r.Regions[d.region]
	window := cs.Range{Addr: g.SLMAddress, Len: g.SLMBytes}
	if end, ok := window.Ends(); !ok || end > d.info.SLM.Size {
		return fmt.Errorf("the drive reports a share of memory that it does not have: %w", ErrRegion)
	}
	d.window, d.info.SLM.Size, d.info.Threads = window, g.SLMBytes, g.Threads
	return nil
}

// ErrRegion says that a drive does not have a region that a device was to compute in.
var ErrRegion = errors.New("no such region")

// log reads n bytes of a log page; n is a multiple of 4.
func (d *Device) log(ctx context.Context, lid uint8, nsid uint32, n int) ([]byte, error) {
	b := make([]byte, n)
	cmd := nvme.GetLog(lid, nsid, 0, uint32(n))
	_, err := d.admin(ctx, &cmd, b)
	return b, err
}

// programs reads the list of program slots.
func (d *Device) programs(ctx context.Context) ([]cs.Program, error) {
	b, err := d.log(ctx, logPrograms, cs.RegionNamespace(d.region), 64+cs.MaxPrograms*cs.ProgramSize)
	if err != nil {
		return nil, err
	}
	return cs.UnmarshalPrograms(b)
}

// Counters reads the drive's counters since it was powered on.
func (d *Device) Counters(ctx context.Context) (*cs.Log, error) {
	if d.compute == nil {
		return nil, d.wrap("read counters", ErrNoCompute)
	}
	l, err := d.counters(ctx)
	return l, d.wrap("read counters", err)
}

func (d *Device) counters(ctx context.Context) (*cs.Log, error) {
	// As much as a drive of this project fills, usually in one command; a longer page is read again whole.
	n := cs.LogHeaderSize + 80*cs.LogEntrySize
	for {
		b, err := d.log(ctx, logVendor, nvme.AllNamespaces, n)
		if err != nil {
			return nil, err
		}
		if size := cs.LogSize(b); size > n {
			n = size
			continue
		}
		l := new(cs.Log)
		return l, l.Unmarshal(b)
	}
}

// SMART reads the drive's health log.
func (d *Device) SMART(ctx context.Context) (*nvme.SMARTLog, error) {
	b, err := d.log(ctx, logSMART, nvme.AllNamespaces, nvme.SMARTLogSize)
	if err != nil {
		return nil, d.wrap("read health", err)
	}
	l := new(nvme.SMARTLog)
	return l, d.wrap("read health", l.Unmarshal(b))
}
