package store

import (
	"fmt"
	"log/slog"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	"go.etcd.io/etcd/server/v3/embed"
)

// Options choose the etcd. The zero value with Data is one embedded member.
type Options struct {
	Data string // folder of an embedded member
	Name string // Name is that of this member among Peers; empty means "millrace".
	// Peers are all embedded members, including this one, as NAME=URL; the other members reach a member at its URL. No
	// peers means one member alone.
	Peers []string
	// Join says that Peers are the members of a running cluster to which this member was added. It has no effect on a
	// member that has been started before.
	Join bool
	// External are the endpoints of an etcd that runs elsewhere; then nothing is embedded.
	External []string
	// Cert, Key and CA are PEM files for TLS between members, and to an external etcd. Members accept each other only
	// with the role control. Empty: in clear.
	Cert, Key, CA string
	// ClientURL lets etcdctl in: http://127.0.0.1:2379, unix:///PATH, https://HOST:PORT for certificates with the role
	// control. Empty: no client from outside.
	ClientURL string
	Prefix    string        // Prefix begins every key; empty means DefaultPrefix.
	Quota     int64         // bytes that an embedded member holds at most; 0 means DefaultQuota
	Compact   time.Duration // how much history an embedded member keeps; 0 means DefaultCompact
	TTL       time.Duration // without a sign of life, until another member may lead; whole seconds; 0 means DefaultTTL
	// Tick and Election are raft's heartbeat and election timeout; 0 means etcd's own, 100 ms and 1 s.
	Tick, Election time.Duration
	Logger         *slog.Logger // nil: silent
}

// Defaults of Options.
const (
	DefaultPrefix  = "/millrace/v1"
	DefaultQuota   = 2 << 30
	DefaultCompact = 5 * time.Minute
	DefaultTTL     = 5 * time.Second
)

// Format is the version of the layout, the value of the key "format".
const Format = "1"

// maxTxnPuts is how many writes one transaction takes, below etcd's own default bound of 128 operations.
const maxTxnPuts = 100

// named fills in a member's name and its log.
func (o Options) named() Options {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Name == "" {
		o.Name = "millrace"
	}
	return o
}

func (o Options) withDefaults() (Options, error) {
	o = o.named()
	if o.Prefix == "" {
		o.Prefix = DefaultPrefix
	}
	o.Prefix = strings.TrimSuffix(o.Prefix, "/")
	if o.Quota == 0 {
		o.Quota = DefaultQuota
	}
	if o.Compact == 0 {
		o.Compact = DefaultCompact
	}
	if o.TTL == 0 {
		o.TTL = DefaultTTL
	}
	switch {
	case len(o.External) > 0 && len(o.Peers) > 0:
		return o, fmt.Errorf("etcd: give members to embed or endpoints of one that runs elsewhere, not both")
	case len(o.External) == 0 && o.Data == "":
		return o, fmt.Errorf("etcd: an embedded member wants a data folder")
	case o.TTL < time.Second || o.TTL%time.Second != 0:
		return o, fmt.Errorf("etcd: leader TTL %v, want whole seconds", o.TTL)
	case o.Quota < 1<<20 || o.Compact < 0:
		return o, fmt.Errorf("etcd: quota of %d bytes, history of %v: want a MiB or more, and not below 0", o.Quota,
			o.Compact)
	case (o.Cert == "") != (o.Key == ""):
		return o, fmt.Errorf("etcd: TLS wants a certificate and its key")
	}
	return o, nil
}

// peers splits Peers into etcd's initial cluster and this member's URL.
func (o *Options) peers() (cluster string, own url.URL, err error) {
	if len(o.Peers) == 0 {
		own = url.URL{Scheme: "http", Host: lonely} // no member dials it or listens at it, since there is no other member
		return o.Name + "=" + own.String(), own, nil
	}
	if len(o.Peers)%2 == 0 && !o.Join {
		o.Logger.Warn("an even number of members survives no more failures than one fewer", "members", len(o.Peers))
	}
	found := false
	for _, p := range o.Peers {
		name, at, ok := strings.Cut(p, "=")
		u, err := url.Parse(at)
		if !ok || err != nil || name == "" || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
			return "", own, fmt.Errorf("etcd: peer %q: want NAME=http://HOST:PORT or NAME=https://HOST:PORT", p)
		}
		if u.Scheme == "https" && o.Cert == "" {
			return "", own, fmt.Errorf("etcd: peer %q wants TLS: give a certificate, its key and the CA", p)
		}
		if name == o.Name {
			own, found = *u, true
		}
	}
	if !found {
		return "", own, fmt.Errorf("etcd: this member is called %q, which is none of the peers %s", o.Name,
			strings.Join(o.Peers, ", "))
	}
	return strings.Join(o.Peers, ","), own, nil
}

// config returns the configuration of the embedded member.
func (o *Options) config() (*embed.Config, error) {
	c := embed.NewConfig()
	c.Name, c.Dir = o.Name, filepath.Join(o.Data, "etcd")
	cluster, own, err := o.peers()
	if err != nil {
		return nil, err
	}
	c.InitialCluster, c.InitialClusterToken = cluster, "millrace"
	if o.Join {
		c.ClusterState = embed.ClusterStateFlagExisting
	}
	c.AdvertisePeerUrls = []url.URL{own}
	c.ListenPeerUrls = nil
	if len(o.Peers) > 0 && own.Scheme != "https" { // doors serves the secure addresses
		c.ListenPeerUrls = []url.URL{own}
	}
	c.ListenClientUrls, c.AdvertiseClientUrls = nil, nil
	if o.ClientURL != "" {
		u, err := url.Parse(o.ClientURL)
		if err != nil {
			return nil, fmt.Errorf("etcd: client URL %q: %w", o.ClientURL, err)
		}
		c.AdvertiseClientUrls = []url.URL{*u}
		if u.Scheme != "https" {
			c.ListenClientUrls = c.AdvertiseClientUrls
		}
	}
	if o.Cert != "" { // for the connections that this member makes to others
		c.PeerTLSInfo = transport.TLSInfo{CertFile: o.Cert, KeyFile: o.Key, TrustedCAFile: o.CA, ClientCertAuth: true,
			SkipClientSANVerify: true}
	}
	c.QuotaBackendBytes = o.Quota
	c.AutoCompactionMode, c.AutoCompactionRetention = "periodic", o.Compact.String()
	c.EnableGRPCGateway = false
	if o.Tick > 0 {
		c.TickMs = uint(o.Tick.Milliseconds())
	}
	if o.Election > 0 {
		c.ElectionMs = uint(o.Election.Milliseconds())
	}
	c.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zapLogger(o.Logger))
	return c, nil
}
