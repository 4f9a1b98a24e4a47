package source

import (
	"net/http"
	"net/netip"
	"net/url"
	"syscall"
)

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

// isLinkLocal reports whether an address is of this machine's link alone (169.254.0.0/16, fe80::/10), in IPv6's forms
// of IPv4 addresses too, or tells a machine of a cloud its credentials.
func isLinkLocal(at netip.Addr) bool {
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

// refuseLinkLocal is a net.Dialer's Control: address is what a name was resolved to.
func refuseLinkLocal(_, address string, _ syscall.RawConn) error {
	if at, err := netip.ParseAddrPort(address); err != nil || isLinkLocal(at.Addr()) {
		return linkLocalError(address)
	}
	return nil
}

func linkLocalError(address string) error {
	return &UnsupportedError{
		Name: address, Lacks: "it is a link-local address, or one at which a cloud keeps a machine's credentials",
		Advice: "serve the files at another address",
	}
}

// proxyOf is a transport's Proxy: the environment's. Behind a proxy nothing is dialed but the proxy, so that a host
// that is an address is looked at here. The names of other hosts are resolved by the proxy.
func proxyOf(req *http.Request) (*url.URL, error) {
	if at, err := netip.ParseAddr(req.URL.Hostname()); err == nil && isLinkLocal(at) {
		return nil, linkLocalError(req.URL.Host)
	}
	return http.ProxyFromEnvironment(req)
}
