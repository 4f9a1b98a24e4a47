package controller

import "github.com/millrace/millrace/nvme"

func runKeepAlive(*request) nvme.Status { return nvme.Success } // Parse noted the time

func runAsyncEventRequest(r *request) nvme.Status {
	word, st := r.c.asyncEventRequest(r.context())
	r.result, r.gave = uint64(word), true
	return st
}

// runAbort cancels an outstanding command. Bit 0 of dword 0 is 0 when it was found: it then completes with Command
// Abort Requested: at once if it waits, else as soon as it looks, even if it did a part of its work before. Only what
// gives the host something (an event, memory, a range set) and has done so completes with that. Abort itself never
// waits, and one runs at a time, so a host cannot exceed AbortLimit.
func runAbort(r *request) nvme.Status {
	c := r.c
	c.mu.Lock()
	defer c.mu.Unlock()
	d := r.cmd.DW(10)
	victim := c.outstanding[d<<16|d>>16]
	if victim == nil || victim == r {
		r.result = 1
		return nvme.Success
	}
	victim.abortWith(nvme.CommandAborted)
	return nvme.Success
}
