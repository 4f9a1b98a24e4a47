package sdk

import (
	"fmt"
	"io/fs"
	"slices"

	"github.com/millrace/millrace/fpga/csd"
)

// named are the memory drives that have a name, so that a name means the same drive everywhere in the process. They are
// the package's only state. A drive lives as long as some device of it is open.
var named SharedDrives

// openNamed opens a memory drive; a drive with an empty name is not shared. release gives it up.
func openNamed(name string, opt csd.Options) (d *csd.Drive, release func() error, err error) {
	create := opt.Create
	opt.Create = false
	if name == "" {
		if d, err = csd.Open(opt); err != nil {
			return nil, nil, err
		}
		return d, d.Close, nil
	}
	drive := named.drive(name)
	return drive.open(opt, func() error {
		if create {
			return fmt.Errorf("a drive of that name is open: %w", fs.ErrExist)
		}
		return drive.checkNamed(&opt)
	})
}

// checkNamed returns an error if the open drive differs from what the options of a URI say of it. Options of 0 say
// nothing.
func (s *sharedDrive) checkNamed(want *csd.Options) error {
	size, lba := s.d.Geometry()
	if want.Size != 0 && want.Size != size || want.Diskless && size != 0 || want.LBA != 0 && want.LBA != lba ||
		want.SLMBytes != 0 && want.SLMBytes != orDefault(s.opt.SLMBytes, csd.DefaultSLM) ||
		want.Threads != 0 && want.Threads != orDefault(s.opt.Threads, 1) ||
		want.Regions != 0 && want.Regions != orDefault(s.opt.Regions, 1) ||
		want.RegionWeights != nil && !slices.Equal(want.RegionWeights, s.opt.RegionWeights) ||
		want.HostIOShare != 0 && want.HostIOShare != s.d.HostIOShare() {
		return fmt.Errorf("the open drive of that name is another size, or has other regions or limits: %w",
			csd.ErrGeometry)
	}
	if want.Timing != nil && want.Timing != s.opt.Timing {
		return fmt.Errorf("the open drive of that name has another timing: %w", csd.ErrBusy)
	}
	return nil
}

func orDefault[T comparable](v, def T) T {
	var zero T
	if v == zero {
		return def
	}
	return v
}
