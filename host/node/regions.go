package node

import (
	"fmt"
	"path/filepath"

	"github.com/millrace/millrace/host"
	"github.com/millrace/millrace/sdk"
)

// location names the drive of a URI, whichever its region. It is empty for a drive in memory, which is not checked:
// without a name it is another one each time.
func location(u *sdk.URI) string {
	switch u.Scheme {
	case "mem":
		return ""
	case "file", "nvme":
		return u.Scheme + ":" + filepath.Clean(u.Name)
	}
	return u.Scheme + ":" + u.Host + "/" + u.Name
}

// driveRegions are the regions of one drive that a configuration lists as drives.
type driveRegions struct {
	first *DriveConfig
	uri   sdk.URI        // uri is that of first.
	names map[int]string // what the configuration calls each region
}

// add lists a region of the drive. It returns an error, which begins with the field's path, if the region is listed
// already, or cannot be beside the others.
func (r *driveRegions) add(d *DriveConfig, u sdk.URI) error {
	if other, ok := r.names[u.Region]; ok {
		return fmt.Errorf(".uri: it is the drive that %s is, too: leave one of the two out, or name another region of the "+
			"drive with region=", other)
	}
	r.names[u.Region] = d.Name
	if len(r.names) == 1 {
		r.first, r.uri = d, u
		return nil
	}
	for _, one := range []*DriveConfig{r.first, d} {
		if !one.computesInRegion() {
			return fmt.Errorf(".uri: %s and %s are regions of one drive, and what computes for %s is not a region of it: "+
				"leave engine and accelerator out, or list the drive once", r.first.Name, d.Name, one.Name)
		}
	}
	if u.Scheme != "file" {
		return nil
	}
	if differs := differingDrive(r.first, d, &r.uri, &u); differs != "" {
		return fmt.Errorf(": %s and %s are regions of one drive in a file, which is opened once: say the same %s of both",
			r.first.Name, d.Name, differs)
	}
	return nil
}

// computesInRegion reports whether a drive's splits are computed in the region that its URI names, if the drive
// computes.
func (d *DriveConfig) computesInRegion() bool {
	return d.Accelerator == "" && (d.Engine == "" || d.Engine == string(host.EngineDrive))
}

// differingDrive returns what two regions of a drive in a file say differently of the drive, or "".
func differingDrive(a, b *DriveConfig, u, v *sdk.URI) string {
	switch {
	case u.Size != v.Size || u.Diskless != v.Diskless || u.LBA != v.LBA || u.SLM != v.SLM || u.Threads != v.Threads ||
		u.Regions != v.Regions:
		return "size, lba, slm, threads and regions in the uris"
	case a.Threads != b.Threads:
		return "threads"
	case u.SLM == 0 && (a.Jobs != b.Jobs || a.Streams != b.Streams || a.SLM != b.SLM):
		return "jobs, streams and slm, or slm= in the uris"
	}
	return ""
}

// regionsAt returns how many regions the drive of a URI has at least, by all that the configuration says of the drive.
func (c *Config) regionsAt(u *sdk.URI) int {
	n := max(u.Regions, u.Region+1)
	at := location(u)
	for i := range c.Drives {
		other, err := sdk.ParseURI(c.Drives[i].URI)
		if err == nil && at != "" && location(&other) == at {
			n = max(n, other.Regions, other.Region+1)
		}
	}
	return n
}
