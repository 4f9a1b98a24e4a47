package kerneltest

import (
	"context"
	"hash/fnv"
	"os"
	"sync"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/controller"
	"github.com/millrace/millrace/nvme/controller/programs"
	"github.com/millrace/millrace/nvme/cs"
)

// fileFlash is flash in a file: what was written survives the process, which tests kill.
type fileFlash struct {
	f    *os.File
	size int64
}

func openFlash(name string, size int64) (*fileFlash, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	return &fileFlash{f, size}, f.Truncate(size)
}

func (x *fileFlash) ReadAt(p []byte, off int64) (int, error)  { return x.f.ReadAt(p, off) }
func (x *fileFlash) WriteAt(p []byte, off int64) (int, error) { return x.f.WriteAt(p, off) }
func (x *fileFlash) Sync() error                              { return nil } // a killed process loses nothing written
func (x *fileFlash) Size() int64                              { return x.size }
func (x *fileFlash) ReadOnly() bool                           { return false }

func (x *fileFlash) Discard(off, n int64) error {
	zeros := make([]byte, 1<<20)
	for n > 0 {
		part := min(n, int64(len(zeros)))
		if _, err := x.f.WriteAt(zeros[:part], off); err != nil {
			return err
		}
		off, n = off+part, n-part
	}
	return nil
}

// compute is a device whose program fills its last range with the bytes of its first, each one greater, and whose
// result is a hash of the arguments.
type compute struct {
	slm []byte
	mu  sync.Mutex
}

func newCompute(slm int) *compute { return &compute{slm: make([]byte, slm)} }

func (c *compute) SLM() []byte               { return c.slm }
func (c *compute) ClearSLM(b []byte)         { clear(b) }
func (c *compute) BackendName() string       { return "functional" }
func (c *compute) Programs() programs.Device { return slots{} }

func (c *compute) Log() []byte {
	l := cs.Log{Backend: c.BackendName(), Threads: 1}
	return l.Marshal()
}

func (c *compute) Execute(_ context.Context, x controller.Execution) (uint64, nvme.Status) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(x.Ranges) > 0 {
		in, out := x.Ranges[0], x.Ranges[len(x.Ranges)-1]
		for i := range min(in.Len, out.Len) {
			c.slm[out.Addr+i] = c.slm[in.Addr+i] + 1
		}
	}
	h := fnv.New64a()
	h.Write(x.Args)
	return h.Sum64(), nvme.Success
}

// slots hold the stock program and nothing else.
type slots struct{}

func (slots) Limits() programs.Limits {
	return programs.Limits{Slots: 1, MaxBytes: 1 << 20}
}

func (slots) List() []cs.Program {
	return []cs.Program{{Occupancy: cs.SlotDevice, Active: true, Type: cs.ProgramTypeImage, PUID: 1, Bytes: 1}}
}
func (slots) Load(int, uint64, []byte) nvme.Status           { return nvme.InvalidProgramIndex }
func (slots) Unload(int) nvme.Status                         { return nvme.InvalidProgramIndex }
func (slots) Activate(context.Context, int, int) nvme.Status { return nvme.Success }
func (slots) Deactivate(int) nvme.Status                     { return nvme.Success }
func (slots) Active(int) int                                 { return 0 }
