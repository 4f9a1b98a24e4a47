package exposition

import (
	"errors"
	"net/http"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/millrace/millrace/host/identity"
)

// Options describe a daemon.
type Options struct {
	Version  string           // Version is that of the program; empty: devel.
	Identity identity.Options // whose certificates are watched
}

// Register adds what every daemon exports to a registry, and returns a function that takes it out again. Metrics that
// another daemon of the process has registered already serve both daemons.
func Register(r prometheus.Registerer, o Options) (unregister func(), err error) {
	if o.Version == "" {
		o.Version = "devel"
	}
	build := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "millrace_build_info",
		Help: "1, labelled with what the program is."}, []string{"version", "go"})
	build.WithLabelValues(o.Version, runtime.Version()).Set(1)
	var added []prometheus.Collector
	unregister = func() {
		for _, c := range added {
			r.Unregister(c)
		}
	}
	all := []prometheus.Collector{
		build, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		newCertificates(o.Identity),
	}
	for _, c := range all {
		err := r.Register(c)
		if already := (prometheus.AlreadyRegisteredError{}); errors.As(err, &already) {
			continue
		}
		if err != nil {
			unregister()
			return nil, err
		}
		added = append(added, c)
	}
	return unregister, nil
}

// certificates collects when certificates end.
type certificates struct {
	o       identity.Options
	expires *prometheus.Desc
	read    *prometheus.Desc
}

func newCertificates(o identity.Options) *certificates {
	return &certificates{
		o: o,
		expires: prometheus.NewDesc("millrace_certificate_expiry_seconds",
			"When the first certificate of the kind ends, in seconds since 1970: own or authority.", []string{"kind"},
			nil),
		read: prometheus.NewDesc("millrace_certificates_readable",
			"1 while the files of the certificates can be read; absent without TLS.", nil, nil),
	}
}

// Describe implements prometheus.Collector.
func (c *certificates) Describe(out chan<- *prometheus.Desc) { out <- c.expires; out <- c.read }

// Collect implements prometheus.Collector.
func (c *certificates) Collect(out chan<- prometheus.Metric) {
	if !c.o.On() {
		return
	}
	list, err := c.o.Certificates()
	if err != nil {
		out <- prometheus.MustNewConstMetric(c.read, prometheus.GaugeValue, 0)
		return
	}
	out <- prometheus.MustNewConstMetric(c.read, prometheus.GaugeValue, 1)
	first := map[string]time.Time{}
	for _, one := range list {
		kind := "own"
		if one.Authority {
			kind = "authority"
		}
		if at, ok := first[kind]; !ok || one.Expires.Before(at) {
			first[kind] = one.Expires
		}
	}
	for kind, at := range first {
		out <- prometheus.MustNewConstMetric(c.expires, prometheus.GaugeValue, float64(at.Unix()), kind)
	}
}

// Handler serves a registry to the callers that Reader lets through.
func Handler(g prometheus.Gatherer) http.Handler {
	return Reader(promhttp.HandlerFor(g, promhttp.HandlerOpts{}))
}

// Reader lets operators, members of the control plane and nodes read over TLS, and every client without TLS.
func Reader(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := identity.Require(r.TLS, identity.Operator, identity.Control, identity.Node); err != nil {
			http.Error(w, err.Error(), http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}
