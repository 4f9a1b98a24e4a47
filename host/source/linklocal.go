package source

import (
	"net/http"
	"net/url"
	"syscall"

	"github.com/millrace/millrace/internal/linklocal"
)

// refuseLinkLocal is a net.Dialer's Control: address is what a name was resolved to.
func refuseLinkLocal(_, address string, _ syscall.RawConn) error {
	if linklocal.ContainsPort(address) {
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
	if linklocal.ContainsHost(req.URL.Hostname()) {
		return nil, linkLocalError(req.URL.Host)
	}
	return http.ProxyFromEnvironment(req)
}
