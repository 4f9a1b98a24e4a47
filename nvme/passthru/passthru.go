package passthru

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/millrace/millrace/nvme"
)

// The errors on which callers decide.
var (
	// ErrNotFound says that the kernel has no such controller.
	ErrNotFound = errors.New("the kernel has no such NVMe controller")
	// ErrNoNamespace says that the controller has no device for a namespace.
	ErrNoNamespace = errors.New("the kernel has no device for this namespace")
	// ErrReset says that the controller was reset while a command ran which must not be repeated. Whether the drive did it
	// is not known, and local memory that the association held is gone.
	ErrReset = errors.New("the controller was reset while the command ran")
	// ErrUnsupported says that this system has no NVMe passthrough.
	ErrUnsupported = errors.New("drives behind the kernel are reached on Linux only")
)

// Options say how a device is opened. The zero value works.
type Options struct {
	Sysfs string // where sysfs is mounted; empty means /sys
	Dev   string // where device nodes are; empty means /dev
	Depth int    // I/O commands outstanding at a time; 0 means DefaultDepth

	// Timeout and AdminTimeout are the kernel's timers for a command. When one runs out the kernel resets the whole
	// controller. 0 leaves what the driver has (30 and 60 seconds unless its parameters say otherwise).
	Timeout, AdminTimeout time.Duration
	// Reconnect bounds how long commands are tried again while the controller is away. 0 means DefaultReconnect, and a
	// negative value that they are not tried again.
	Reconnect time.Duration
	// NoRing sends everything by ioctl.
	NoRing bool

	kernel kernel // nil: this machine's
	sleep  func(context.Context, time.Duration) error
	now    func() time.Time
}

// Defaults of Options.
const (
	DefaultDepth = 64
	// DefaultReconnect is longer than the ten seconds that Linux waits before it connects again over fabrics.
	DefaultReconnect = time.Minute
	// MaxDepth bounds Depth.
	MaxDepth = 1024

	adminDepth = 8
)

// defaultMost is the most data of a command where the kernel does not report a limit: 127 scattered pages, the least of
// any transport.
const defaultMost = 127 * pageSize

func (o *Options) sysfsTree() sysfs {
	if o.Sysfs == "" {
		return "/sys"
	}
	return sysfs(o.Sysfs)
}

func (o *Options) setDefaults() error {
	if o.Dev == "" {
		o.Dev = "/dev"
	}
	if o.Depth == 0 {
		o.Depth = DefaultDepth
	}
	if o.Depth < 1 || o.Depth > MaxDepth {
		return fmt.Errorf("depth %d: want 1 to %d", o.Depth, MaxDepth)
	}
	if o.Reconnect == 0 {
		o.Reconnect = DefaultReconnect
	}
	if o.kernel == nil {
		o.kernel = system{}
	}
	if o.sleep == nil {
		o.sleep = sleepContext
	}
	if o.now == nil {
		o.now = time.Now
	}
	return nil
}

// kernel is the part of the operating system that this package uses.
type kernel interface {
	// openNode opens a device node, which must be the device that sysfs calls major:minor; an empty dev is not checked.
	openNode(path, dev string) (node, error)
	// newRing makes an io_uring for depth commands at a time.
	newRing(depth int) (carrier, error)
	// mapMemory makes a buffer that begins at a multiple of pageSize. free frees it.
	mapMemory(n int) (b []byte, free func() error, err error)
}

// node is an open device node.
type node interface {
	// A node carries commands by ioctl.
	carrier
	// namespaceID returns the identifier of the namespace that the node is for.
	namespaceID() (uint32, error)
	// resetController resets the controller that the node is for, and returns when it works again.
	resetController() error
}

// carrier takes a command to the drive and returns when it has completed. It writes the result into w and returns what
// the kernel did: an errno, or the command's status.
type carrier interface {
	carryCommand(n node, r request, w *wire, data []byte) (nvme.Status, error)
	Close() error
}

// Conn is an association with a drive behind the kernel. It implements nvme.Conn, nvme.Limiter and nvme.Lasting.
type Conn struct {
	o          Options
	controller Controller
	most       int
	device     node
	ring       carrier // nil: ioctl
	how        string  // Carrier's answer
	buffers    buffers

	adminPermits, ioPermits chan struct{}

	mu      sync.Mutex // guards what follows
	nodes   map[uint32]*space
	retired []node // Namespaces that went away leave their nodes here.
	closed  bool
	busy    sync.WaitGroup // commands that run; Add under mu while closed is false
}

// space is a namespace's open device.
type space struct {
	node   node
	name   string
	blocks bool // the NVM command set's
	ring   bool // the device takes commands by io_uring: a generic device
}

// Open opens the controller whose device is path, as /dev/nvme0; a link to it will do. Errors wrap ErrNotFound,
// fs.ErrPermission, ErrUnsupported, or the kernel's own error.
func Open(path string, o Options) (*Conn, error) {
	c, err := openController(path, o)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	return c, nil
}

func openController(path string, o Options) (*Conn, error) {
	if err := o.setDefaults(); err != nil {
		return nil, err
	}
	name, err := controllerOf(path)
	if err != nil {
		return nil, err
	}
	c := &Conn{
		o: o, nodes: map[uint32]*space{}, most: defaultMost,
		adminPermits: make(chan struct{}, adminDepth), ioPermits: make(chan struct{}, o.Depth),
	}
	if c.controller, err = o.sysfsTree().readController(name); err != nil {
		return nil, err
	}
	if c.device, err = o.kernel.openNode(filepath.Join(o.Dev, name), c.controller.dev); err != nil {
		return nil, explainErrno(err)
	}
	c.most = c.leastTransfer()
	c.buffers = buffers{size: c.most, most: o.Depth + adminDepth, make: o.kernel.mapMemory}
	c.chooseCarrier()
	return c, nil
}

// controllerOf returns the controller's name of a path to its device.
func controllerOf(path string) (string, error) {
	name := filepath.Base(path)
	if !controllerName.MatchString(name) {
		// A link in /dev/disk or of the operator's own.
		if target, err := filepath.EvalSymlinks(path); err == nil {
			name = filepath.Base(target)
		}
	}
	switch {
	case controllerName.MatchString(name):
		return name, nil
	case genericName.MatchString(name), diskName.MatchString(name):
		return "", fmt.Errorf("%s is a namespace: name its controller, as /dev/nvme0", name)
	}
	return "", fmt.Errorf("%q is not a name of a controller's device: want one as /dev/nvme0", name)
}

// leastTransfer is the most bytes of one command: the least that any namespace's device takes.
func (c *Conn) leastTransfer() int {
	most := 0
	for _, ns := range c.controller.Namespaces {
		if ns.Most > 0 && (most == 0 || ns.Most < most) {
			most = ns.Most
		}
	}
	if most < pageSize {
		most = defaultMost
	}
	return min(most, 1<<20) / pageSize * pageSize
}

// chooseCarrier finds out whether the kernel carries commands by io_uring, by sending an Identify that way.
func (c *Conn) chooseCarrier() {
	c.how = "ioctl"
	if c.o.NoRing {
		return
	}
	ring, err := c.o.kernel.newRing(c.o.Depth)
	if err == nil {
		if err = c.probeRing(ring); err == nil {
			c.ring, c.how = ring, "io_uring"
			return
		}
		err = errors.Join(err, ring.Close())
	}
	c.how = fmt.Sprintf("ioctl (io_uring: %v)", err)
}

// probeRing sends an Identify Controller by io_uring.
func (c *Conn) probeRing(ring carrier) error {
	b, err := c.buffers.takeBuffer(nvme.IdentifySize)
	if err != nil {
		return err
	}
	defer c.buffers.returnBuffer(b)
	cmd := nvme.Identify(nvme.CNSController, 0, 0)
	w := encodeCommand(&cmd, nvme.IdentifySize, c.o.AdminTimeout)
	status, err := ring.carryCommand(c.device, adminRequest, &w, b.bytes[:nvme.IdentifySize])
	if err == nil {
		err = status.Err()
	}
	return err
}

// Controller returns what sysfs reported when the device was opened.
func (c *Conn) Controller() Controller { return c.controller }

// Carrier returns how I/O commands are sent: "io_uring", or "ioctl" and why.
func (c *Conn) Carrier() string { return c.how }

// MaxTransfer returns the most bytes that the kernel carries in one command; the drive's own limit may be lower. It
// implements nvme.Limiter.
func (c *Conn) MaxTransfer() int { return c.most }

// Lasts implements nvme.Lasting: the association is the kernel's.
func (c *Conn) Lasts() bool { return true }

// Admin implements nvme.Conn.
func (c *Conn) Admin(ctx context.Context, cmd *nvme.Command, data []byte) (nvme.Completion, error) {
	return c.submitCommand(ctx, adminRequest, c.adminPermits, cmd, data)
}

// IO implements nvme.Conn.
func (c *Conn) IO(ctx context.Context, cmd *nvme.Command, data []byte) (nvme.Completion, error) {
	return c.submitCommand(ctx, ioRequest, c.ioPermits, cmd, data)
}

// submitCommand waits for room and runs the command.
func (c *Conn) submitCommand(ctx context.Context, r request, permits chan struct{}, cmd *nvme.Command,
	data []byte) (nvme.Completion, error) {
	cpl, err := c.runWithPermit(ctx, r, permits, cmd, data)
	if err != nil {
		what := "I/O"
		if r == adminRequest {
			what = "admin"
		}
		return cpl, fmt.Errorf("%s: %s command %02xh on namespace %d: %w", c.controller.Name, what, cmd.Opcode(), cmd.NSID(),
			err)
	}
	return cpl, nil
}

func (c *Conn) runWithPermit(ctx context.Context, r request, permits chan struct{}, cmd *nvme.Command,
	data []byte) (none nvme.Completion, err error) {
	if err := ctx.Err(); err != nil {
		return none, err
	}
	if cmd.Direction() == nvme.Bidirectional {
		return none, errors.New("bidirectional commands make Linux reset the controller: not sent")
	}
	if len(data) != int(cmd.DataLength()) {
		return none, fmt.Errorf("%d bytes of data where the command names %d: %w", len(data), cmd.DataLength(),
			nvme.InvalidSGLLength)
	}
	select {
	case permits <- struct{}{}:
	case <-ctx.Done():
		return none, fmt.Errorf("wait for room: %w", ctx.Err())
	}
	defer func() { <-permits }()
	if !c.countCommand() {
		return none, nvme.ErrClosed
	}
	defer c.busy.Done()
	return c.runUntilDone(ctx, r, cmd, data)
}

// countCommand counts a command in, unless the Conn is closed.
func (c *Conn) countCommand() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.busy.Add(1)
	return true
}

// runUntilDone sends the command until it is done or there is no more patience.
func (c *Conn) runUntilDone(ctx context.Context, r request, cmd *nvme.Command, data []byte) (
	none nvme.Completion, err error) {
	through, timeout := &space{node: c.device}, c.o.AdminTimeout
	if r == ioRequest {
		if through, err = c.namespaceDevice(cmd.NSID()); err != nil {
			return none, err
		}
		timeout = c.o.Timeout
	}
	var by carrier = through.node
	if c.ring != nil && through.ring {
		by = c.ring
	}
	payload := data
	if len(data) > 0 && !isPageAligned(data) {
		b, err := c.buffers.takeBuffer(len(data))
		if err != nil {
			return none, err
		}
		defer c.buffers.returnBuffer(b)
		payload = b.bytes[:len(data)]
	}
	p := patience{most: c.o.Reconnect, sleep: c.o.sleep, now: c.o.now}
	for {
		if len(data) > 0 && &payload[0] != &data[0] {
			// In both directions: what a drive leaves of a caller's buffer stays as it was.
			copy(payload, data)
		}
		w := encodeCommand(cmd, len(data), timeout)
		status, err := by.carryCommand(through.node, r, &w, payload)
		switch verdict := judgeOutcome(status, err); {
		case verdict == cut && !isRepeatable(r, cmd, through.blocks):
			return none, fmt.Errorf("%w: %w", ErrReset, undoneError(status, err))
		case verdict != finished:
			if waited := p.awaitNextTry(ctx); waited != nil {
				return none, fmt.Errorf("%w: %w", undoneError(status, err), waited)
			}
			continue
		case err != nil:
			if r == ioRequest && isDeviceGone(err) {
				c.forgetDevice(cmd.NSID(), through)
			}
			return none, explainErrno(err)
		}
		cpl := nvme.NewCompletion(0, status)
		cpl.SetResult(w.readResult())
		if !status.OK() {
			return cpl, status
		}
		if len(data) > 0 && cmd.Direction() == nvme.ControllerToHost && &payload[0] != &data[0] {
			copy(data, payload)
		}
		return cpl, nil
	}
}

// undoneError is the error of a command that came back without being done.
func undoneError(status nvme.Status, err error) error {
	if err != nil {
		return err
	}
	return status
}

// isDeviceGone reports whether an errno says that the device is no more.
func isDeviceGone(err error) bool {
	return errors.Is(err, syscall.ENODEV) || errors.Is(err, syscall.ENXIO)
}

// explainErrno adds what to do to an errno that has an answer.
func explainErrno(err error) error {
	switch {
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w: NVMe passthrough wants root or CAP_SYS_ADMIN, and the right to the device node", err)
	case errors.Is(err, syscall.EINVAL):
		return fmt.Errorf("%w: the kernel refused the command before the drive saw it; its log (dmesg) says why", err)
	case errors.Is(err, syscall.ENOTTY):
		return fmt.Errorf("%w: the device takes no NVMe commands; the kernel is too old (5.4 has the 64-bit ioctls) or it "+
			"is another's", err)
	}
	return err
}

// namespaceDevice returns the open device of a namespace, also of a namespace that appeared since Open.
func (c *Conn) namespaceDevice(nsid uint32) (*space, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.nodes[nsid]; s != nil {
		return s, nil
	}
	now, err := c.o.sysfsTree().readController(c.controller.Name)
	if err != nil {
		return nil, err
	}
	for _, ns := range now.Namespaces {
		if ns.ID != nsid && ns.ID != 0 {
			continue
		}
		s, err := c.openNamespace(ns, nsid)
		if err != nil {
			return nil, err
		}
		if s != nil {
			c.nodes[nsid] = s
			return s, nil
		}
	}
	return nil, ErrNoNamespace
}

// openNamespace opens a namespace's device and asks it which namespace it is for; nil where that is another and sysfs
// had not said.
func (c *Conn) openNamespace(ns Namespace, nsid uint32) (*space, error) {
	s := &space{name: ns.Generic, blocks: ns.Block != "", ring: true}
	if s.name == "" {
		s.name, s.ring = ns.Block, false
	}
	n, err := c.o.kernel.openNode(filepath.Join(c.o.Dev, s.name), ns.dev)
	if err != nil {
		return nil, explainErrno(err)
	}
	id, err := n.namespaceID()
	if err == nil && id == nsid {
		s.node = n
		return s, nil
	}
	if err == nil && ns.ID != 0 {
		err = fmt.Errorf("it is namespace %d, though sysfs says %d", id, ns.ID)
	}
	if err = errors.Join(err, n.Close()); err != nil {
		return nil, fmt.Errorf("%s: %w", s.name, err)
	}
	return nil, nil
}

// forgetDevice drops a device that is gone, so that the next command looks for it again.
func (c *Conn) forgetDevice(nsid uint32, s *space) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.nodes[nsid] == s {
		delete(c.nodes, nsid)
		// Other commands may be on their way through it, so its descriptor stays open until Close.
		c.retired = append(c.retired, s.node)
	}
}

// Close waits for the commands that run and closes the devices. The kernel's association stays. Closing twice is no
// error.
func (c *Conn) Close() error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil
	}
	c.closed = true
	c.mu.Unlock()
	c.busy.Wait()
	var errs []error
	if c.ring != nil {
		errs = append(errs, c.ring.Close())
	}
	for _, s := range c.nodes {
		errs = append(errs, s.node.Close())
	}
	for _, n := range c.retired {
		errs = append(errs, n.Close())
	}
	errs = append(errs, c.device.Close(), c.buffers.freeAll())
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close %s: %w", c.controller.Name, err)
	}
	return nil
}

// Reset resets the controller whose device is path: the association ends and a new one begins, commands that run are
// cut off, and local memory that was held is free. It returns when the controller works again.
func Reset(path string, o Options) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("reset %s: %w", path, err)
		}
	}()
	if err := o.setDefaults(); err != nil {
		return err
	}
	name, err := controllerOf(path)
	if err != nil {
		return err
	}
	c, err := o.sysfsTree().readController(name)
	if err != nil {
		return err
	}
	n, err := o.kernel.openNode(filepath.Join(o.Dev, name), c.dev)
	if err != nil {
		return explainErrno(err)
	}
	defer func() { err = errors.Join(err, n.Close()) }()
	return explainErrno(n.resetController())
}
