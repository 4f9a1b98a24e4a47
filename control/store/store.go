package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"

	"github.com/millrace/millrace/internal/wait"
)

// The errors of this package, for errors.Is.
var (
	ErrFenced  = errors.New("another member leads now")
	ErrNoSpace = errors.New("etcd is full and takes no writes: make room, then disarm its alarm (docs/operations.md)")
	// ErrAway says that etcd has no leader, or lost it during the call, so that a write may have been done or not.
	// Another attempt may succeed.
	ErrAway   = errors.New("etcd is without a leader for now")
	ErrFormat = errors.New("another format of control plane data")
)

// Store is the control plane's etcd.
type Store struct {
	o      Options
	logger *slog.Logger
	server *embed.Etcd    // nil: external
	secure *secureServers // It is the secure side of server.
	client *clientv3.Client

	stop context.CancelFunc
	wg   sync.WaitGroup

	mu     sync.Mutex
	leader string         // the value with which the leader campaigned; guarded by mu
	seen   wait.Broadcast // It tells that leader has changed; mu guards it.
}

// Open starts the embedded member, or dials, and waits until etcd answers (with several members: until a majority is
// up). The context bounds that wait only.
func Open(ctx context.Context, o Options) (*Store, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Store{o: o, logger: o.Logger}
	if len(o.External) > 0 {
		err = s.dial(ctx)
	} else {
		err = s.embed(ctx)
	}
	if err != nil {
		return nil, err
	}
	if err := s.reachable(ctx); err != nil {
		s.client.Close()
		return nil, errors.Join(err, s.secure.end(s.server))
	}
	watch, stop := context.WithCancel(context.Background())
	s.stop = stop
	s.wg.Add(1)
	go s.watchLeader(watch)
	return s, nil
}

func (s *Store) embed(ctx context.Context) error {
	c, err := s.o.config()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return fmt.Errorf("etcd: data folder: %w", err)
	}
	var e *embed.Etcd
	var secure *secureServers
	if err = examine(c.Dir, zapLogger(s.o.Logger)); err == nil {
		if secure, err = s.o.listenSecure(c.AdvertisePeerUrls[0]); err == nil {
			e, err = startEtcd(c)
		}
	}
	if errors.Is(err, ErrDamaged) {
		err = fmt.Errorf("%w; %s", err, s.o.recovery())
	}
	if err != nil {
		return errors.Join(fmt.Errorf("start etcd in %s: %w", c.Dir, err), secure.end(e))
	}
	secure.serve(e)
	fail := func(err error) error {
		return errors.Join(fmt.Errorf("start etcd in %s: %w", c.Dir, err), secure.end(e))
	}
	select {
	case <-e.Server.ReadyNotify():
	case err := <-e.Err():
		return fail(err)
	case <-ctx.Done():
		return fail(fmt.Errorf("no majority of its %d members is up: %w", max(1, len(s.o.Peers)), ctx.Err()))
	}
	for _, u := range c.ListenClientUrls {
		if u.Scheme != "unix" {
			continue
		}
		// A client that connects may change everything, so that the socket admits no group.
		if err := os.Chmod(u.Host+u.Path, 0o600); err != nil {
			return fail(fmt.Errorf("client socket: %w", err))
		}
	}
	s.server, s.secure, s.client = e, secure, v3client.New(e.Server)
	return nil
}

func (s *Store) dial(ctx context.Context) error {
	c := clientv3.Config{Endpoints: s.o.External, DialTimeout: 5 * time.Second, Logger: zapLogger(s.o.Logger)}
	if s.o.Cert != "" || s.o.CA != "" {
		t, err := transport.TLSInfo{CertFile: s.o.Cert, KeyFile: s.o.Key, TrustedCAFile: s.o.CA}.ClientConfig()
		if err != nil {
			return fmt.Errorf("etcd at %s: TLS: %w", strings.Join(s.o.External, ", "), err)
		}
		c.TLS = t
	}
	client, err := clientv3.New(c)
	if err != nil {
		return fmt.Errorf("etcd at %s: %w", strings.Join(s.o.External, ", "), err)
	}
	if _, err := client.Get(ctx, s.key("format")); err != nil {
		client.Close()
		return fmt.Errorf("etcd at %s does not answer: %w", strings.Join(s.o.External, ", "), err)
	}
	s.client = client
	return nil
}

// Close ends the member. A term of this member ends with it; resign first, so that another member may lead at once.
func (s *Store) Close() error {
	s.stop()
	err := s.client.Close() // ends the calls under way
	s.wg.Wait()
	if errors.Is(err, context.Canceled) {
		err = nil // the error of a client that has no connection and is closed
	}
	if s.server != nil {
		err = errors.Join(err, s.secure.end(s.server))
	}
	return err
}

func (s *Store) key(k string) string { return s.o.Prefix + "/" + k }

// Leader returns the value with which the leading member campaigned (its URL), or "" when no leader is known; and a
// channel that is closed when that changes.
func (s *Store) Leader() (string, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leader, s.seen.Changed()
}

// Depose takes the lease of the leader of that value away, if it still leads, so that another member may lead at once.
// If the deposed leader lives after all, etcd refuses its writes.
func (s *Store) Depose(ctx context.Context, value string) (bool, error) {
	r, err := s.client.Get(ctx, s.key(electionKey)+"/", clientv3.WithFirstCreate()...)
	if err != nil {
		return false, fmt.Errorf("depose %s: %w", value, words(err))
	}
	if len(r.Kvs) == 0 || string(r.Kvs[0].Value) != value || r.Kvs[0].Lease == 0 {
		return false, nil
	}
	_, err = s.client.Revoke(ctx, clientv3.LeaseID(r.Kvs[0].Lease))
	if errors.Is(err, rpctypes.ErrLeaseNotFound) {
		return false, nil // another member was quicker
	}
	if err != nil {
		return false, fmt.Errorf("depose %s: %w", value, words(err))
	}
	return true, nil
}

func (s *Store) setLeader(url string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.leader != url {
		s.leader = url
		s.seen.Broadcast()
	}
}

// watchLeader follows the election's keys.
func (s *Store) watchLeader(ctx context.Context) {
	defer s.wg.Done()
	for ctx.Err() == nil {
		if err := s.followLeader(ctx); err != nil && ctx.Err() == nil {
			s.logger.Debug("watch the leader", "error", err)
		}
		_ = wait.Sleep(ctx, s.retry()) // the loop ends with ctx
	}
}

// retry is the pause before etcd is asked again after an error.
func (s *Store) retry() time.Duration { return max(s.o.Tick, 50*time.Millisecond) }

// followLeader records which member leads, again after every change, until a call fails.
func (s *Store) followLeader(ctx context.Context) error {
	watching, cancel := context.WithCancel(ctx)
	defer cancel()
	for changes := clientv3.WatchChan(nil); ; {
		get, done := context.WithTimeout(ctx, s.o.TTL)
		r, err := s.client.Get(get, s.key(electionKey)+"/", clientv3.WithFirstCreate()...)
		done()
		if err != nil {
			s.setLeader("")
			return err
		}
		if len(r.Kvs) == 0 {
			s.setLeader("")
		} else {
			s.setLeader(string(r.Kvs[0].Value))
		}
		if changes == nil {
			changes = s.client.Watch(watching, s.key(electionKey)+"/", clientv3.WithPrefix(),
				clientv3.WithRev(r.Header.Revision+1))
		}
		w, ok := <-changes
		if !ok {
			return errors.New("the watch ended")
		}
		if err := w.Err(); err != nil {
			return err
		}
	}
}

// Health is etcd's own report on its state.
type Health struct {
	Bytes   int64    // Bytes is the size of this member's data.
	Quota   int64    // at most; 0 where it is not known
	Alarms  []string // as etcd names them: "NOSPACE", "CORRUPT"
	Members int
}

// Bytes is the size of the embedded member's data, 0 where etcd is elsewhere.
func (s *Store) Bytes() int64 {
	if s.server == nil {
		return 0
	}
	return s.server.Server.Backend().Size()
}

// Healthy asks etcd whether it commits: an error if it does not within the context.
func (s *Store) Healthy(ctx context.Context) (Health, error) {
	h := Health{}
	if s.server != nil {
		h.Bytes, h.Quota = s.Bytes(), s.o.Quota
	}
	// A linearizable read needs the majority.
	if _, err := s.client.Get(ctx, s.key("format")); err != nil {
		return h, fmt.Errorf("etcd does not answer: %w", err)
	}
	members, err := s.client.MemberList(ctx)
	if err != nil {
		return h, fmt.Errorf("etcd's members: %w", err)
	}
	h.Members = len(members.Members)
	r, err := s.client.AlarmList(ctx)
	if err != nil {
		return h, fmt.Errorf("etcd's alarms: %w", err)
	}
	for _, a := range r.Alarms {
		if a.Alarm != etcdserverpb.AlarmType_NONE {
			h.Alarms = append(h.Alarms, a.Alarm.String())
		}
	}
	return h, nil
}

// away lists the errors with which etcd says that its leader is gone or slow.
var away = []error{
	rpctypes.ErrNoLeader, rpctypes.ErrNotLeader, rpctypes.ErrLeaderChanged, rpctypes.ErrStopped, rpctypes.ErrTimeout,
	rpctypes.ErrTimeoutDueToLeaderFail,
	rpctypes.ErrTimeoutDueToConnectionLost, rpctypes.ErrTimeoutWaitAppliedIndex, rpctypes.ErrTooManyRequests,
}

// words turns errors of etcd into errors of this package.
func words(err error) error {
	if errors.Is(err, rpctypes.ErrNoSpace) || errors.Is(err, rpctypes.ErrGRPCNoSpace) {
		return ErrNoSpace
	}
	for _, a := range away {
		if errors.Is(err, a) {
			return fmt.Errorf("%w: %w", ErrAway, err)
		}
	}
	return err
}

// MakeRoom makes a full etcd take writes again. It calls erase, which deletes the records that can be spared (a full
// etcd still deletes), compacts the history, defragments this member's file, and disarms the alarm.
func (s *Store) MakeRoom(ctx context.Context, erase func(context.Context) error) error {
	if err := erase(ctx); err != nil {
		return fmt.Errorf("make room in etcd: %w", err)
	}
	r, err := s.client.Get(ctx, s.key("format"))
	if err != nil {
		return fmt.Errorf("make room in etcd: %w", err)
	}
	if _, err := s.client.Compact(ctx, r.Header.Revision, clientv3.WithCompactPhysical()); err != nil && !errors.Is(err,
		rpctypes.ErrCompacted) {
		return fmt.Errorf("make room in etcd: compact: %w", err)
	}
	if s.server != nil {
		if err := s.server.Server.Backend().Defrag(); err != nil {
			return fmt.Errorf("make room in etcd: defragment: %w", err)
		}
	} else {
		for _, e := range s.client.Endpoints() {
			if _, err := s.client.Defragment(ctx, e); err != nil {
				return fmt.Errorf("make room in etcd: defragment %s: %w", e, err)
			}
		}
	}
	if _, err := s.client.AlarmDisarm(ctx, &clientv3.AlarmMember{}); err != nil {
		return fmt.Errorf("make room in etcd: disarm the alarm: %w", err)
	}
	return nil
}
