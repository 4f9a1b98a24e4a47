package store

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/millrace/millrace/internal/wait"
)

// ErrMembers says that the members cannot be changed in that way.
var ErrMembers = errors.New("members of the control plane")

// Member is a member of the embedded etcd.
type Member struct {
	ID       uint64
	Name     string // empty until it has been started
	PeerURLs []string
	Votes    bool // false: it has been added and has not caught up yet
	Self     bool // the embedded one of this process
}

// electionPause is how long to wait before an etcd without a leader is asked again.
const electionPause = 50 * time.Millisecond

// lonely is the peer URL of a member that was started alone. No other member can reach the member there.
const lonely = "localhost:0"

// Members lists the members. It needs a majority of them. It asks again while they elect a leader: members that start
// together, or that have lost one of them, may elect several leaders one after the other.
func (s *Store) Members(ctx context.Context) ([]Member, error) {
	r, err := s.client.MemberList(ctx)
	for errors.Is(words(err), ErrAway) {
		if wait.Sleep(ctx, electionPause) != nil {
			return nil, fmt.Errorf("list members: %w", words(err))
		}
		var again error
		if r, again = s.client.MemberList(ctx); again == nil || ctx.Err() == nil {
			err = again
		}
	}
	if err != nil {
		return nil, fmt.Errorf("list members: %w", words(err))
	}
	list := make([]Member, len(r.Members))
	for i, m := range r.Members {
		list[i] = member(m)
		list[i].Self = s.server != nil && m.ID == uint64(s.server.Server.MemberID())
	}
	slices.SortFunc(list, func(a, b Member) int { return strings.Compare(a.Name+a.PeerURLs[0], b.Name+b.PeerURLs[0]) })
	return list, nil
}

func member(m *etcdserverpb.Member) Member {
	v := Member{ID: m.ID, Name: m.Name, PeerURLs: m.PeerURLs, Votes: !m.IsLearner}
	if len(v.PeerURLs) == 0 {
		v.PeerURLs = []string{""}
	}
	return v
}

// changeable returns an error if members cannot be added and removed.
func (s *Store) changeable() error {
	if s.server == nil {
		return fmt.Errorf("%w: etcd runs elsewhere (%s): change its members there", ErrMembers,
			strings.Join(s.o.External, ", "))
	}
	return nil
}

// AddMember adds a member that will be reached at the URL. The member has no vote, and so cannot cost the others their
// majority, until Promote finds that it has caught up. An error wraps ErrMembers if another attempt would fail, too.
func (s *Store) AddMember(ctx context.Context, peerURL string) (Member, error) {
	fail := func(err error) (Member, error) { return Member{}, fmt.Errorf("add member %s: %w", peerURL, err) }
	if err := s.changeable(); err != nil {
		return fail(err)
	}
	u, err := url.Parse(peerURL)
	if err != nil || u.Host == "" || u.Port() == "" || u.Scheme != "http" && u.Scheme != "https" || strings.Trim(u.Path,
		"/") != "" {
		return fail(fmt.Errorf("%w: want http://HOST:PORT or https://HOST:PORT", ErrMembers))
	}
	if secure := s.o.Cert != ""; secure != (u.Scheme == "https") {
		return fail(fmt.Errorf("%w: this one has TLS %t: its peers' URLs begin accordingly", ErrMembers, secure))
	}
	list, err := s.Members(ctx)
	if err != nil {
		return fail(err)
	}
	for _, m := range list {
		switch {
		case slices.ContainsFunc(m.PeerURLs, func(p string) bool { return strings.HasSuffix(p, "//"+lonely) }):
			return fail(fmt.Errorf("%w: the one member there is was started alone, and others cannot reach it: start "+
				"it again with --name NAME --peers NAME=URL", ErrMembers))
		case slices.Contains(m.PeerURLs, peerURL):
			return fail(fmt.Errorf("%w: %s (%x) is there already: remove it first if it is to be replaced", ErrMembers,
				m.Name, m.ID))
		}
	}
	for begin := time.Now(); ; {
		r, err := s.client.MemberAddAsLearner(ctx, []string{peerURL})
		if err == nil {
			return member(r.Member), nil
		}
		if !errors.Is(err, rpctypes.ErrUnhealthy) || time.Since(begin) > settled {
			return fail(refused(err))
		}
		if wait.Sleep(ctx, s.retry()) != nil {
			return fail(refused(err))
		}
	}
}

// settled is a little more than the time for which etcd demands contact between its voting members before it accepts
// another member.
const settled = 6 * time.Second

// RemoveMember removes a member for good, by its name, its id, or one of its URLs.
func (s *Store) RemoveMember(ctx context.Context, which string) (Member, error) {
	fail := func(err error) (Member, error) { return Member{}, fmt.Errorf("remove member %s: %w", which, err) }
	if err := s.changeable(); err != nil {
		return fail(err)
	}
	list, err := s.Members(ctx)
	if err != nil {
		return fail(err)
	}
	var found []Member
	voters := 0
	for _, m := range list {
		if m.Votes {
			voters++
		}
		if which != "" && (m.Name == which || strconv.FormatUint(m.ID, 16) == which || slices.Contains(m.PeerURLs,
			which)) {
			found = append(found, m)
		}
	}
	switch {
	case len(found) == 0:
		return fail(fmt.Errorf("%w: there is none of this name, id or URL", ErrMembers))
	case len(found) > 1:
		return fail(fmt.Errorf("%w: %d are called so: name it by its id", ErrMembers, len(found)))
	case found[0].Votes && voters == 1:
		return fail(fmt.Errorf("%w: it is the only one that votes", ErrMembers))
	}
	if _, err := s.client.MemberRemove(ctx, found[0].ID); err != nil {
		return fail(refused(err))
	}
	return found[0], nil
}

// refused wraps the error of etcd for a change that etcd refuses.
func refused(err error) error {
	for _, r := range []error{rpctypes.ErrMemberNotEnoughStarted, rpctypes.ErrUnhealthy, rpctypes.ErrPeerURLExist,
		rpctypes.ErrMemberBadURLs, rpctypes.ErrTooManyLearners, rpctypes.ErrMemberNotFound, rpctypes.ErrMemberExist} {
		if errors.Is(err, r) {
			return fmt.Errorf("%w: %w", ErrMembers, err)
		}
	}
	return words(err)
}

// Promote gives a vote to the added members that have caught up, and returns them. A later call promotes the others.
func (s *Store) Promote(ctx context.Context) ([]Member, error) {
	if s.server == nil {
		return nil, nil
	}
	list, err := s.Members(ctx)
	if err != nil {
		return nil, err
	}
	var promoted []Member
	for _, m := range list {
		if m.Votes || m.Name == "" {
			continue
		}
		switch _, err := s.client.MemberPromote(ctx, m.ID); {
		case err == nil:
			m.Votes = true
			promoted = append(promoted, m)
		case errors.Is(err, rpctypes.ErrMemberLearnerNotReady), errors.Is(err, rpctypes.ErrMemberNotLearner):
		default:
			return promoted, fmt.Errorf("promote member %s: %w", m.Name, words(err))
		}
	}
	return promoted, nil
}

// reachable publishes the peer URL of a member that was started alone and now has one.
func (s *Store) reachable(ctx context.Context) error {
	if s.server == nil || len(s.o.Peers) == 0 {
		return nil
	}
	_, own, err := s.o.peers()
	if err != nil {
		return err
	}
	id := uint64(s.server.Server.MemberID())
	list, err := s.Members(ctx)
	if err != nil {
		return err
	}
	for _, m := range list {
		if m.ID == id && slices.ContainsFunc(m.PeerURLs, func(p string) bool {
			return strings.HasSuffix(p,
				"//"+lonely)
		}) {
			if _, err := s.client.MemberUpdate(ctx, id, []string{own.String()}); err != nil {
				return fmt.Errorf("say that this member is reached at %s: %w", own.String(), words(err))
			}
		}
	}
	return nil
}

// Founded reports whether a folder holds the data of an embedded member. Such a member knows the other members.
func Founded(data string) bool {
	_, err := os.Stat(filepath.Join(data, "etcd", "member", "wal"))
	return err == nil
}

// Stopped returns a channel that is closed when the embedded etcd has ended by itself, because it was removed or
// failed. It returns nil if etcd runs elsewhere.
func (s *Store) Stopped() <-chan struct{} {
	if s.server == nil {
		return nil
	}
	return s.server.Server.StopNotify()
}
