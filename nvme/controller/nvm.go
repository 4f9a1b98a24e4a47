package controller

import (
	"bytes"
	"errors"
	"syscall"

	"github.com/millrace/millrace/nvme"
)

// transferChunk is the number of bytes that a long operation moves before it checks again whether it was cancelled.
const transferChunk = 1 << 20

var zeros [128 << 10]byte

// nvmBlocks reads the first block and the count of a Read, Write, Compare or Write Zeroes.
func nvmBlocks(cmd *nvme.Command) (slba, n uint64) { return cmd.QW(10), uint64(cmd.DW(12)&0xffff) + 1 }

func checkRead(_ *Controller, ns *namespace, cmd *nvme.Command) (uint64, nvme.Status) {
	slba, n := nvmBlocks(cmd)
	return n << ns.shift, ns.checkBlocks(slba, n)
}

func checkWrite(c *Controller, ns *namespace, cmd *nvme.Command) (uint64, nvme.Status) {
	if ns.readOnly {
		return 0, nvme.WriteProtected
	}
	if cmd.DW(12)>>20&0xf != 0 { // DTYPE: there are no directives
		return 0, nvme.InvalidField
	}
	return checkRead(c, ns, cmd)
}

func checkWriteZeroes(_ *Controller, ns *namespace, cmd *nvme.Command) (uint64, nvme.Status) {
	if ns.readOnly {
		return 0, nvme.WriteProtected
	}
	slba, n := nvmBlocks(cmd)
	return 0, ns.checkBlocks(slba, n)
}

func checkDataset(_ *Controller, ns *namespace, cmd *nvme.Command) (uint64, nvme.Status) {
	if ns.readOnly {
		return 0, nvme.WriteProtected
	}
	need := uint64(datasetRanges(cmd)) * nvme.DatasetRangeSize
	// Linux sends room for the most ranges, however few there are, because some drives read all of it.
	if n := uint64(cmd.SGL().Length); n > need && n <= maxDatasetRanges*nvme.DatasetRangeSize {
		return n, nvme.Success
	}
	return need, nvme.Success
}

// maxDatasetRanges is the most ranges of a Dataset Management.
const maxDatasetRanges = 256

func datasetRanges(cmd *nvme.Command) int { return int(cmd.DW(10)&0xff) + 1 }

// interrupted reports whether a command that takes long is to end, and with what.
func (r *request) interrupted(ns *namespace) nvme.Status {
	switch {
	case r.context().Err() != nil:
		return nvme.CommandAborted
	case ns.isRetiring():
		return nvme.InvalidNamespace
	}
	return nvme.Success
}

// readFlash reads blocks of a namespace into p and counts them.
func (r *request) readFlash(ns *namespace, p []byte, off int64) nvme.Status {
	s := r.c.sub
	if n, err := ns.flash.ReadAt(p, off); n < len(p) || err != nil {
		r.lba = uint64(off+int64(max(n, 0))) >> ns.shift
		s.log.Error("read flash", "offset", off, "bytes", len(p), "done", n, "error", err)
		return nvme.UnrecoveredReadError
	}
	s.health.SectorsRead.Add(uint64(len(p)) / 512)
	return nvme.Success
}

// readForHost is readFlash for a command of the NVM command set, within the share of such commands.
func (r *request) readForHost(p []byte, off int64) nvme.Status {
	return r.useFlashInTurn(func() nvme.Status { return r.readFlash(r.ns, p, off) })
}

func (r *request) writeFlash(p []byte, off int64) nvme.Status {
	defer r.beginChange(off, int64(len(p)))()
	return r.useFlashInTurn(func() nvme.Status {
		if n, err := r.ns.flash.WriteAt(p, off); n < len(p) || err != nil {
			r.lba = uint64(off+int64(max(n, 0))) >> r.ns.shift
			return r.c.sub.writeStatus("write flash", off, err)
		}
		return nvme.Success
	})
}

// discardFlash deallocates the n bytes from off on.
func (r *request) discardFlash(off, n int64) nvme.Status {
	defer r.beginChange(off, n)()
	return r.useFlashInTurn(func() nvme.Status {
		if err := r.ns.flash.Discard(off, n); err != nil {
			r.lba = uint64(off) >> r.ns.shift
			return r.c.sub.writeStatus("discard flash", off, err)
		}
		return nvme.Success
	})
}

// writeStatus is the status of a write that flash refused.
func (s *Subsystem) writeStatus(what string, off int64, err error) nvme.Status {
	s.log.Error(what, "offset", off, "error", err)
	if errors.Is(err, syscall.ENOSPC) {
		return nvme.CapacityExceeded
	}
	return nvme.WriteFault
}

// syncIfForced syncs where the command forces it, or where the host has turned the write cache off.
func (r *request) syncIfForced(force bool) nvme.Status {
	r.c.mu.Lock()
	force = force || !r.c.features.WriteCache
	r.c.mu.Unlock()
	if !force {
		return nvme.Success
	}
	return r.syncFlash(r.ns.flash.Sync)
}

// syncFlash puts what was written on stable storage, by sync.
func (r *request) syncFlash(sync func() error) nvme.Status {
	return r.useFlashInTurn(func() nvme.Status {
		if err := sync(); err != nil {
			return r.c.sub.writeStatus("sync flash", 0, err)
		}
		return nvme.Success
	})
}

func runRead(r *request) nvme.Status {
	slba, _ := nvmBlocks(r.cmd)
	r.c.sub.health.HostReads.Add(1)
	return r.readForHost(r.data, int64(slba<<r.ns.shift))
}

func runWrite(r *request) nvme.Status {
	slba, _ := nvmBlocks(r.cmd)
	h := r.c.sub.health
	h.HostWrites.Add(1)
	if st := r.writeFlash(r.data, int64(slba<<r.ns.shift)); !st.OK() {
		return st
	}
	h.SectorsWritten.Add(uint64(len(r.data)) / 512)
	return r.syncIfForced(r.cmd.DW(12)&nvme.NVMForceUnitAccess != 0)
}

func runCompare(r *request) nvme.Status {
	slba, _ := nvmBlocks(r.cmd)
	r.c.sub.health.HostReads.Add(1)
	off := int64(slba << r.ns.shift)
	buf := make([]byte, min(len(r.data), len(zeros)))
	for data := r.data; len(data) > 0; {
		buf = buf[:min(len(data), len(buf))]
		if st := r.readForHost(buf, off); !st.OK() {
			return st
		}
		if !bytes.Equal(buf, data[:len(buf)]) {
			return nvme.CompareFailure
		}
		data, off = data[len(buf):], off+int64(len(buf))
	}
	return nvme.Success
}

func runFlush(r *request) nvme.Status {
	if r.ns == nil { // every namespace
		return r.syncFlash(r.c.sub.syncAll)
	}
	if r.ns.readOnly {
		return nvme.Success
	}
	return r.syncIfForced(true)
}

func runWriteZeroes(r *request) nvme.Status {
	slba, n := nvmBlocks(r.cmd)
	off, left := int64(slba<<r.ns.shift), int64(n<<r.ns.shift)
	if r.cmd.DW(12)&nvme.NVMDeallocate != 0 {
		if st := r.discardFlash(off, left); !st.OK() {
			return st
		}
		left = 0
	}
	for left > 0 {
		if st := r.interrupted(r.ns); !st.OK() {
			return st
		}
		k := min(left, int64(len(zeros)))
		if st := r.writeFlash(zeros[:k], off); !st.OK() {
			return st
		}
		off, left = off+k, left-k
	}
	return r.syncIfForced(r.cmd.DW(12)&nvme.NVMForceUnitAccess != 0)
}

func runDataset(r *request) nvme.Status {
	n := datasetRanges(r.cmd)
	for i := range n {
		d := nvme.ParseDatasetRange(r.data, i)
		if st := r.ns.checkBlocks(d.SLBA, uint64(d.Blocks)); !st.OK() {
			return st
		}
	}
	if r.cmd.DW(11)&(1<<2) == 0 { // only hints how the blocks will be used
		return nvme.Success
	}
	for i := range n {
		d := nvme.ParseDatasetRange(r.data, i)
		if st := r.interrupted(r.ns); !st.OK() {
			return st
		}
		if d.Blocks == 0 {
			continue
		}
		off := int64(d.SLBA << r.ns.shift)
		if st := r.discardFlash(off, int64(d.Blocks)<<r.ns.shift); !st.OK() {
			return st
		}
	}
	return r.syncIfForced(false)
}
