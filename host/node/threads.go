package node

import (
	"cmp"
	"fmt"

	"github.com/millrace/millrace/fpga/csd"
	"github.com/millrace/millrace/host"
	"github.com/millrace/millrace/internal/quantity"
	"github.com/millrace/millrace/sdk"
)

// divideCores returns the engine threads of every drive, in the configuration's order; 0 leaves a drive its own number.
// Drives in files whose threads are not configured divide the cores that the other drives of this process leave, at
// least one each. cores is how many this process may use, by its affinity and its control group's quota.
func (c *Config) divideCores(cores int) []int {
	threads := make([]int, len(c.Drives))
	var dividing []int // indexes of the drives that divide the cores
	for i := range c.Drives {
		d := &c.Drives[i]
		threads[i] = d.Threads
		configured, computes := d.configuredThreads()
		switch {
		case !computes:
		case configured > 0:
			cores -= configured
		default:
			dividing = append(dividing, i)
		}
	}
	for _, i := range dividing {
		threads[i] = min(max(cores/len(dividing), 1), sdk.MaxThreads)
	}
	return threads
}

// configuredThreads returns how many of this machine's cores a drive is configured to use, 0 if that is not configured.
// computes is false for a drive that computes elsewhere, and for a drive that has a single thread by default: in
// memory, without flash, or with the reference engine.
func (d *DriveConfig) configuredThreads() (threads int, computes bool) {
	u, err := sdk.ParseURI(d.URI)
	if err != nil {
		return 0, false // check has reported it
	}
	onCPU := d.Engine == string(host.EngineCPU)
	switch {
	case d.Accelerator != "" || d.Engine == string(host.EngineReference):
		return 0, false
	case u.Scheme == "file" && !u.Diskless && onCPU:
		return d.Threads, true
	case u.Scheme == "file" && !u.Diskless:
		return cmp.Or(u.Threads, d.Threads), true
	case onCPU:
		return max(d.Threads, 1), true
	case u.Scheme == "file", u.Scheme == "mem":
		return max(u.Threads, 1), true
	}
	return 0, false
}

// threadsUnused reports whether nothing uses the configured number of threads: the drive computes, and has threads of
// its own.
func (d *DriveConfig) threadsUnused() bool {
	u, err := sdk.ParseURI(d.URI)
	if err != nil || d.Threads == 0 {
		return false
	}
	switch {
	case d.Accelerator != "" || u.Scheme == "mem" || u.Diskless:
		return d.Engine != string(host.EngineCPU)
	case u.Scheme == "tcp" || u.Scheme == "nvme":
		return d.Engine == string(host.EngineDrive)
	}
	return d.Engine == string(host.EngineReference)
}

// examineEngines adds findings: engine threads that have no effect, and threads and memory that the machine lacks.
// cores and memory are the machine's; memory is 0 where that is not known.
func (x *examination) examineEngines(cores int, memory uint64) {
	var threads int
	var bytes uint64
	counted := map[string]bool{} // drives in files, whose memory their regions divide
	for i, own := range x.c.divideCores(cores) {
		d := &x.c.Drives[i]
		if d.threadsUnused() {
			x.add(x.c.drivePart(i), Warning, "threads: %d has no effect: what computes for this drive has threads of "+
				"its own; say threads=%d in its uri, where it lies in this process", d.Threads, d.Threads)
		}
		configured, computes := d.configuredThreads()
		if computes {
			threads += cmp.Or(configured, own)
		}
		u, err := sdk.ParseURI(d.URI)
		if err != nil || u.Scheme != "file" {
			continue
		}
		o := d.hostOptions(x.c.Text, own)
		o.Regions = x.c.regionsAt(&u)
		own, slm := o.FileDriveEngine(u)
		if slm = cmp.Or(u.SLM, slm); slm == 0 && own > 0 {
			slm = csd.DefaultSLM
		}
		if at := location(&u); !counted[at] {
			counted[at] = true
			bytes += uint64(slm)
		}
		if own > 0 {
			x.add(x.c.drivePart(i), Fine, "%d engine threads, %s of memory for %d jobs", own,
				quantity.Text(slm/int64(o.Regions)), o.Jobs)
		}
	}
	if threads > cores {
		x.add("drives", Warning, "they have %d engine threads on %d cores: they share the cores, and P does not add up",
			threads, cores)
	}
	if memory > 0 && bytes > memory {
		x.add("drives", Warning, "their memory may grow to %d bytes, of %d that this machine has: "+
			"give fewer threads or jobs, or say slm= in their uris", bytes, memory)
	}
}

// drivePart returns what findings call a drive.
func (c *Config) drivePart(i int) string { return fmt.Sprintf("drives[%d] %s", i, c.Drives[i].Name) }
