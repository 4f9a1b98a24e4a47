package controller

import (
	"bytes"
	"errors"
	"syscall"

	"github.com/millrace/millrace/nvme"
)

// piece is how many bytes a long operation does between looks at whether it is still wanted.
const piece = 1 << 20

var zeros [128 << 10]byte

// span checks that n blocks from slba on exist.
func (s *Subsystem) span(slba, n uint64) nvme.Status {
	if slba > s.blocks || n > s.blocks-slba {
		return nvme.LBAOutOfRange
	}
	return nvme.Success
}

// nvmBlocks reads the first block and the count of a Read, Write, Compare or Write Zeroes.
func nvmBlocks(cmd *nvme.Command) (slba, n uint64) { return cmd.QW(10), uint64(cmd.DW(12)&0xffff) + 1 }

func checkRead(c *Controller, cmd *nvme.Command) (uint64, nvme.Status) {
	slba, n := nvmBlocks(cmd)
	return n << c.sub.shift, c.sub.span(slba, n)
}

func checkWrite(c *Controller, cmd *nvme.Command) (uint64, nvme.Status) {
	if c.sub.opt.Flash.ReadOnly() {
		return 0, nvme.WriteProtected
	}
	if cmd.DW(12)>>20&0xf != 0 { // DTYPE: there are no directives
		return 0, nvme.InvalidField
	}
	return checkRead(c, cmd)
}

func checkWriteZeroes(c *Controller, cmd *nvme.Command) (uint64, nvme.Status) {
	if c.sub.opt.Flash.ReadOnly() {
		return 0, nvme.WriteProtected
	}
	slba, n := nvmBlocks(cmd)
	return 0, c.sub.span(slba, n)
}

func checkDataset(c *Controller, cmd *nvme.Command) (uint64, nvme.Status) {
	if c.sub.opt.Flash.ReadOnly() {
		return 0, nvme.WriteProtected
	}
	need := uint64(datasetRanges(cmd)) * nvme.DatasetRangeSize
	// Linux sends room for the most ranges whatever their number is: some drives read that much.
	if n := uint64(cmd.SGL().Length); n > need && n <= maxDatasetRanges*nvme.DatasetRangeSize {
		return n, nvme.Success
	}
	return need, nvme.Success
}

// maxDatasetRanges is the most ranges of a Dataset Management.
const maxDatasetRanges = 256

func datasetRanges(cmd *nvme.Command) int { return int(cmd.DW(10)&0xff) + 1 }

// readFlash reads blocks into p and counts them.
func (r *request) readFlash(p []byte, off int64) nvme.Status {
	s := r.c.sub
	if n, err := s.opt.Flash.ReadAt(p, off); n < len(p) {
		r.lba = uint64(off+int64(max(n, 0))) >> s.shift
		s.log.Error("read flash", "offset", off, "bytes", len(p), "done", n, "error", err)
		return nvme.UnrecoveredReadError
	}
	s.health.sectorsRead.Add(uint64(len(p)) / 512)
	return nvme.Success
}

func (r *request) writeFlash(p []byte, off int64) nvme.Status {
	s := r.c.sub
	if n, err := s.opt.Flash.WriteAt(p, off); n < len(p) || err != nil {
		r.lba = uint64(off+int64(max(n, 0))) >> s.shift
		return s.writeStatus("write flash", off, err)
	}
	return nvme.Success
}

// writeStatus is the status of a write that flash refused.
func (s *Subsystem) writeStatus(what string, off int64, err error) nvme.Status {
	s.log.Error(what, "offset", off, "error", err)
	if errors.Is(err, syscall.ENOSPC) {
		return nvme.CapacityExceeded
	}
	return nvme.WriteFault
}

// settle syncs where the command forces it, or where the host has turned the write cache off.
func (r *request) settle(force bool) nvme.Status {
	r.c.mu.Lock()
	force = force || !r.c.features.writeCache
	r.c.mu.Unlock()
	if !force {
		return nvme.Success
	}
	if err := r.c.sub.opt.Flash.Sync(); err != nil {
		return r.c.sub.writeStatus("sync flash", 0, err)
	}
	return nvme.Success
}

func runRead(r *request) nvme.Status {
	slba, _ := nvmBlocks(r.cmd)
	r.c.sub.health.hostReads.Add(1)
	return r.readFlash(r.data, int64(slba<<r.c.sub.shift))
}

func runWrite(r *request) nvme.Status {
	slba, _ := nvmBlocks(r.cmd)
	h := r.c.sub.health
	h.hostWrites.Add(1)
	if st := r.writeFlash(r.data, int64(slba<<r.c.sub.shift)); !st.OK() {
		return st
	}
	h.sectorsWritten.Add(uint64(len(r.data)) / 512)
	return r.settle(r.cmd.DW(12)&nvme.NVMForceUnitAccess != 0)
}

func runCompare(r *request) nvme.Status {
	slba, _ := nvmBlocks(r.cmd)
	r.c.sub.health.hostReads.Add(1)
	off := int64(slba << r.c.sub.shift)
	buf := make([]byte, min(len(r.data), len(zeros)))
	for data := r.data; len(data) > 0; {
		buf = buf[:min(len(data), len(buf))]
		if st := r.readFlash(buf, off); !st.OK() {
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
	if r.c.sub.opt.Flash.ReadOnly() {
		return nvme.Success
	}
	return r.settle(true)
}

func runWriteZeroes(r *request) nvme.Status {
	slba, n := nvmBlocks(r.cmd)
	off, left := int64(slba<<r.c.sub.shift), int64(n<<r.c.sub.shift)
	if r.cmd.DW(12)&nvme.NVMDeallocate != 0 {
		if err := r.c.sub.opt.Flash.Discard(off, left); err != nil {
			r.lba = slba
			return r.c.sub.writeStatus("discard flash", off, err)
		}
		left = 0
	}
	for left > 0 {
		if r.context().Err() != nil {
			return nvme.CommandAborted
		}
		k := min(left, int64(len(zeros)))
		if st := r.writeFlash(zeros[:k], off); !st.OK() {
			return st
		}
		off, left = off+k, left-k
	}
	return r.settle(r.cmd.DW(12)&nvme.NVMForceUnitAccess != 0)
}

func runDataset(r *request) nvme.Status {
	n := datasetRanges(r.cmd)
	for i := range n {
		d := nvme.ParseDatasetRange(r.data, i)
		if st := r.c.sub.span(d.SLBA, uint64(d.Blocks)); !st.OK() {
			return st
		}
	}
	if r.cmd.DW(11)&(1<<2) == 0 { // only hints how the blocks will be used
		return nvme.Success
	}
	for i := range n {
		d := nvme.ParseDatasetRange(r.data, i)
		if r.context().Err() != nil {
			return nvme.CommandAborted
		}
		if d.Blocks == 0 {
			continue
		}
		off := int64(d.SLBA << r.c.sub.shift)
		if err := r.c.sub.opt.Flash.Discard(off, int64(d.Blocks)<<r.c.sub.shift); err != nil {
			r.lba = d.SLBA
			return r.c.sub.writeStatus("discard flash", off, err)
		}
	}
	return r.settle(false)
}
