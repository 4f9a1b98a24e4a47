package control

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"connectrpc.com/connect"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/api/v1/apiv1connect"
	"github.com/millrace/millrace/host/identity"
	"github.com/millrace/millrace/host/jobfiles"
	"github.com/millrace/millrace/sdk/vocabulary"
)

// Bounds and times of sharing.
const (
	maxShared      = 4096            // files of one ShareVocabularies call
	maxSharers     = 64              // members that a leader remembers
	shareBeats     = 2               // heartbeats of nodes between two rounds
	shareTime      = 5 * time.Second // of one call
	forgetSharer   = 30 * time.Second
	describeWait   = 20 * time.Second // for a file that another member has, when a job is submitted
	maxDescribed   = 256              // descriptions that are kept
	maxSharedBytes = 1 << 20          // of an answer
)

// jobFileShare keeps a member's files of jobs: those that running jobs name are on every member, so that each may lead,
// and nodes may ask any. The member that leads says which these are; the others ask it.
type jobFileShare struct {
	s     *Server
	files *jobfiles.Store
	cache *jobfiles.Cache // fetches from other members; it loads nothing
	poke  chan struct{}   // begins a round; capacity 1

	held map[vocabulary.Digest]func() // The goroutine of run holds the files that running jobs name.

	mu        sync.Mutex // guards the fields below
	sharers   map[string]sharer
	urls      map[vocabulary.Digest][]string // as the leader said last
	described map[vocabulary.Digest][]byte
}

// sharer is what another member said of its files.
type sharer struct {
	have []vocabulary.Digest
	at   time.Time
}

func newJobFileShare(s *Server, files *jobfiles.Store) *jobFileShare {
	v := &jobFileShare{s: s, files: files, poke: make(chan struct{}, 1), held: map[vocabulary.Digest]func(){},
		sharers: map[string]sharer{}, urls: map[vocabulary.Digest][]string{}, described: map[vocabulary.Digest][]byte{}}
	v.cache = jobfiles.NewCache(jobfiles.CacheOptions{Store: files, Sources: v.sources, Wait: describeWait,
		Logger: s.logger})
	return v
}

// wake begins a round.
func (v *jobFileShare) wake() {
	select {
	case v.poke <- struct{}{}:
	default:
	}
}

// run carries out rounds until ctx ends.
func (v *jobFileShare) run(ctx context.Context) {
	defer v.cache.Close()
	ticker := time.NewTicker(shareBeats * v.s.o.Beat)
	defer ticker.Stop()
	for {
		if named, err := v.named(ctx); err == nil {
			v.keep(ctx, named)
		} else if ctx.Err() == nil {
			v.s.logger.Debug("the files of running jobs are not known", "error", err)
		}
		v.files.Sweep()
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		case <-v.poke:
		}
	}
}

// named returns the files that running jobs name, from the leader.
func (v *jobFileShare) named(ctx context.Context) ([]jobfiles.File, error) {
	if l := v.s.leading.Load(); l != nil {
		return l.namedVocabularies(), nil
	}
	url, _ := v.s.store.Leader()
	base, err := identity.BaseURL(url)
	if err != nil || url == v.s.url {
		return nil, errors.New("no leader is known")
	}
	ctx, cancel := context.WithTimeout(ctx, shareTime)
	defer cancel()
	request := &apiv1.ShareVocabulariesRequest{Url: v.s.url}
	for _, f := range v.files.Files() {
		request.Have = append(request.Have, f.Digest[:])
	}
	request.Have = request.Have[:min(len(request.Have), maxShared)]
	answer, err := apiv1connect.NewControlClient(v.s.nodes, base, connect.WithReadMaxBytes(maxSharedBytes)).
		ShareVocabularies(ctx, request)
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", url, err)
	}
	var list []jobfiles.File
	urls := map[vocabulary.Digest][]string{}
	for _, shared := range answer.Vocabularies {
		if len(shared.Sha256) != len(vocabulary.Digest{}) {
			continue
		}
		digest := vocabulary.Digest(shared.Sha256)
		file := jobfiles.File{Digest: digest, Bytes: shared.Bytes}
		switch {
		case shared.Selection:
			file.Kind = jobfiles.Selection
		case shared.Module:
			file.Kind = jobfiles.Module
		}
		list = append(list, file)
		urls[digest] = shared.Urls
	}
	v.mu.Lock()
	v.urls = urls
	v.mu.Unlock()
	return list, nil
}

// keep holds the files that jobs name, fetches those that this member lacks, and lets go of the others.
func (v *jobFileShare) keep(ctx context.Context, named []jobfiles.File) {
	wanted := map[vocabulary.Digest]bool{}
	for _, file := range named {
		wanted[file.Digest] = true
		if _, ok := v.files.Size(file.Digest); !ok {
			delete(v.held, file.Digest) // it was damaged on the disk
			if len(v.sources(file.Digest)) > 0 {
				if err := v.cache.Fetch(ctx, file); err != nil && ctx.Err() == nil {
					v.s.logger.Warn("a file of a running job is not here", "digest", file.Digest.String(), "error", err)
				}
			}
		}
		if v.held[file.Digest] == nil {
			if release, ok := v.files.Hold(file.Digest); ok {
				v.held[file.Digest] = release
			}
		}
	}
	for digest, release := range v.held {
		if !wanted[digest] {
			release()
			delete(v.held, digest)
		}
	}
}

// note remembers which files another member has. The leader calls it.
func (v *jobFileShare) note(base string, have []vocabulary.Digest, now time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for url, m := range v.sharers {
		if now.Sub(m.at) > forgetSharer {
			delete(v.sharers, url)
		}
	}
	if _, ok := v.sharers[base]; ok || len(v.sharers) < maxSharers {
		v.sharers[base] = sharer{have: have, at: now}
	}
}

// holders returns the URLs of the members that have a file, this one first. The leader calls it.
func (v *jobFileShare) holders(digest vocabulary.Digest) []string {
	var list []string
	if _, ok := v.files.Size(digest); ok {
		list = append(list, v.s.url)
	}
	return append(list, v.sharersOf(digest)...)
}

// sharersOf returns the other members that said lately that they have a file.
func (v *jobFileShare) sharersOf(digest vocabulary.Digest) []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	var list []string
	for url, m := range v.sharers {
		if time.Since(m.at) <= forgetSharer && slices.Contains(m.have, digest) {
			list = append(list, url)
		}
	}
	slices.Sort(list)
	return list
}

// sources returns the members that have a file.
func (v *jobFileShare) sources(digest vocabulary.Digest) (list []jobfiles.Source) {
	urls := v.sharersOf(digest)
	if v.s.leading.Load() == nil {
		v.mu.Lock()
		urls = v.urls[digest]
		v.mu.Unlock()
	}
	for _, url := range urls {
		base, err := identity.BaseURL(url)
		if err == nil && url != v.s.url {
			list = append(list, jobfiles.MemberSource(v.s.nodes, base))
		}
	}
	return list
}

// obtain fetches a file from another member if this one lacks it. The error wraps jobfiles.ErrMissing if no member
// has it.
func (v *jobFileShare) obtain(ctx context.Context, file jobfiles.File) error {
	size, ok := v.files.Size(file.Digest)
	switch {
	case ok && size != file.Bytes:
		return fmt.Errorf("%w: its file has %d bytes, not %d", jobfiles.ErrRequest, size, file.Bytes)
	case ok:
		return nil
	case len(v.sources(file.Digest)) == 0:
		return jobfiles.ErrMissing
	}
	return v.cache.Fetch(ctx, file)
}

// module returns the bytes of a module that this member has, or fetches it from another first.
func (v *jobFileShare) module(ctx context.Context, file jobfiles.File) ([]byte, error) {
	if err := v.obtain(ctx, file); err != nil {
		return nil, err
	}
	return v.files.LoadModule(file)
}

// describe returns the description of a file that this member has, or fetches it from another first.
func (v *jobFileShare) describe(ctx context.Context, file jobfiles.File) ([]byte, error) {
	if err := v.obtain(ctx, file); err != nil {
		return nil, err
	}
	v.mu.Lock()
	known := v.described[file.Digest]
	v.mu.Unlock()
	if known != nil {
		return known, nil
	}
	d, err := v.files.Describe(file.Digest)
	if err != nil {
		return nil, err
	}
	if known, err = d.Encode(); err != nil {
		return nil, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.described) >= maxDescribed {
		clear(v.described)
	}
	v.described[file.Digest] = known
	return known, nil
}
