package sdk

import (
	"fmt"
	"io/fs"
	"slices"
	"sync"

	"github.com/millrace/millrace/fpga/csd"
)

// named holds the memory drives that have a name, so that a name means the same drive everywhere in the process. It is
// the package's only state. A drive lives as long as some device of it is open.
var named = struct {
	sync.Mutex
	drives map[string]*namedDrive
}{drives: make(map[string]*namedDrive)}

type namedDrive struct {
	d    *csd.Drive
	opt  csd.Options
	uses int
}

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
	named.Lock()
	defer named.Unlock()
	n := named.drives[name]
	switch {
	case n == nil:
		if d, err = csd.Open(opt); err != nil {
			return nil, nil, err
		}
		n = &namedDrive{d: d, opt: opt}
		named.drives[name] = n
	case create:
		return nil, nil, fmt.Errorf("a drive of that name is open: %w", fs.ErrExist)
	default:
		size, lba := n.d.Geometry()
		if opt.Size != 0 && opt.Size != size || opt.Diskless && size != 0 || opt.LBA != 0 && opt.LBA != lba ||
			opt.SLMBytes != 0 && opt.SLMBytes != orDefault(n.opt.SLMBytes, csd.DefaultSLM) ||
			opt.Threads != 0 && opt.Threads != orDefault(n.opt.Threads, 1) ||
			opt.Regions != 0 && opt.Regions != orDefault(n.opt.Regions, 1) ||
			opt.RegionWeights != nil && !slices.Equal(opt.RegionWeights, n.opt.RegionWeights) ||
			opt.HostIOShare != 0 && opt.HostIOShare != n.d.HostIOShare() {
			return nil, nil, fmt.Errorf("the open drive of that name is another size, or has other regions or limits: %w",
				csd.ErrGeometry)
		}
		if opt.Timing != nil && opt.Timing != n.opt.Timing {
			return nil, nil, fmt.Errorf("the open drive of that name has another timing: %w", csd.ErrBusy)
		}
	}
	n.uses++
	return n.d, func() error { return n.release(name) }, nil
}

func (n *namedDrive) release(name string) error {
	named.Lock()
	defer named.Unlock()
	if n.uses--; n.uses > 0 {
		return nil
	}
	delete(named.drives, name)
	return n.d.Close()
}

func orDefault[T comparable](v, def T) T {
	var zero T
	if v == zero {
		return def
	}
	return v
}
