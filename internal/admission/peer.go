package admission

import (
	"net"
	"net/netip"
)

// Local is the peer behind a unix socket.
const Local = "unix"

// Peer names the host at the other end of a connection: the text of an IPv4 address or of the /64 network of an IPv6
// address, or [Local].
func Peer(addr net.Addr) string {
	if addr == nil {
		return Local
	}
	if t, ok := addr.(*net.TCPAddr); ok {
		return peerOf(t.AddrPort().Addr())
	}
	return PeerOf(addr.String())
}

// PeerOf is [Peer] for the text of an address, as http.Request.RemoteAddr has it.
func PeerOf(remote string) string {
	at, err := netip.ParseAddrPort(remote)
	if err != nil {
		return Local
	}
	return peerOf(at.Addr())
}

func peerOf(ip netip.Addr) string {
	ip = ip.Unmap().WithZone("")
	if ip.Is4() || ip.IsLoopback() {
		return ip.String()
	}
	network, err := ip.Prefix(64)
	if err != nil { // of no address
		return Local
	}
	return network.String()
}

// onMachine reports whether a peer is on this machine.
func onMachine(peer string) bool {
	if peer == Local {
		return true
	}
	ip, err := netip.ParseAddr(peer)
	return err == nil && ip.IsLoopback()
}
