package sdk

import (
	"fmt"
	"path/filepath"
	"sync"

	"github.com/millrace/millrace/fpga/csd"
)

// SharedDrives are the drives in files that several devices of this process have open together, a device for each
// region. A drive in a file that is opened without SharedDrives is open once. The zero value has no drive open. It is
// safe for concurrent use.
type SharedDrives struct {
	owning sync.Mutex // held while the owner of a drive is written beside it: there is one writer

	mu     sync.Mutex              // guards drives
	drives map[string]*sharedDrive // by path or name; a drive that was closed keeps its entry
}

// sharedDrive is a drive that is open as long as some device of it is.
type sharedDrive struct {
	mu   sync.Mutex // guards what follows, and is held while the drive is opened or closed
	d    *csd.Drive // nil: it is not open
	opt  csd.Options
	uses int // devices
}

// open opens the drive that the options name, unless it is open: then the options must be those of the open drive.
// release gives the drive up. The last device to do so closes it.
func (s *SharedDrives) open(opt csd.Options) (d *csd.Drive, release func() error, err error) {
	absolute, err := filepath.Abs(opt.Path)
	if err != nil {
		return nil, nil, fmt.Errorf("drive %s: %w", opt.Path, err)
	}
	drive := s.drive(absolute)
	return drive.open(opt, func() error {
		if err := drive.checkOptions(&opt); err != nil {
			return fmt.Errorf("drive %s: %w", opt.Path, err)
		}
		return nil
	})
}

// drive returns the entry of a name.
func (s *SharedDrives) drive(name string) *sharedDrive {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.drives == nil {
		s.drives = map[string]*sharedDrive{}
	}
	if s.drives[name] == nil {
		s.drives[name] = new(sharedDrive)
	}
	return s.drives[name]
}

// open opens the drive, unless it is open: then check says whether the caller may have it. release gives the drive up.
// The last one to do so closes it.
func (s *sharedDrive) open(opt csd.Options, check func() error) (d *csd.Drive, release func() error, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.d == nil {
		if s.d, err = csd.Open(opt); err != nil {
			return nil, nil, err
		}
		s.opt = opt
	} else if err := check(); err != nil {
		return nil, nil, err
	}
	s.uses++
	return s.d, s.release, nil
}

// checkOptions returns an error if the open drive differs from what the options of a URI say of it. Size, block size
// and regions of 0 say nothing. Memory and engine threads of 0 are the defaults, since a drive in a file does not keep
// them.
func (s *sharedDrive) checkOptions(want *csd.Options) error {
	size, lba := s.d.Geometry()
	regions := 0
	if images := s.d.Images(); images != nil {
		regions = len(images.Regions)
	}
	switch {
	case want.Size != 0 && want.Size != size, want.Diskless && size != 0, want.LBA != 0 && want.LBA != lba:
		return fmt.Errorf("a region of the drive is open, which has %d bytes in blocks of %d: %w", size, lba,
			csd.ErrGeometry)
	case want.Regions != 0 && want.Regions != regions:
		return fmt.Errorf("a region of the drive is open, which has %d regions: say the same of all its regions: %w",
			regions, csd.ErrGeometry)
	case orDefault(want.SLMBytes, csd.DefaultSLM) != orDefault(s.opt.SLMBytes, csd.DefaultSLM),
		orDefault(want.Threads, 1) != orDefault(s.opt.Threads, 1):
		return fmt.Errorf("a region of the drive is open, which has %d bytes of memory in all and %d engine threads a "+
			"region: say the same of all its regions: %w", orDefault(s.opt.SLMBytes, csd.DefaultSLM),
			orDefault(s.opt.Threads, 1), csd.ErrGeometry)
	}
	return nil
}

// release closes the drive if no other device has it open.
func (s *sharedDrive) release() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.uses--; s.uses > 0 {
		return nil
	}
	d := s.d
	s.d = nil
	return d.Close()
}
