package private

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"reflect"
	"sync"
	"time"

	"github.com/millrace/millrace/host"
	"github.com/millrace/millrace/host/source"
	"github.com/millrace/millrace/internal/wait"
	"github.com/millrace/millrace/trainmgr"
	"github.com/millrace/millrace/trainmgr/local"
)

// Options configure Serve. The zero value works.
type Options struct {
	Logger *slog.Logger // nil discards the log
	// Parent is the process that started this process. This process ends when its parent ends; 0 means that no parent
	// is watched.
	Parent int
	// Sources returns how files of stores are read. Nil reads files of this machine only.
	Sources func(files []source.Location) (host.Sources, error)
}

// DefaultQueueBytes bounds the buffers of a machine's ranks if Open.QueueBytes is 0.
const DefaultQueueBytes = 128 << 20

// DefaultPatience is how long local ranks wait for each other if Open.Patience is 0.
const DefaultPatience = 5 * time.Minute

// past is a deadline that has passed. As a connection's read deadline it ends a read that waits.
var past = time.Unix(1, 0)

// errParentEnded says that the process that started this one has ended.
var errParentEnded = errors.New("the trainer that started this process has ended")

// process is the sessions of a machine's ranks over one set of files.
type process struct {
	options Options
	starter *session // starter is the session of the rank that started the process.

	mu        sync.Mutex
	sessions  []*session                 // one a local rank, the starter's first
	added     wait.Broadcast             // It tells that a session was added.
	accepting bool                       // the process still waits for ranks
	pending   map[*net.UnixConn]struct{} // connections that have not sent their Open
}

// Serve serves the trainer at the other end of conn, and the other local ranks, until they have left. It returns nil
// when every trainer has left or ended, and closes conn.
func Serve(ctx context.Context, conn *net.UnixConn, o Options) (err error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	// The end of ctx ends every wait of a session on its connection.
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(past) })
	defer stop()
	defer func() { err = errors.Join(err, conn.Close()) }()
	p := &process{options: o, accepting: true, pending: map[*net.UnixConn]struct{}{}}
	if p.starter, err = newSession(conn); err != nil {
		if trainerLeft(err) {
			return nil
		}
		p.starter.sendFailure(err)
		return err
	}
	watching, stopWatching := context.WithCancel(ctx)
	defer stopWatching()
	if o.Parent > 0 {
		go func() {
			if awaitProcessEnd(watching, o.Parent) {
				cancel(errParentEnded)
			}
		}()
	}
	p.sessions = []*session{p.starter}
	return p.openAndServe(ctx, cancel, stopWatching)
}

// openAndServe opens the files, waits for the other local ranks, and runs every session. It calls starterLeft when the
// rank that started the process has left properly. From then on the end of that rank's trainer does not end the
// process.
func (p *process) openAndServe(ctx context.Context, cancel context.CancelCauseFunc, starterLeft func()) (err error) {
	open := p.starter.open
	listener, err := p.listenForRanks(ctx)
	if err != nil {
		p.starter.sendFailure(err)
		return err
	}
	if listener != nil {
		defer func() { _ = listener.Close() }()
	}
	options, err := open.jobOptions()
	if err != nil {
		p.starter.sendFailure(err)
		return err
	}
	manager, storage, threads, err := openStorage(ctx, open, p.options)
	if err != nil {
		p.starter.sendFailure(err)
		return err
	}
	defer func() { err = errors.Join(err, manager.Close()) }()
	p.options.Logger.Info("opened the files of a trainer", "threads", threads)
	defer p.closeOthers()
	if err := p.gatherRanks(ctx, listener); err != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, s := range p.sessions {
			s.sendFailure(err)
		}
		return err
	}
	p.runSessions(ctx, cancel, starterLeft, options, storage, threads)
	return nil
}

// runSessions runs every session to its end. If the starter's trainer dies, all of them end.
func (p *process) runSessions(ctx context.Context, cancel context.CancelCauseFunc, starterLeft func(),
	options trainmgr.Options, storage sharedStorage, threads int) {
	queue := p.starter.open.QueueBytes
	if queue == 0 {
		queue = DefaultQueueBytes
	}
	queue /= int64(len(p.sessions))
	if options.Order != 0 { // mini-batches that come before their turn wait outside the buffers
		queue /= 2
		options.QueueBytes = max(queue, 1)
	}
	selections := &local.Selections{QueueBytes: queue}
	var running sync.WaitGroup
	for _, s := range p.sessions {
		s.storage, s.options, s.buffers = storage, options, newBufferPool(queue)
		s.selections, s.passes = selections, storage.Storage
		s.options.Share.Rank = s.open.Rank
		running.Go(func() {
			stop := context.AfterFunc(ctx, func() { _ = s.conn.SetDeadline(past) })
			defer stop()
			err := s.serveRank(ctx, threads)
			p.options.Logger.Info("session ended", "rank", s.open.Rank, "error", err)
			switch {
			case s != p.starter:
				_ = s.conn.Close()
			case errors.Is(err, errTrainerLeft):
				starterLeft()
			default:
				cancel(errParentEnded)
			}
		})
	}
	running.Wait()
}

// listenForRanks opens the socket for the other local ranks; it returns nil if there are none.
func (p *process) listenForRanks(ctx context.Context) (*net.UnixListener, error) {
	open := p.starter.open
	if open.LocalRanks <= 1 {
		return nil, nil
	}
	if open.Listen == "" {
		return nil, &OptionError{fmt.Sprintf("%d local ranks and no name of a socket", open.LocalRanks)}
	}
	// The name is abstract: there is no file, and it is free again when this process has ended.
	listener, err := new(net.ListenConfig).Listen(ctx, "unix", "@"+open.Listen)
	if err != nil {
		return nil, fmt.Errorf("open the socket for the ranks of this machine: %w", err)
	}
	// Of two processes that listen at about the same time, at least the later one sees the other.
	if other, found := findOtherListener(open.Listen); found {
		return nil, errors.Join(&RanksError{fmt.Sprintf("another process of this user serves this machine's ranks "+
			"already (at %s), so that two processes say they are the first of them: see LOCAL_RANK, RANK, and rank=",
			other)}, listener.Close())
	}
	return listener.(*net.UnixListener), nil
}

// gatherRanks waits until every local rank has connected and asked for the same as the starter. Meanwhile the starter's
// connection is watched.
func (p *process) gatherRanks(ctx context.Context, listener *net.UnixListener) error {
	wanted := max(p.starter.open.LocalRanks, 1)
	if wanted == 1 {
		return nil
	}
	patience := time.Duration(p.starter.open.Patience) * time.Second
	if patience == 0 {
		patience = DefaultPatience
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	starterEnded := p.watchStarter()
	defer p.acceptRanks(listener)()
	for {
		changed := p.sessionAdded()
		if len(p.connectedRanks()) == wanted {
			p.starter.stopWatching(starterEnded)
			return nil
		}
		select {
		case <-changed:
		case <-timer.C:
			p.starter.stopWatching(starterEnded)
			return &RanksError{fmt.Sprintf("%d of %d local ranks came in %v, namely %v: every rank of this machine "+
				"calls millrace.open, in the same order; LOCAL_WORLD_SIZE says how many there are",
				len(p.connectedRanks()), wanted, patience, p.connectedRanks())}
		case <-starterEnded:
			return errParentEnded
		case <-ctx.Done():
			p.starter.stopWatching(starterEnded)
			return context.Cause(ctx)
		}
	}
}

// acceptRanks takes connections of other ranks in the background. The function that it returns ends that, and waits for
// the end.
func (p *process) acceptRanks(listener *net.UnixListener) (stop func()) {
	var running sync.WaitGroup
	running.Go(func() {
		for {
			conn, err := listener.AcceptUnix()
			if err != nil {
				return
			}
			if !p.addPending(conn) {
				_ = conn.Close()
				return
			}
			running.Go(func() { p.admitConnection(conn) })
		}
	})
	return func() {
		_ = listener.Close()
		p.mu.Lock()
		p.accepting = false
		for conn := range p.pending { // they have not sent their Open
			_ = conn.SetDeadline(past)
		}
		p.mu.Unlock()
		running.Wait()
	}
}

// addPending records a connection that has not sent its Open. It returns false if the process takes no further
// connection.
func (p *process) addPending(conn *net.UnixConn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.accepting {
		p.pending[conn] = struct{}{}
	}
	return p.accepting
}

// sessionAdded returns a channel that is closed when another rank has come.
func (p *process) sessionAdded() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.added.Changed()
}

// watchStarter returns a channel that is closed when the starter's connection ends or has bytes to read. No trainer
// sends anything before its Open is answered.
func (p *process) watchStarter() chan struct{} {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = p.starter.reader.Peek(1)
	}()
	return ended
}

// stopWatching ends the watch, so that the connection can be read again.
func (s *session) stopWatching(ended chan struct{}) {
	_ = s.conn.SetReadDeadline(past)
	<-ended
	_ = s.conn.SetReadDeadline(time.Time{})
}

// connectedRanks returns the local ranks that have come.
func (p *process) connectedRanks() []int {
	p.mu.Lock()
	defer p.mu.Unlock()
	var ranks []int
	for _, s := range p.sessions {
		ranks = append(ranks, s.open.Rank)
	}
	return ranks
}

// admitConnection reads the Open of a connection, and adds a session for it if its process is this user's and its
// Open asks for the same as the starter's.
func (p *process) admitConnection(conn *net.UnixConn) {
	if uid, _, err := peerCredentials(conn); err != nil || uid != os.Getuid() {
		p.options.Logger.Warn("refused a connection of another user", "error", err)
		p.removePending(conn)
		_ = conn.Close()
		return
	}
	s, err := newSession(conn)
	p.removePending(conn)
	if err == nil {
		err = p.addSession(s)
	}
	if err != nil {
		p.options.Logger.Warn("refused a rank", "error", err)
		s.sendFailure(err)
		_ = conn.Close()
	}
}

// removePending removes a connection from the pending ones.
func (p *process) removePending(conn *net.UnixConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.pending, conn)
}

// addSession adds the session of another rank.
func (p *process) addSession(s *session) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	mine, theirs := *p.starter.open, *s.open
	for _, o := range []*Open{&mine, &theirs} {
		o.Rank, o.Token, o.Stamps, o.Listen, o.Patience = 0, "", nil, "", 0
	}
	if !reflect.DeepEqual(mine, theirs) {
		return &RanksError{fmt.Sprintf("rank %d opens something else than rank %d: all ranks of a machine give the "+
			"same files, pipeline and options", s.open.Rank, p.starter.open.Rank)}
	}
	for _, other := range p.sessions {
		if other.open.Rank == s.open.Rank {
			return &RanksError{fmt.Sprintf("two processes of this machine say they are rank %d: see RANK, or rank=",
				s.open.Rank)}
		}
	}
	if !p.accepting {
		return errParentEnded
	}
	p.sessions = append(p.sessions, s)
	p.added.Broadcast()
	return nil
}

// closeOthers closes every connection but the starter's.
func (p *process) closeOthers() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.sessions[1:] {
		_ = s.conn.Close()
	}
}
