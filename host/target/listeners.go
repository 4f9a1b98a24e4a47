package target

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/millrace/millrace/nvme/fabrics"
)

// listen opens the listener of the drive and then, if the options name one, the listener of discovery. If listen fails,
// no listener is open.
func listen(o Options) (listeners []net.Listener, err error) {
	for _, at := range []struct{ option, address string }{
		{"Listen", o.Listen}, {"DiscoveryListen", o.DiscoveryListen},
	} {
		if at.address == "" {
			continue
		}
		l, err := net.Listen("tcp", at.address)
		if err != nil {
			return nil, errors.Join(&ListenError{at.option, at.address, err}, closeAll(listeners))
		}
		listeners = append(listeners, l)
	}
	return listeners, nil
}

// closeAll closes listeners. A listener that the transport has closed already is not an error.
func closeAll(listeners []net.Listener) (err error) {
	for _, l := range listeners {
		if e := l.Close(); !errors.Is(e, net.ErrClosed) {
			err = errors.Join(err, e)
		}
	}
	return err
}

// discoveryAddresses returns the addresses that discovery names: of the drive, which is at the first listener, and of
// discovery itself, which is at the last.
func discoveryAddresses(listeners []net.Listener, advertise netip.AddrPort) (drive, discovery netip.AddrPort,
	err error) {
	if drive, err = reachedBy(listeners[0], advertise, advertise.Port()); err != nil {
		return drive, discovery, err
	}
	if len(listeners) == 1 {
		return drive, drive, nil
	}
	discovery, err = reachedBy(listeners[len(listeners)-1], advertise, 0)
	return drive, discovery, err
}

// reachedBy returns the address by which hosts reach a listener: the advertised one, or the listener's own. Port 0
// means the listener's.
func reachedBy(l net.Listener, advertise netip.AddrPort, port uint16) (netip.AddrPort, error) {
	at := l.Addr().(*net.TCPAddr).AddrPort()
	ip := at.Addr().Unmap()
	if advertise.IsValid() {
		ip = advertise.Addr()
	}
	if ip.IsUnspecified() {
		return at, &OptionError{"Advertise", fmt.Errorf("%w: %s", ErrEveryAddress, at)}
	}
	if port == 0 {
		port = at.Port()
	}
	return netip.AddrPortFrom(ip, port), nil
}

// entries are the records of the discovery log.
func entries(nqn string, drive, discovery netip.AddrPort, referrals []netip.AddrPort) []fabrics.Entry {
	list := []fabrics.Entry{
		{Type: fabrics.CurrentDiscovery, Port: 1, Address: discovery, NQN: fabrics.DiscoveryNQN},
		{Type: fabrics.NVM, Port: 1, Address: drive, NQN: nqn},
	}
	for _, at := range referrals {
		list = append(list, fabrics.Entry{Type: fabrics.Referral, Address: at, NQN: fabrics.DiscoveryNQN})
	}
	return list
}
