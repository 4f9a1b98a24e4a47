// Package linklocal knows the addresses that no process calls because a peer named them: those of the machine's own
// link, and those at which clouds tell a machine its credentials. Contains decides about an address. Its callers ask it
// about hosts that are addresses, and, in a dialer's Control, about what names were resolved to.
//
// # Concurrency
//
// Contains may be called from any goroutine.
package linklocal

import "net/netip"

// metadataAddresses are the addresses outside the link-local networks at which clouds tell a machine its credentials.
var metadataAddresses = []netip.Addr{
	netip.MustParseAddr("fd00:ec2::254"),   // Amazon EC2, by IPv6
	netip.MustParseAddr("fd20:ce::254"),    // Google Compute Engine, by IPv6
	netip.MustParseAddr("100.100.100.200"), // Alibaba Cloud
	netip.MustParseAddr("168.63.129.16"),   // Azure
	netip.MustParseAddr("192.0.0.192"),     // Oracle Cloud
}

// embeddings are the networks of IPv6 whose last 32 bits are an IPv4 address: IPv4-compatible addresses (RFC 4291) and
// those of NAT64 (RFC 6052).
var embeddings = []netip.Prefix{netip.MustParsePrefix("::/96"), netip.MustParsePrefix("64:ff9b::/96")}

// Contains reports whether an address is of this machine's link alone (169.254.0.0/16, fe80::/10), in IPv6's forms of
// IPv4 addresses too, or tells a machine of a cloud its credentials.
func Contains(at netip.Addr) bool {
	at = at.Unmap().WithZone("")
	for _, network := range embeddings {
		if network.Contains(at) {
			all := at.As16()
			at = netip.AddrFrom4([4]byte(all[12:]))
		}
	}
	for _, metadata := range metadataAddresses {
		if at == metadata {
			return true
		}
	}
	return at.IsLinkLocalUnicast()
}

// ContainsHost reports whether the host of a URL, without a port, is such an address. A name is not looked up.
func ContainsHost(host string) bool {
	at, err := netip.ParseAddr(host)
	return err == nil && Contains(at)
}

// ContainsPort reports whether an address with a port, as a dialer's Control has it, is such an address, or none that
// can be read.
func ContainsPort(address string) bool {
	at, err := netip.ParseAddrPort(address)
	return err != nil || Contains(at.Addr())
}
