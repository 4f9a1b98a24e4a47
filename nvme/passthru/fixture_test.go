package passthru

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/controller"
)

// tree writes files with contents, and links (their content begins with "-> "), below a folder that stands for /sys.
func tree(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		if len(content) > 3 && content[:3] == "-> " {
			require.NoError(t, os.Symlink(content[3:], path))
			continue
		}
		require.NoError(t, os.WriteFile(path, []byte(content+"\n"), 0o644))
	}
	return dir
}

// merge joins trees; later ones win.
func merge(trees ...map[string]string) map[string]string {
	all := map[string]string{}
	for _, m := range trees {
		for k, v := range m {
			all[k] = v
		}
	}
	return all
}

// computing is what Linux 6.1 shows of a drive on the wire with the three namespaces: one path, so no shared devices.
// Numbers in names differ from the identifiers on purpose.
var computing = map[string]string{
	"class/nvme/nvme3": "-> ../../devices/virtual/nvme-fabrics/ctl/nvme3",
	"devices/virtual/nvme-fabrics/ctl/nvme3/model":                            "Millrace CSD                            ",
	"devices/virtual/nvme-fabrics/ctl/nvme3/serial":                           "0123456789abcdef0123",
	"devices/virtual/nvme-fabrics/ctl/nvme3/firmware_rev":                     "1.0     ",
	"devices/virtual/nvme-fabrics/ctl/nvme3/subsysnqn":                        "nqn.2014-08.org.nvmexpress:uuid:1",
	"devices/virtual/nvme-fabrics/ctl/nvme3/transport":                        "tcp",
	"devices/virtual/nvme-fabrics/ctl/nvme3/address":                          "traddr=10.0.2.2,trsvcid=4420",
	"devices/virtual/nvme-fabrics/ctl/nvme3/state":                            "live",
	"devices/virtual/nvme-fabrics/ctl/nvme3/dev":                              "237:3",
	"devices/virtual/nvme-fabrics/ctl/nvme3/ng3n5/dev":                        "236:0",
	"devices/virtual/nvme-fabrics/ctl/nvme3/ng3n6/dev":                        "236:1",
	"devices/virtual/nvme-fabrics/ctl/nvme3/ng3n7/dev":                        "236:2",
	"devices/virtual/nvme-fabrics/ctl/nvme3/nvme3n5/nsid":                     "1",
	"devices/virtual/nvme-fabrics/ctl/nvme3/nvme3n5/dev":                      "259:4",
	"devices/virtual/nvme-fabrics/ctl/nvme3/nvme3n5/hidden":                   "0",
	"devices/virtual/nvme-fabrics/ctl/nvme3/nvme3n5/size":                     "2048",
	"devices/virtual/nvme-fabrics/ctl/nvme3/nvme3n5/queue/nothing":            "",
	"devices/virtual/nvme-fabrics/ctl/nvme3/nvme3n5/nvme3n5p1/start":          "34",
	"devices/virtual/nvme-fabrics/ctl/nvme3/nvme3n6/nsid":                     "2",
	"devices/virtual/nvme-fabrics/ctl/nvme3/nvme3n6/hidden":                   "1",
	"devices/virtual/nvme-fabrics/ctl/nvme3/nvme3n7/nsid":                     "3",
	"devices/virtual/nvme-fabrics/ctl/nvme3/nvme3n7/hidden":                   "1",
	"devices/virtual/nvme-fabrics/ctl/nvme3/nvme3n5/queue/max_sectors":        "1",
	"devices/virtual/nvme-fabrics/ctl/nvme3/nvme3n5/queue/logical_block_size": "512",
	"devices/virtual/nvme-fabrics/ctl/nvme3/nvme3n5/queue/max_hw_sectors_kb":  "1024",
	"devices/virtual/nvme-fabrics/ctl/nvme3/nvme3n5/queue/max_segments":       "257",
	"devices/virtual/nvme-fabrics/ctl/nvme3/power/control":                    "auto",
	"class/nvme-subsystem/nvme-subsys3/nvme3":                                 "-> ../../nvme/nvme3",
	"class/nvme-subsystem/nvme-subsys3/subsysnqn":                             "nqn.2014-08.org.nvmexpress:uuid:1",
}

// shared is a subsystem that the kernel reaches by two controllers: the devices are the subsystem's. A third namespace
// is reached by the other controller only.
var shared = map[string]string{
	"class/nvme/nvme0/model":        "Model",
	"class/nvme/nvme0/dev":          "237:0",
	"class/nvme/nvme0/state":        "live",
	"class/nvme/nvme0/nvme0c0n1/id": "",
	"class/nvme/nvme0/nvme0c0n2/id": "",
	"class/nvme/nvme1/model":        "Model",
	"class/nvme/nvme1/dev":          "237:1",
	"class/nvme/nvme1/state":        "connecting",
	"class/nvme/nvme1/nvme0c1n1/id": "",
	"class/nvme/nvme1/nvme0c1n3/id": "",

	"class/nvme-subsystem/nvme-subsys0/nvme0":                            "-> ../../nvme/nvme0",
	"class/nvme-subsystem/nvme-subsys0/nvme1":                            "-> ../../nvme/nvme1",
	"class/nvme-subsystem/nvme-subsys0/ng0n1/dev":                        "236:0",
	"class/nvme-subsystem/nvme-subsys0/ng0n2/dev":                        "236:1",
	"class/nvme-subsystem/nvme-subsys0/ng0n3/dev":                        "236:2",
	"class/nvme-subsystem/nvme-subsys0/nvme0n1/nsid":                     "1",
	"class/nvme-subsystem/nvme-subsys0/nvme0n1/dev":                      "259:0",
	"class/nvme-subsystem/nvme-subsys0/nvme0n1/size":                     "4096",
	"class/nvme-subsystem/nvme-subsys0/nvme0n1/queue/logical_block_size": "4096",
	"class/nvme-subsystem/nvme-subsys0/nvme0n2/nsid":                     "7",
	"class/nvme-subsystem/nvme-subsys0/nvme0n2/hidden":                   "1",
	"class/nvme-subsystem/nvme-subsys0/nvme0n3/nsid":                     "8",
	"class/nvme-subsystem/nvme-subsys0/nvme0n3/dev":                      "259:2",
}

// old is a kernel without generic devices.
var old = map[string]string{
	"class/nvme/nvme10/model":                            "Old",
	"class/nvme/nvme10/nvme10n1/nsid":                    "1",
	"class/nvme/nvme10/nvme10n1/dev":                     "259:0",
	"class/nvme/nvme10/nvme10n1/queue/max_segments":      "127",
	"class/nvme/nvme10/nvme10n1/queue/max_hw_sectors_kb": "2048",
	"class/nvme/nvme2/model":                             "Other",
}

// sent is a command as the kernel saw it.
type sent struct {
	path  string
	by    string // ioctl or ring
	admin bool
	wire  wire
	data  []byte // as it was when the command arrived
}

// fake is a kernel whose drive is a Conn: commands are put together again from what the kernel sees.
type fake struct {
	drive nvme.Conn         // nil: commands succeed with no effect
	ids   map[string]uint32 // namespace by device node's name
	// before is asked about every command first, by its number from 0; a true answers in the drive's stead.
	before  func(n int, s *sent) (nvme.Status, error, bool)
	noRing  error
	noOpen  map[string]error
	noReset error
	result  uint64 // of every command, without a drive

	mu      sync.Mutex // guards what follows
	sent    []sent
	opened  []string
	held    int // nodes, rings and buffers that were not given back
	resets  int
	checked map[string]string // major:minor by node's name, as asked for
}

func (f *fake) count(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.held += n
}

func (f *fake) openNode(path, dev string) (node, error) {
	name := filepath.Base(path)
	if err := f.noOpen[name]; err != nil {
		return nil, err
	}
	f.count(1)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.opened = append(f.opened, path)
	if f.checked == nil {
		f.checked = map[string]string{}
	}
	f.checked[name] = dev
	return &fakeNode{f: f, name: name, by: "ioctl"}, nil
}

func (f *fake) newRing(int) (carrier, error) {
	if f.noRing != nil {
		return nil, f.noRing
	}
	f.count(1)
	return &fakeNode{f: f, by: "ring"}, nil
}

func (f *fake) mapMemory(n int) ([]byte, func() error, error) {
	f.count(1)
	b := make([]byte, n+pageSize)
	for !isPageAligned(b) {
		b = b[1:]
	}
	return b[:n], func() error { f.count(-1); return nil }, nil
}

type fakeNode struct {
	f    *fake
	name string
	by   string
}

func (n *fakeNode) Close() error { n.f.count(-1); return nil }

func (n *fakeNode) namespaceID() (uint32, error) {
	id, ok := n.f.ids[n.name]
	if !ok {
		return 0, syscall.ENOTTY
	}
	return id, nil
}

func (n *fakeNode) resetController() error {
	n.f.mu.Lock()
	defer n.f.mu.Unlock()
	n.f.resets++
	return n.f.noReset
}

func (n *fakeNode) carryCommand(on node, r request, w *wire, data []byte) (nvme.Status, error) {
	f := n.f
	s := sent{path: on.(*fakeNode).name, by: n.by, admin: r == adminRequest, wire: *w, data: append([]byte(nil), data...)}
	f.mu.Lock()
	number := len(f.sent)
	f.sent = append(f.sent, s)
	f.mu.Unlock()
	if len(data) > 0 && !isPageAligned(data) {
		return 0, errors.New("the data is not aligned")
	}
	if f.before != nil {
		if status, err, ok := f.before(number, &s); ok {
			return status, err
		}
	}
	if f.drive == nil {
		w.setResult(f.result)
		return 0, nil
	}
	cmd := decode(w)
	run := f.drive.IO
	if r == adminRequest {
		run = f.drive.Admin
	}
	cpl, err := run(context.Background(), &cmd, data)
	w.setResult(cpl.Result())
	var status nvme.Status
	if err != nil && !errors.As(err, &status) {
		return 0, syscall.EIO
	}
	return status, nil
}

// decode puts a command together as the kernel's driver does.
func decode(w *wire) nvme.Command {
	ne := binary.NativeEndian
	cmd := nvme.New(w[0], ne.Uint32(w[4:]))
	cmd.SetDW(2, ne.Uint32(w[8:]))
	cmd.SetDW(3, ne.Uint32(w[12:]))
	cmd.SetData(ne.Uint32(w[36:]))
	for i := range 6 {
		cmd.SetDW(10+i, ne.Uint32(w[40+4*i:]))
	}
	return cmd
}

// commands are those sent, without the probe for io_uring.
func (f *fake) commands() []sent {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []sent
	for _, s := range f.sent {
		if s.by != "ring" || !s.admin {
			out = append(out, s)
		}
	}
	return out
}

// ram is flash in memory.
type ram struct {
	mu   sync.Mutex
	data []byte
}

func (r *ram) locked(f func() int) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return f(), nil
}

func (r *ram) ReadAt(p []byte, off int64) (int, error) {
	return r.locked(func() int { return copy(p, r.data[off:]) })
}

func (r *ram) WriteAt(p []byte, off int64) (int, error) {
	return r.locked(func() int { return copy(r.data[off:], p) })
}

func (r *ram) Discard(off, n int64) error {
	_, err := r.locked(func() int { clear(r.data[off : off+n]); return 0 })
	return err
}

func (r *ram) Sync() error    { return nil }
func (r *ram) Size() int64    { return int64(len(r.data)) }
func (r *ram) ReadOnly() bool { return false }

// plain is a drive without computation behind a fake kernel, with the computing drive's devices.
func plain(t testing.TB) *fake {
	t.Helper()
	sub, err := controller.New(controller.Options{Flash: &ram{data: make([]byte, 1<<20)}})
	require.NoError(t, err)
	c, err := controller.Local(sub, controller.HostID{NQN: "nqn.2014-08.org.nvmexpress:uuid:host"})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return &fake{drive: c, ids: map[string]uint32{"ng3n5": 1, "ng3n6": 2, "ng3n7": 3}}
}

// clock is time that passes when somebody sleeps.
type clock struct {
	mu     sync.Mutex
	at     time.Time
	pauses []time.Duration
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) sleep(ctx context.Context, d time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
	c.pauses = append(c.pauses, d)
	return ctx.Err()
}

// connect opens the computing drive over a fake kernel.
func connect(t testing.TB, f *fake, o Options) (*Conn, *clock) {
	t.Helper()
	k := &clock{at: time.Unix(1000, 0)}
	if o.Sysfs == "" {
		o.Sysfs = tree(t, computing)
	}
	o.kernel, o.sleep, o.now = f, k.sleep, k.now
	c, err := Open("/dev/nvme3", o)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, c.Close())
		require.Zero(t, f.held, "nodes, rings or buffers are still open")
	})
	return c, k
}

// pattern is n bytes that name their place.
func pattern(n int, seed byte) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7) ^ byte(i>>8) ^ seed
	}
	return b
}

func (s sent) String() string { return fmt.Sprintf("%s %s %02xh", s.path, s.by, s.wire[0]) }
