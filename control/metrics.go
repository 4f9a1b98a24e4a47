package control

import (
	"errors"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/millrace/millrace/control/record"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/exposition"
)

// metrics are the metrics of a member. The metrics of jobs and nodes are read when they are collected, and only from
// the leader.
type metrics struct {
	s        *Server
	registry *prometheus.Registry
	flush    prometheus.Histogram
	desc     map[string]*prometheus.Desc
	files    prometheus.Collector // files counts vocabularies; nil means that the member keeps none.
	daemon   func()               // unregisters the metrics that every daemon exports
}

// described lists the metrics that are read on collection, with their labels. The number of labels is bounded: a
// label is a job or a drive, never a split.
var described = []struct {
	name, help string
	labels     []string
}{
	{"millrace_control_leader", "1 where this member leads, else 0", nil},
	{"millrace_control_fence", "the term's fence; greater in later terms", nil},
	{"millrace_control_etcd_bytes", "size of this member's etcd data", nil},
	{"millrace_control_nodes", "storage nodes by state", []string{"state"}},
	{"millrace_control_jobs", "jobs by phase", []string{"phase"}},
	{"millrace_partitions_short_of_copies", "partitions of which live drives hold fewer copies than wanted", nil},
	{"millrace_partitions_lost", "partitions of which live drives hold no copy, though copies are wanted", nil},
	{"millrace_job_t_rows_per_second", "T: what the trainer takes at most, all ranks together; 0: not known",
		[]string{"job"}},
	{"millrace_job_p_rows_per_second", "P: what a drive makes", []string{"job", "drive"}},
	{"millrace_job_drives_wanted", "ceil(T/P)", []string{"job"}},
	{"millrace_job_drives_allowed", "drives that may run at once", []string{"job"}},
	{"millrace_job_drives_running", "drives that run now", []string{"job"}},
	{"millrace_job_workers_allowed", "workers without data that may run beside the drives; -1: no bound",
		[]string{"job"}},
	{"millrace_job_workers_ready", "workers without data that are prepared", []string{"job"}},
	{"millrace_job_workers_running", "workers without data that run now", []string{"job"}},
	{"millrace_splits_granted_total", "splits granted, by the reach of the worker: held or any",
		[]string{"job", "reach"}},
	{"millrace_control_workers_aside", "workers without data that are set aside since leases failed on them", nil},
	{"millrace_control_worker_failures_total", "leases that came back since a worker without data failed", nil},
	{"millrace_job_delivered_batches", "mini-batches of the epoch that are acknowledged", []string{"job"}},
	{"millrace_job_epoch", "the epoch, from 0", []string{"job"}},
	{"millrace_split_leases", "leases that are out", []string{"job"}},
	{"millrace_splits_redelivered_total", "leases that came back and were granted again", []string{"job"}},
	{"millrace_trainer_input_queue_batches", "mini-batches waiting in a rank's input queue", []string{"job", "rank"}},
	{"millrace_trainer_stall_seconds_total", "time a rank's trainer stood still for want of a mini-batch",
		[]string{"job", "rank"}},
}

func newMetrics(s *Server, registry *prometheus.Registry) (*metrics, error) {
	m := &metrics{s: s, registry: registry, desc: map[string]*prometheus.Desc{},
		flush: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "millrace_ledger_flush_seconds", Help: "time of one group commit of acknowledgements",
			Buckets:                     prometheus.ExponentialBuckets(0.0005, 2, 14), // to 4 s
			NativeHistogramBucketFactor: 1.1,
		})}
	for _, d := range described {
		m.desc[d.name] = prometheus.NewDesc(d.name, d.help, d.labels, nil)
	}
	if err := errors.Join(registry.Register(m), registry.Register(m.flush)); err != nil {
		return nil, err
	}
	var err error
	m.daemon, err = exposition.Register(registry, exposition.Options{Version: s.o.Version, Identity: s.o.Identity})
	return m, err
}

// registerVocabularies adds the metrics of the member's vocabularies.
func (m *metrics) registerVocabularies(v *jobFileShare) error {
	m.files = exposition.Vocabularies(v.files, v.cache)
	return m.registry.Register(m.files)
}

func (m *metrics) unregister() {
	m.registry.Unregister(m)
	m.registry.Unregister(m.flush)
	if m.files != nil {
		m.registry.Unregister(m.files)
	}
	m.daemon()
}

// Describe implements prometheus.Collector.
func (m *metrics) Describe(out chan<- *prometheus.Desc) {
	for _, d := range m.desc {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (m *metrics) Collect(out chan<- prometheus.Metric) {
	gauge := func(name string, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(m.desc[name], prometheus.GaugeValue, v, labels...)
	}
	counter := func(name string, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(m.desc[name], prometheus.CounterValue, v, labels...)
	}
	gauge("millrace_control_etcd_bytes", float64(m.s.store.Bytes()))
	l := m.s.leading.Load()
	if l == nil {
		gauge("millrace_control_leader", 0)
		return
	}
	gauge("millrace_control_leader", 1)
	gauge("millrace_control_fence", float64(l.term.Fence()))
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	states := map[string]int{}
	for _, r := range l.mu.fleet.States(now) {
		states[r]++
	}
	for s, n := range states {
		gauge("millrace_control_nodes", float64(n), s)
	}
	copies := l.copies.compare(l.mu.fleet)
	gauge("millrace_partitions_short_of_copies", float64(copies.Short))
	gauge("millrace_partitions_lost", float64(copies.Lost))
	aside, failures := 0, uint64(0)
	for _, d := range l.mu.machine.Ledger.Drives() {
		failures += d.Failures
		if !d.Aside.IsZero() {
			aside++
		}
	}
	gauge("millrace_control_workers_aside", float64(aside))
	counter("millrace_control_worker_failures_total", float64(failures))
	phases := map[record.Phase]int{}
	for _, j := range l.mu.jobs {
		phases[j.Phase()]++
		if !j.Phase().Ended() {
			m.jobLocked(l, j, now, gauge, counter)
		}
	}
	for p, n := range phases {
		gauge("millrace_control_jobs", float64(n), string(p))
	}
}

// jobLocked collects the metrics of one job.
func (m *metrics) jobLocked(l *leader, j *job, now time.Time, gauge, counter func(string, float64, ...string)) {
	st := j.State()
	gauge("millrace_job_t_rows_per_second", st.T, j.ID)
	for d, p := range st.P {
		gauge("millrace_job_p_rows_per_second", p, j.ID, d)
	}
	gauge("millrace_job_drives_wanted", float64(st.Allocation.Wanted), j.ID)
	allowed, _ := j.steering.Allowed()
	gauge("millrace_job_drives_allowed", float64(allowed), j.ID)
	v, err := l.mu.machine.Ledger.Status(j.ID, now)
	if err != nil {
		return // no epoch was begun
	}
	gauge("millrace_job_drives_running", float64(len(v.Running)), j.ID)
	gauge("millrace_job_workers_allowed", float64(v.Allowed), j.ID)
	gauge("millrace_job_workers_ready", float64(v.Enlisted), j.ID)
	gauge("millrace_job_workers_running", float64(v.Workers), j.ID)
	if granted, err := l.mu.machine.Ledger.GrantedSplits(j.ID); err == nil {
		counter("millrace_splits_granted_total", float64(granted.Held), j.ID, apiv1.ReachHeld)
		counter("millrace_splits_granted_total", float64(granted.Any), j.ID, apiv1.ReachAny)
	}
	gauge("millrace_job_delivered_batches", float64(v.Delivered), j.ID)
	gauge("millrace_job_epoch", float64(v.Epoch), j.ID)
	gauge("millrace_split_leases", float64(v.Leases), j.ID)
	counter("millrace_splits_redelivered_total", float64(st.Redelivered+v.Redelivered), j.ID)
	for i := range j.spec.Ranks {
		rank := strconv.Itoa(int(i))
		if batches, reported := j.steering.QueueBatches(i); reported {
			gauge("millrace_trainer_input_queue_batches", batches, j.ID, rank)
		}
		counter("millrace_trainer_stall_seconds_total", j.steering.StallSeconds(i), j.ID, rank)
	}
}
