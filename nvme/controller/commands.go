package controller

import (
	"context"
	"runtime/debug"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/cs"
)

// Transfer is the data of a command that the transport moves: Length bytes to the controller before Execute, or from it
// afterwards.
type Transfer struct {
	Direction nvme.Direction
	Length    uint32 // bytes, at most MDTS
}

// handler holds what the controller knows of one command.
type handler struct {
	name    string
	effects uint32
	// check checks the submission queue entry and returns the bytes of data that belong to the command. It changes
	// nothing. The namespace is the one with blocks that the command addresses, or nil.
	check func(*Controller, *namespace, *nvme.Command) (uint64, nvme.Status)
	// run executes the command. check has accepted its entry.
	run func(*request) nvme.Status
}

const (
	supported = nvme.EffectSupported
	writes    = nvme.EffectSupported | nvme.EffectBlocksChange
)

// table holds the handlers of a queue's or a command set's commands by opcode; nil where there is no command.
type table [256]*handler

// tables hold the commands of a subsystem. The effects log is made from them.
type tables struct {
	admin table
	io    map[uint8]*table // by command set
}

// newTables lists every command; the commands for computation only if the drive computes. Without flash there is no
// namespace 1, so that the vendor set's I/O commands are sent to the namespace of computational programs.
func newTables(flash, computes bool) tables {
	admin := table{
		nvme.AdminGetLogPage:        {"Get Log Page", supported, checkGetLog, runGetLog},
		nvme.AdminIdentify:          {"Identify", supported, checkIdentify, runIdentify},
		nvme.AdminAbort:             {"Abort", supported, noData, runAbort},
		nvme.AdminSetFeatures:       {"Set Features", supported, checkSetFeatures, runSetFeatures},
		nvme.AdminGetFeatures:       {"Get Features", supported, checkGetFeatures, runGetFeatures},
		nvme.AdminAsyncEventRequest: {"Asynchronous Event Request", supported, noData, runAsyncEventRequest},
		nvme.AdminKeepAlive:         {"Keep Alive", supported, noData, runKeepAlive},
	}
	nvm := table{
		nvme.NVMFlush:       {"Flush", supported, noData, runFlush},
		nvme.NVMWrite:       {"Write", writes, checkWrite, runWrite},
		nvme.NVMRead:        {"Read", supported, checkRead, runRead},
		nvme.NVMCompare:     {"Compare", supported, checkRead, runCompare},
		nvme.NVMWriteZeroes: {"Write Zeroes", writes, checkWriteZeroes, runWriteZeroes},
		nvme.NVMDataset:     {"Dataset Management", writes, checkDataset, runDataset},
	}
	t := tables{admin, map[uint8]*table{nvme.CSINVM: &nvm}}
	if !computes {
		return t
	}
	t.admin[nvme.AdminLoadProgram] = &handler{"Load Program", supported, checkLoadProgram, runLoadProgram}
	t.admin[nvme.AdminProgramActivation] = &handler{"Program Activation Management", supported, checkActivation,
		runActivation}
	t.admin[nvme.AdminMemoryRangeSetManage] = &handler{"Memory Range Set Management", supported, checkRangeSet,
		runRangeSet}
	t.admin[cs.AdminImageDownload] = &handler{"Image Download", supported, checkImageDownload, runImageDownload}
	t.admin[cs.AdminImageActivate] = &handler{"Image Activate", supported, checkImageActivate, runImageActivate}
	t.admin[cs.AdminSLMReserve] = &handler{"SLM Reserve", supported, checkReserve, runReserve}
	t.admin[cs.AdminSLMRelease] = &handler{"SLM Release", supported, noData, runRelease}
	t.io[nvme.CSISLM] = &table{
		cs.SLMCopy:  {"Memory Copy", supported, checkMemoryCopy, runMemoryCopy},
		cs.SLMRead:  {"Memory Read", supported, checkMemory(cs.SLMGranularity), runFetch},
		cs.SLMFill:  {"Memory Fill", supported, checkMemoryFill, runMemoryFill},
		cs.SLMWrite: {"Memory Write", supported, checkMemory(cs.SLMGranularity), runStore},
	}
	t.io[nvme.CSICompute] = &table{
		cs.ExecuteProgram: {"Execute Program", supported, checkExecute, runExecute},
	}
	vendor := &nvm
	if !flash {
		vendor = t.io[nvme.CSICompute]
	}
	vendor[cs.IOPreprocess] = &handler{"Preprocess", supported, checkPreprocess, runPreprocess}
	vendor[cs.IOFetch] = &handler{"Fetch", supported, checkMemory(1), runFetch}
	vendor[cs.IOStore] = &handler{"Store", supported, checkMemory(1), runStore}
	return t
}

// findHandler returns the command's handler, and the namespace with blocks that it addresses: nil for other namespaces,
// and for a Flush of all.
func (c *Controller) findHandler(queue uint16, cmd *nvme.Command) (*handler, *namespace, nvme.Status) {
	from := &c.sub.tables.admin
	var ns *namespace
	if queue != 0 {
		nsid := cmd.NSID()
		ns = c.sub.blockNamespace(nsid)
		csi, ok := uint8(nvme.CSINVM), ns != nil || nsid == nvme.AllNamespaces && cmd.Opcode() == nvme.NVMFlush
		if !ok {
			csi, ok = c.sub.computeSet(nsid)
			ok = ok && !c.plain.Load()
		}
		if from = c.sub.tables.io[csi]; !ok || from == nil {
			return nil, nil, nvme.InvalidNamespace
		}
	}
	if h := from[cmd.Opcode()]; h != nil {
		return h, ns, nvme.Success
	}
	return nil, nil, nvme.InvalidOpcode
}

// checkEntry checks what the submission queue entry alone shows.
func (c *Controller) checkEntry(queue uint16, cmd *nvme.Command) (*handler, *namespace, Transfer, nvme.Status) {
	sgl := cmd.SGL()
	absent := sgl == nvme.SGL{} // Some hosts leave the data pointer of commands without data zero.
	switch {
	case cmd.Fuse() != 0 || cmd.PSDT() != 1:
		return nil, nil, Transfer{}, nvme.InvalidField
	case !absent && sgl.Type != nvme.SGLTransportDataBlock && sgl.Type != nvme.SGLDataBlockOffset:
		return nil, nil, Transfer{}, nvme.InvalidSGLType
	case sgl.Type == nvme.SGLDataBlockOffset && sgl.Address != 0:
		return nil, nil, Transfer{}, nvme.InvalidSGLOffset
	}
	h, ns, st := c.findHandler(queue, cmd)
	if !st.OK() {
		return nil, nil, Transfer{}, st
	}
	n, st := h.check(c, ns, cmd)
	switch {
	case !st.OK():
		return nil, nil, Transfer{}, st
	case n > MDTS:
		return nil, nil, Transfer{}, nvme.InvalidField
	case n != 0 && absent:
		return nil, nil, Transfer{}, nvme.InvalidSGLType
	case n != uint64(sgl.Length):
		return nil, nil, Transfer{}, nvme.InvalidSGLLength
	case n == 0:
		return h, ns, Transfer{}, nvme.Success
	}
	return h, ns, Transfer{cmd.Direction(), uint32(n)}, nvme.Success
}

// Parse returns the data that a command needs moved, or the status to complete it with at once. queue 0 is the admin
// queue. Parse changes nothing but the time at which the host was last heard of.
func (c *Controller) Parse(queue uint16, cmd *nvme.Command) (Transfer, nvme.Status) {
	c.Heard()
	c.mu.Lock()
	st := c.acceptsCommands(queue)
	c.mu.Unlock()
	if !st.OK() {
		return Transfer{}, st.Final()
	}
	_, _, t, st := c.checkEntry(queue, cmd)
	return t, st.Final()
}

// acceptsCommands returns Success if a queue takes commands now. c.mu is held.
func (c *Controller) acceptsCommands(queue uint16) nvme.Status {
	if c.state != stateReady || queue != 0 && c.queues[queue] == nil {
		return nvme.CommandSequenceError
	}
	return nvme.Success
}

// Execute executes a command and returns when it has completed. data is the buffer that Parse asked for: the transport
// fills it for a transfer to the controller, and Execute fills it for the other direction. It belongs to the controller
// until Execute returns. When ctx ends, a command that can be cancelled completes with Command Abort Requested.
func (c *Controller) Execute(ctx context.Context, queue uint16, cmd *nvme.Command, data []byte) nvme.Completion {
	h, ns, t, st := c.checkEntry(queue, cmd)
	if st.OK() && len(data) != int(t.Length) {
		st = nvme.DataTransferError
	}
	if st.OK() && ns != nil && !ns.enterFlash() {
		st = nvme.InvalidNamespace
	}
	if !st.OK() {
		return nvme.NewCompletion(cmd.CID(), st.Final())
	}
	r := requests.Get().(*request)
	*r = request{c: c, h: h, caller: ctx, queue: queue, cmd: cmd, data: data, ns: ns}
	defer func() {
		if ns != nil {
			ns.leaveFlash()
		}
		*r = request{}
		requests.Put(r)
	}()
	if st := c.beginRequest(r); !st.OK() {
		return nvme.NewCompletion(cmd.CID(), st.Final())
	}
	st = c.endRequest(r, r.contained())
	out := nvme.NewCompletion(cmd.CID(), st)
	out.SetResult(r.result)
	return out
}

// contained runs the command. A flash or a compute device that panics fails its command with Internal Error and does
// not end the process: they are called with no lock held.
func (r *request) contained() (st nvme.Status) {
	defer func() {
		if p := recover(); p != nil {
			r.c.sub.log.Error("a command panicked", "command", r.h.name, "panic", p, "stack", string(debug.Stack()))
			st, r.result = nvme.InternalError, 0
		}
	}()
	return r.h.run(r)
}

func (r *request) outstandingKey() uint32 { return uint32(r.queue)<<16 | uint32(r.cmd.CID()) }

// beginRequest makes the command outstanding.
func (c *Controller) beginRequest(r *request) nvme.Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	if st := c.acceptsCommands(r.queue); !st.OK() {
		return st
	}
	if c.outstanding[r.outstandingKey()] != nil {
		return nvme.CommandIDConflict
	}
	// A host that overruns its queue breaks the transport's rules.
	if r.queue == 0 {
		if c.admin == AdminDepth {
			return nvme.CommandSequenceError
		}
		c.admin++
	} else {
		q := c.queues[r.queue]
		if q.running == q.size {
			return nvme.CommandSequenceError
		}
		q.running++
		r.q = q
		c.sub.health.EnterCommand()
	}
	c.outstanding[r.outstandingKey()] = r
	return nvme.Success
}

// endRequest completes the command: its access to memory ends, an abort replaces its status, and an error is recorded.
func (c *Controller) endRequest(r *request, st nvme.Status) nvme.Status {
	if r.access.Owner != nil {
		c.sub.slm.EndAccess(&r.access)
	}
	c.mu.Lock()
	if r.cancel != nil {
		r.cancel()
	}
	delete(c.outstanding, r.outstandingKey())
	if r.queue == 0 {
		c.admin--
	} else {
		r.q.running--
		c.sub.health.LeaveCommand()
	}
	if r.aborted != nvme.Success && !(st.OK() && r.gave) {
		st, r.result = r.aborted, 0
	}
	if len(c.outstanding) == 0 {
		c.idle.Broadcast()
	}
	c.mu.Unlock()
	st = st.Final()
	if st.Code() == nvme.UnrecoveredReadError || st.Code() == nvme.WriteFault || st.Code() == nvme.InternalError ||
		!st.OK() && r.more != 0 {
		st |= nvme.StatusMore
		if r.recorded {
			return st
		}
		if st.Type() == nvme.TypeMedia {
			c.sub.health.MediaErrors.Add(1)
		}
		c.sub.health.RecordError(nvme.ErrorEntry{
			SQID: r.queue, CID: r.cmd.CID(), Status: st, Location: 0xffff, LBA: r.lba, NSID: r.cmd.NSID(),
			VendorLog: r.more, Opcode: r.cmd.Opcode(),
		})
	}
	return st
}

func noData(*Controller, *namespace, *nvme.Command) (uint64, nvme.Status) { return 0, nvme.Success }
