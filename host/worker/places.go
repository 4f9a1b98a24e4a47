package worker

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/millrace/millrace/host/api"
	"github.com/millrace/millrace/host/source"
	"github.com/millrace/millrace/sdk/dataset"
)

// Times of places.
const (
	// firstRest and longestRest bound the time for which a place that failed is asked only after the others. The time
	// doubles with each failure.
	firstRest   = 200 * time.Millisecond
	longestRest = 30 * time.Second
	// lostRest is how long a place that holds another partition, or none, is not asked at all.
	lostRest = 10 * time.Second
	// locatePause is the least time between two requests to the control plane for the places of one partition.
	locatePause = 500 * time.Millisecond
)

// places reads one partition of a job at the places where it lies: copies on nodes, and a store. It implements
// source.Source. Each read asks one place once; after a failure the next read asks another place, so that the
// caller's retries go through all places. When every place has failed, places asks the control plane where the
// partition lies now.
type places struct {
	partitions *Partitions
	job        dataset.Digest
	want       dataset.Partition

	mu        sync.Mutex
	list      []*place
	retired   []*place            // These are not named any more.
	suppliers map[*place]struct{} // Bytes came from these.
	located   time.Time           // when the control plane was asked last
}

// place is one place of a partition. places.mu guards its fields.
type place struct {
	name       string // for logs and errors
	open       func(ctx context.Context) (source.Source, error)
	isStore    bool          // a store, and not a copy on a node
	key        string        // the same place has the same key
	source     source.Source // nil: not open yet
	failures   int           // in a row
	restsUntil time.Time     // until then the others are asked first
	lostErr    error         // why the place is not asked again: it holds another partition, or none
}

// newPlaces makes a partition's places from the control plane's description of them.
func newPlaces(p *Partitions, job dataset.Digest, want dataset.Partition, known api.Source) *places {
	s := &places{partitions: p, job: job, want: want, suppliers: map[*place]struct{}{}}
	s.replacePlaces(known)
	return s
}

// replacePlaces replaces the places by those that the control plane names. Places that were known before keep their
// state; a place that was lost a while ago may be asked again.
func (s *places) replacePlaces(known api.Source) {
	var list []*place
	add := func(store bool, key, name string, open func(ctx context.Context) (source.Source, error)) {
		list = append(list, &place{isStore: store, key: key, name: name, open: open})
	}
	if path, ok := s.partitions.options.Local.findFile(s.want); ok {
		add(true, "file:"+path, path, func(ctx context.Context) (source.Source, error) {
			return source.Files{}.Open(ctx, source.ParseLocation(path), source.Identity{})
		})
	}
	files := len(list)
	for _, c := range known.Copies {
		if s.partitions.options.Launcher {
			break
		}
		key, name := fmt.Sprintf("%q %q %q", c.Node, c.Drive, c.URLs), c.Node+"/"+c.Drive
		add(false, key, name, func(context.Context) (source.Source, error) {
			return openCopy(s.partitions.options.Client, c, s.want)
		})
	}
	// Workers that read the same partition begin at different copies.
	copies := list[files:]
	rand.Shuffle(len(copies), func(i, j int) { copies[i], copies[j] = copies[j], copies[i] })
	if known.URL != "" { // the nodes first: they are nearer, and their ranges have checksums
		at := source.ParseLocation(known.URL)
		add(true, known.URL, at.String(), func(ctx context.Context) (source.Source, error) {
			if err := at.CheckAnnounced(); err != nil {
				return nil, err
			}
			pinned, err := source.ParseIdentity(known.Identity)
			if err != nil {
				return nil, err
			}
			return s.partitions.options.Stores.Open(ctx, at, pinned)
		})
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, p := range list {
		if j := slices.IndexFunc(s.list, func(q *place) bool { return q.key == p.key }); j >= 0 {
			list[i] = s.list[j]
			if !list[i].restsUntil.After(time.Now()) {
				list[i].lostErr = nil
			}
		}
	}
	for _, q := range s.list {
		if !slices.Contains(list, q) {
			s.retired = append(s.retired, q)
		}
	}
	s.list = list
}

// Name implements source.Source.
func (s *places) Name() string { return s.want.Name }

// Size implements source.Source.
func (s *places) Size() int64 { return s.want.Bytes }

// Identity implements source.Source.
func (s *places) Identity() source.Identity {
	return source.Identity{Kind: source.ByContent, Value: s.want.Content.String(), Size: s.want.Bytes}
}

// Close implements source.Source.
func (s *places) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, p := range slices.Concat(s.list, s.retired) {
		if p.source != nil {
			errs = append(errs, p.source.Close())
			p.source = nil
		}
	}
	return errors.Join(errs...)
}

// ReadAt implements source.Source.
func (s *places) ReadAt(ctx context.Context, b []byte, off int64) (int, error) {
	p, err := s.choosePlace(ctx)
	if err != nil {
		return 0, err
	}
	n, err := s.readFrom(ctx, p, b, off)
	s.partitions.countRead(p, n, err)
	if n == len(b) || err == nil {
		s.recordSuccess(p)
		return n, err
	}
	return n, s.recordFailure(ctx, p, err)
}

// readFrom reads at one place, which it opens if that was not done yet.
func (s *places) readFrom(ctx context.Context, p *place, b []byte, off int64) (int, error) {
	src, err := s.openSource(ctx, p)
	if err != nil {
		return 0, err
	}
	return src.ReadAt(ctx, b, off)
}

// openSource opens a place, or returns its open source.
func (s *places) openSource(ctx context.Context, p *place) (source.Source, error) {
	s.mu.Lock()
	src := p.source
	s.mu.Unlock()
	if src != nil {
		return src, nil
	}
	src, err := p.open(ctx)
	if err != nil {
		return nil, err
	}
	if src.Size() != s.want.Bytes {
		err := &source.ChangedError{Name: src.Name(), Pinned: s.Identity(), Found: src.Identity()}
		return nil, errors.Join(err, src.Close())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.source != nil { // another read has opened it meanwhile
		return p.source, src.Close()
	}
	p.source = src
	return src, nil
}

// choosePlace returns the place to ask: the first place that does not rest, or, if all rest, the place whose rest is
// the shortest. If there is no place it asks the control plane.
func (s *places) choosePlace(ctx context.Context) (*place, error) {
	if p := s.bestPlace(); p != nil {
		return p, nil
	}
	if err := s.locateAgain(ctx); err != nil {
		return nil, err
	}
	if p := s.bestPlace(); p != nil {
		return p, nil
	}
	return nil, s.noPlaceError()
}

// bestPlace returns the place that choosePlace asks, or nil if every place is lost.
func (s *places) bestPlace() *place {
	s.mu.Lock()
	defer s.mu.Unlock()
	var best *place
	now := time.Now()
	for _, p := range s.list {
		switch {
		case p.lostErr != nil:
		case !p.restsUntil.After(now):
			return p
		case best == nil || p.restsUntil.Before(best.restsUntil):
			best = p
		}
	}
	return best
}

// noPlaceError returns the error of a partition that no place has: it changed everywhere, or it may come back.
func (s *places) noPlaceError() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var changed *source.ChangedError
	others := false
	for _, p := range s.list {
		if !errors.As(p.lostErr, &changed) {
			others = true
		}
	}
	if changed != nil && !others {
		return changed
	}
	if s.partitions.options.Launcher {
		return &source.UnreachableError{Name: s.want.Name, Err: fmt.Errorf("it is in no file of this machine that local "+
			"names, and in no store: %s: a launcher's certificate is not enough to read partitions from nodes: name the file "+
			"(--local, files= in Python), or give the worker a certificate of the role node (--own-worker)",
			describeLosses(s.list))}
	}
	return &source.UnreachableError{Name: s.want.Name, Err: fmt.Errorf("no live node has it, and no store: %s: put "+
		"it on a node (millrace dataset place), or name its URL in the partitions of a worker, and the URL's beginning in "+
		"the stores of every worker", describeLosses(s.list))}
}

// describeLosses returns a text that says why places are not asked. It wraps no error, because a caller that looks
// for a change must not find the change of one of several places.
func describeLosses(list []*place) string {
	if len(list) == 0 {
		return "there is no place to ask"
	}
	text := ""
	for _, p := range list {
		if p.lostErr != nil {
			text += fmt.Sprintf("; %v", p.lostErr)
		}
	}
	return text[min(len(text), 2):]
}

// recordSuccess notes that bytes came from a place.
func (s *places) recordSuccess(p *place) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p.failures, p.restsUntil = 0, time.Time{}
	s.suppliers[p] = struct{}{}
}

// recordFailure notes that a place failed, and returns the error for the caller's retries: the error is temporary if
// another place, or the same place later, may succeed.
func (s *places) recordFailure(ctx context.Context, p *place, err error) error {
	if err == nil {
		return nil
	}
	s.mu.Lock()
	p.failures++
	p.restsUntil = time.Now().Add(min(firstRest<<min(p.failures-1, 8), longestRest))
	if losesPlace(err) {
		p.lostErr, p.restsUntil = err, time.Now().Add(lostRest)
	}
	resting := true // every place has failed
	for _, q := range s.list {
		resting = resting && (q.lostErr != nil || q.failures > 0)
	}
	s.mu.Unlock()
	log := s.partitions.options.Log
	log.Debug("a place of a partition failed", "partition", s.want.Name, "place", p.name, "error", err)
	if resting && ctx.Err() == nil {
		if locateErr := s.locateAgain(ctx); locateErr != nil {
			log.Debug("no answer where a partition lies", "partition", s.want.Name, "error", locateErr)
		}
	}
	if _, temporary := source.Temporary(err); temporary || ctx.Err() != nil {
		return err
	}
	if s.bestPlace() == nil {
		return s.noPlaceError()
	}
	// Only the error's text is kept: a caller that looks for a change must not find the change of one of several
	// places.
	return &source.UnreachableError{Name: s.want.Name, Err: fmt.Errorf("at %s: %s", p.name, err.Error())}
}

// losesPlace reports whether a place is not asked again after an error.
func losesPlace(err error) bool {
	var (
		changed   *source.ChangedError
		missing   *source.NotFoundError
		forbidden *source.ForbiddenError
		lacking   *source.UnsupportedError
	)
	return errors.As(err, &changed) || errors.As(err, &missing) || errors.As(err, &forbidden) ||
		errors.As(err, &lacking) || errors.Is(err, source.ErrIdentity)
}

// locateAgain asks the control plane where the partition lies now, unless it was asked just before.
func (s *places) locateAgain(ctx context.Context) error {
	s.mu.Lock()
	if time.Since(s.located) < locatePause {
		s.mu.Unlock()
		return nil
	}
	s.located = time.Now()
	s.mu.Unlock()
	known, err := s.partitions.locate(ctx, s.job, s.want.Name)
	if err != nil {
		return &source.UnreachableError{Name: s.want.Name, Err: fmt.Errorf("ask the control plane where it lies: %w", err)}
	}
	s.replacePlaces(known)
	return nil
}

// checkUnchanged checks the partition again at every place that bytes came from. A place that does not answer is
// treated like a place whose partition changed: nothing shows that its bytes were the right ones.
func (s *places) checkUnchanged(ctx context.Context) error {
	s.mu.Lock()
	suppliers := make([]*place, 0, len(s.suppliers))
	for p := range s.suppliers {
		suppliers = append(suppliers, p)
	}
	s.mu.Unlock()
	for _, p := range suppliers {
		src, err := s.openSource(ctx, p)
		if err == nil {
			err = checkSource(ctx, src)
		}
		if err == nil {
			continue
		}
		s.partitions.countRead(p, 0, err)
		err = s.recordFailure(ctx, p, err)
		var changed *source.ChangedError
		if errors.As(err, &changed) {
			return err
		}
		return fmt.Errorf("what was read of it cannot be checked any more: %w", err)
	}
	return nil
}

// checkSource checks that a source still has the pinned identity.
func checkSource(ctx context.Context, src source.Source) error {
	if h, ok := src.(*heldCopy); ok {
		return h.checkContent(ctx)
	}
	if src.Size() == 0 {
		return nil
	}
	_, err := src.ReadAt(ctx, make([]byte, 1), 0)
	return err
}
