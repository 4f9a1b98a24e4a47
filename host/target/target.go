package target

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/millrace/millrace/fpga/csd"
	"github.com/millrace/millrace/nvme/controller"
	"github.com/millrace/millrace/nvme/faults"
	"github.com/millrace/millrace/nvme/tcp"
)

// Target is a drive that is served. Close it.
type Target struct {
	drive        *csd.Drive
	transport    *tcp.Target
	listeners    []net.Listener // the drive's, and then that of discovery if there is one
	failed       chan error     // has room for what each listener's Serve returns
	accepting    sync.WaitGroup // goroutines of the listeners
	shutdownTime time.Duration

	mu     sync.Mutex
	added  *addedNamespaces
	closed bool
}

// Start opens the drive, listens, and begins to serve. Where it fails nothing is left behind: ports, open files, or
// files that it made.
func Start(o Options) (t *Target, err error) {
	o = o.withDefaults()
	if err := o.check(); err != nil {
		return nil, err
	}
	list, err := checkNamespaces(o.Namespaces)
	if err != nil {
		return nil, &OptionError{"Namespaces", err}
	}
	var injector *faults.Injector
	if o.Faults != nil {
		if injector, err = faults.New(o.Faults, faults.Options{Logger: o.Logger}); err != nil {
			return nil, &OptionError{"Faults", err}
		}
		o.Drive.WrapFlash = injector.Flash
	}
	// The ports come first: a drive is not made for a target that cannot be reached.
	listeners, err := listen(o)
	if err != nil {
		return nil, err
	}
	t = &Target{listeners: listeners, failed: make(chan error, len(listeners)), shutdownTime: o.ShutdownTime}
	defer func() {
		if err != nil {
			err = errors.Join(err, t.abandon())
			t = nil
		}
	}()
	driveAddress, discoveryAddress, err := discoveryAddresses(listeners, o.Advertise)
	if err != nil {
		return t, err
	}
	if t.transport, err = tcp.NewTarget(tcp.TargetOptions{
		Hosts: o.Hosts, Auth: o.Auth, Logger: o.Logger, MaxConnections: o.MaxConnections,
		Unauthenticated: o.MaxUnauthenticated,
	}); err != nil {
		return t, err
	}
	if t.drive, err = csd.Open(o.Drive); err != nil {
		return t, err
	}
	sub := t.drive.Subsystem()
	t.added = newAddedNamespaces(sub, o.Logger)
	if err := t.added.set(list); err != nil {
		return t, &OptionError{"Namespaces", err}
	}
	discovery := controller.NewDiscovery(controller.DiscoveryOptions{
		Entries: entries(sub.NQN(), driveAddress, discoveryAddress, o.Referrals), Logger: o.Logger,
	})
	if err := errors.Join(t.transport.Add(sub), t.transport.Add(discovery)); err != nil {
		return t, err
	}
	if injector != nil {
		injector.SetBlockSize(int(sub.BlockSize()))
	}
	for _, l := range listeners {
		if injector != nil {
			l = injector.Listener(l)
		}
		t.accepting.Go(func() { t.failed <- t.transport.Serve(l) })
	}
	// Processes that find the flash open learn the address at which it is served. A full disk does not prevent serving.
	if err := t.drive.Own(csd.Owner{Name: o.Name, Drive: sub.NQN(), URLs: []string{t.URI()}}); err != nil {
		o.Logger.Warn("processes that find the drive open will not learn which process serves it",
			"drive", o.Drive.Path, "error", err)
	}
	return t, nil
}

// abandon undoes what Start has done before it failed. Nothing is served yet.
func (t *Target) abandon() (err error) {
	if t.transport != nil {
		err = t.transport.Close()
	}
	err = errors.Join(err, closeAll(t.listeners))
	if t.added != nil {
		err = errors.Join(err, abandonAll(t.added.flash))
	}
	if t.drive != nil {
		err = errors.Join(err, abandon(t.drive))
	}
	return err
}

// Wait returns nil when ctx ends, and an error when a listener fails. It does not close the target.
func (t *Target) Wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case err := <-t.failed:
		return err
	}
}

// Close stops serving: commands that run complete, for at most Options.ShutdownTime, the associations end, and the
// drive and the flash of further namespaces are closed. Further calls do nothing.
func (t *Target) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil
	}
	t.closed = true
	ctx, cancel := context.WithTimeout(context.Background(), t.shutdownTime)
	defer cancel()
	err := errors.Join(t.transport.Shutdown(ctx), closeAll(t.listeners))
	t.accepting.Wait()
	return errors.Join(err, t.added.close(), t.drive.Close())
}

// SetNamespaces makes the namespaces that the drive has beside its own those of the list, while hosts are connected:
// flash that stays keeps its data, and may have another identifier. Hosts see the namespaces of before, or those of the
// list. An error means that nothing has changed.
func (t *Target) SetNamespaces(list []Namespace) error {
	list, err := checkNamespaces(list)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return fmt.Errorf("set namespaces: %w", tcp.ErrTargetClosed)
	}
	return t.added.set(list)
}

// Namespaces returns the identifiers of the namespaces that the drive has beside its own, in order.
func (t *Target) Namespaces() []uint32 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.added.identifiers()
}

// Drive returns the drive that is served. Close closes it.
func (t *Target) Drive() *csd.Drive { return t.drive }

// Address returns the address at which the drive is served.
func (t *Target) Address() string { return t.listeners[0].Addr().String() }

// DiscoveryAddresses returns the addresses at which discovery is answered. The first is that of the drive.
func (t *Target) DiscoveryAddresses() []string {
	addresses := make([]string, len(t.listeners))
	for i, l := range t.listeners {
		addresses[i] = l.Addr().String()
	}
	return addresses
}

// URI returns the URI by which this program opens the drive: tcp://HOST:PORT/NQN.
func (t *Target) URI() string { return "tcp://" + t.Address() + "/" + t.drive.Subsystem().NQN() }
