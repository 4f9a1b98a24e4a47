package tcp

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/controller"
	"github.com/millrace/millrace/nvme/fabrics"
)

// openAssociation makes the association: the admin queue, the controller enabled, its limits read, and the I/O queues.
func (l *link) openAssociation(ctx context.Context) error {
	o := &l.h.opt
	admin, err := l.openQueue(ctx, 0, controller.AdminDepth, inCapsule)
	if err != nil {
		return err
	}
	// The ticks that bound commands in time begin here; until the link is open ctx bounds them too.
	l.runTask(l.housekeep)
	if err := l.enableController(ctx, admin); err != nil {
		return err
	}
	id, err := l.identifyController(ctx, admin)
	if err != nil {
		return err
	}
	l.serial = id.Serial
	l.traffic.Store(id.Attributes>>6&1 != 0)
	if id.ControllerType != 2 { // a discovery controller has no I/O queues
		if err := l.openIOQueues(ctx, admin, id); err != nil {
			return err
		}
	}
	if o.OnEvent != nil {
		if err := l.listenForEvents(ctx, admin, id); err != nil {
			return err
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cause != nil {
		return errLinkLost
	}
	l.opened = true
	go l.awaitEnd()
	return nil
}

// addQueue adds a queue to the queues that endWithCause closes.
func (l *link) addQueue(q *queue) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cause != nil {
		_ = q.nc.Close()
		return errLinkLost
	}
	if q.id == 0 {
		l.admin = q
	} else {
		l.io = append(l.io, q)
	}
	return nil
}

// enableController does what Linux does with a controller that it has connected to.
func (l *link) enableController(ctx context.Context, admin *queue) error {
	capabilities, err := l.readProperty(ctx, admin, controller.PropertyCAP, 8)
	if err != nil {
		return fmt.Errorf("read CAP: %w", err)
	}
	const cssNVM, cssMany = 1 << 37, 1 << 43
	cc := uint64(controller.DefaultCC)
	switch {
	case capabilities&cssMany != 0:
	case capabilities&cssNVM != 0:
		cc &^= 7 << 4
	default:
		return fmt.Errorf("the controller offers no I/O command set: CAP %#x", capabilities)
	}
	admin.most = int(capabilities&0xffff) + 1
	set := fabrics.PropertySet(controller.PropertyCC, 4, cc)
	if _, err := admin.executeCommand(ctx, admin.free, &set, nil, 0); err != nil {
		return fmt.Errorf("enable the controller: %w", err)
	}
	for wait := time.Millisecond; ; wait = min(2*wait, 100*time.Millisecond) {
		csts, err := l.readProperty(ctx, admin, controller.PropertyCSTS, 4)
		switch {
		case err != nil:
			return fmt.Errorf("read CSTS: %w", err)
		case csts&2 != 0:
			return fmt.Errorf("the controller reports a fatal status: CSTS %#x", csts)
		case csts&1 != 0:
			return nil
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return fmt.Errorf("wait for the controller to be ready: %w", ctx.Err())
		}
	}
}

func (l *link) readProperty(ctx context.Context, admin *queue, offset uint32, size int) (uint64, error) {
	cmd := fabrics.PropertyGet(offset, size)
	cpl, err := admin.executeCommand(ctx, admin.free, &cmd, nil, 0)
	return cpl.Result(), err
}

func (l *link) identifyController(ctx context.Context, admin *queue) (*nvme.IdentifyController, error) {
	cmd := nvme.Identify(nvme.CNSController, 0, 0)
	b := make([]byte, nvme.IdentifySize)
	if _, err := admin.executeCommand(ctx, admin.free, &cmd, b, 0); err != nil {
		return nil, fmt.Errorf("identify controller: %w", err)
	}
	var id nvme.IdentifyController
	if err := id.Unmarshal(b); err != nil {
		return nil, err
	}
	if id.ControllerID != l.cntlid {
		return nil, fmt.Errorf("identify controller: it says it is controller %d, and connect said %d", id.ControllerID,
			l.cntlid)
	}
	if id.SGLs&3 == 0 || id.CapsuleOffset != 0 {
		return nil, fmt.Errorf("the controller cannot be used over TCP: SGLS %#x, ICDOFF %d", id.SGLs, id.CapsuleOffset)
	}
	return &id, nil
}

func (l *link) openIOQueues(ctx context.Context, admin *queue, id *nvme.IdentifyController) error {
	o := &l.h.opt
	if id.CommandCapsule*16 < nvme.CommandSize || id.CommandCapsule > 1<<16 {
		return fmt.Errorf("the controller's command capsules of %d bytes cannot be right", uint64(id.CommandCapsule)*16)
	}
	want := uint32(o.Queues - 1)
	set := nvme.SetFeature(nvme.FeatureQueues, want<<16|want)
	cpl, err := admin.executeCommand(ctx, admin.free, &set, nil, 0)
	if err != nil {
		return fmt.Errorf("ask for %d I/O queues: %w", o.Queues, err)
	}
	n := min(int(cpl.DW0()&0xffff), int(cpl.DW0()>>16), o.Queues-1) + 1
	depth := min(o.Depth, admin.most)
	if id.MaxCommands > 0 {
		depth = min(depth, int(id.MaxCommands))
	}
	for i := range n {
		if _, err := l.openQueue(ctx, uint16(i+1), max(depth, 2), id.CommandCapsule*16-nvme.CommandSize); err != nil {
			return err
		}
	}
	return nil
}

// openQueue makes a connection a queue that may be used.
func (l *link) openQueue(ctx context.Context, id uint16, depth int, capsule uint32) (*queue, error) {
	q, dw0, err := l.connectQueue(ctx, id, depth, capsule)
	if err != nil {
		return nil, err
	}
	if err := q.authenticate(ctx, dw0); err != nil {
		return nil, fmt.Errorf("queue %d: %w", id, err)
	}
	return q, nil
}

// connectQueue makes a connection a queue, which may have to authenticate: dw0 is Connect's.
func (l *link) connectQueue(ctx context.Context, id uint16, depth int, capsule uint32) (q *queue, dw0 uint32,
	err error) {
	o := &l.h.opt
	nc, err := o.DialContext(ctx, "tcp", o.Address)
	if err != nil {
		return nil, 0, err
	}
	q, err = l.newQueue(ctx, nc, id, depth, capsule)
	if err != nil {
		_ = nc.Close()
		return nil, 0, fmt.Errorf("begin connection of queue %d: %w", id, err)
	}
	if err := l.addQueue(q); err != nil {
		q.out.Stop(err)
		return nil, 0, err
	}
	if !l.runTask(q.receiveUntilEnd) {
		q.endCommands()
		return nil, 0, errLinkLost
	}
	req := fabrics.Connect{Queue: id, Size: uint16(depth - 1)}
	if o.NoFlowControl {
		req.Attributes |= fabrics.DisableFlowControl
	}
	data := fabrics.ConnectData{HostID: o.HostID, ControllerID: l.cntlid, SubsystemNQN: o.Subsystem, HostNQN: o.HostNQN}
	if id == 0 {
		data.ControllerID = fabrics.AnyController
		if o.KeepAlive > 0 {
			req.KeepAlive = uint32(min(max(o.KeepAlive.Milliseconds(), 1), 1<<31))
		}
	}
	cmd := req.Command()
	cpl, err := q.executeCommand(ctx, q.free, &cmd, data.Marshal(), 0)
	if err != nil {
		var st nvme.Status
		if errors.As(err, &st) {
			if id == 0 && st.DNR() { // an I/O queue is refused too when the drive went away again meanwhile
				err = fmt.Errorf("%w: %w", ErrRefused, err)
			}
			return nil, 0, fmt.Errorf("queue %d: %s: %w", id, fabrics.Describe(st, cpl.DW0()), err)
		}
		return nil, 0, fmt.Errorf("queue %d: %w", id, err)
	}
	if id == 0 {
		l.cntlid = uint16(cpl.DW0())
	}
	return q, cpl.DW0(), nil
}

// listenForEvents asks for events and passes them on.
func (l *link) listenForEvents(ctx context.Context, admin *queue, id *nvme.IdentifyController) error {
	const health = nvme.WarningSpare | nvme.WarningTemperature | nvme.WarningReliability
	config := id.AsyncEvents
	if id.ControllerType != 2 {
		config |= health
	}
	set := nvme.SetFeature(nvme.FeatureAsyncEvents, config)
	if _, err := admin.executeCommand(ctx, admin.free, &set, nil, 0); err != nil {
		return fmt.Errorf("ask for events: %w", err)
	}
	l.runTask(func() {
		for !l.h.isClosed() {
			cmd := nvme.AsyncEventRequest()
			cpl, err := admin.executeCommand(context.Background(), admin.free, &cmd, nil, -1)
			if err != nil {
				return
			}
			l.h.opt.OnEvent(nvme.ParseAsyncEvent(cpl.DW0()))
		}
	})
	return nil
}
