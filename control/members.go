package control

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"connectrpc.com/connect"

	"github.com/millrace/millrace/control/guard"
	"github.com/millrace/millrace/control/store"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/api/v1/apiv1connect"
	"github.com/millrace/millrace/host/identity"
	"github.com/millrace/millrace/internal/wait"
)

// The longest times of calls about members, and of connections to members.
const (
	membersTime = 10 * time.Second
	addTime     = 20 * time.Second
	reachTime   = time.Second
)

// ListMembers implements the service. A member that reaches a majority answers, even when no member leads.
func (s *Server) ListMembers(ctx context.Context, _ *apiv1.ListMembersRequest) (*apiv1.ListMembersResponse, error) {
	asking, cancel := context.WithTimeout(ctx, membersTime)
	defer cancel()
	list, err := s.store.Members(asking)
	if err != nil {
		return nil, memberError(err)
	}
	resp := &apiv1.ListMembersResponse{}
	var wg sync.WaitGroup
	for _, m := range list {
		w := wireMember(m)
		resp.Members = append(resp.Members, w)
		wg.Go(func() {
			// A member that was started alone has no URL at which a connection could be tried.
			w.Answers = m.Self || slices.ContainsFunc(m.PeerURLs, func(u string) bool {
				return tryConnect(ctx, u,
					reachTime) == nil
			})
		})
	}
	wg.Wait()
	return resp, nil
}

// AddMember implements the service.
func (s *Server) AddMember(ctx context.Context, req *apiv1.AddMemberRequest) (*apiv1.AddMemberResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, addTime)
	defer cancel()
	m, err := s.store.AddMember(ctx, req.PeerUrl)
	if err != nil {
		return nil, memberError(err)
	}
	s.logger.Warn("a member was added", "peer", req.PeerUrl, "id", strconv.FormatUint(m.ID, 16), "by",
		guard.Peer(ctx).String())
	return &apiv1.AddMemberResponse{Member: wireMember(m)}, nil
}

// RemoveMember implements the service.
func (s *Server) RemoveMember(ctx context.Context, req *apiv1.RemoveMemberRequest) (*apiv1.RemoveMemberResponse,
	error) {
	ctx, cancel := context.WithTimeout(ctx, membersTime)
	defer cancel()
	m, err := s.store.RemoveMember(ctx, req.Member)
	if err != nil {
		return nil, memberError(err)
	}
	s.logger.Warn("a member was removed", "member", m.Name, "id", strconv.FormatUint(m.ID, 16), "by",
		guard.Peer(ctx).String())
	return &apiv1.RemoveMemberResponse{}, nil
}

func wireMember(m store.Member) *apiv1.Member {
	return &apiv1.Member{Id: strconv.FormatUint(m.ID, 16), Name: m.Name, PeerUrls: m.PeerURLs, Votes: m.Votes}
}

// memberError adds the code to an error of a call about members.
func memberError(err error) error {
	code := connect.CodeUnavailable
	switch {
	case errors.Is(err, store.ErrMembers):
		code = connect.CodeFailedPrecondition
	case errors.Is(err, store.ErrNoSpace):
		code = connect.CodeResourceExhausted
	case errors.Is(err, context.DeadlineExceeded):
		err = fmt.Errorf("no majority of the members answers: %w", err)
	}
	return connect.NewError(code, err)
}

// promote gives added members their vote when they have caught up, as long as this member leads.
func (s *Server) promote(ctx context.Context) {
	for wait.Sleep(ctx, s.o.LeaderTTL/5) == nil {
		if !s.Leads() {
			continue
		}
		asking, cancel := context.WithTimeout(ctx, membersTime)
		list, err := s.store.Promote(asking)
		cancel()
		for _, m := range list {
			s.logger.Info("a member that was added has caught up and votes", "member", m.Name, "id",
				strconv.FormatUint(m.ID, 16))
		}
		if err != nil && ctx.Err() == nil {
			s.logger.Warn("give a new member its vote", "error", err)
		}
	}
}

// join asks the control plane, to which this member was added, for the list of members, and stores the list in
// Options.Peers. A member that has been started before knows the list.
func join(ctx context.Context, o *Options) error {
	if len(o.Join) == 0 || store.Founded(o.Data) {
		return nil
	}
	own := ""
	for _, p := range o.Peers {
		if name, at, ok := strings.Cut(p, "="); ok && name == o.Name {
			own = at
		}
	}
	if own == "" {
		return fmt.Errorf("join %s: this member is called %q: name it, and say among the peers at which URL the "+
			"others reach it", strings.Join(o.Join, ", "), o.Name)
	}
	c, err := identity.HTTPClientOf(o.Identity, identity.AcceptControl)
	if err != nil {
		return err
	}
	defer c.CloseIdleConnections()
	for begin := time.Now(); ; {
		peers, away, err := askForPeers(ctx, c, o, own)
		if err == nil {
			o.Peers = peers
			return nil
		}
		if !away || time.Since(begin) > joinTime || wait.Sleep(ctx, joinPause) != nil {
			return err
		}
	}
}

// joinTime is how long a member that joins waits for members that answer and whose etcd is electing a leader. It asks
// again after a pause.
const (
	joinTime  = 10 * time.Second
	joinPause = 200 * time.Millisecond
)

// askForPeers asks the members at Options.Join, one after the other, for the list of members. away says that none had
// the list, and that one is without it for now.
func askForPeers(ctx context.Context, c *http.Client, o *Options, own string) (peers []string, away bool, err error) {
	var errs []error
	for _, at := range o.Join {
		base, err := identity.BaseURL(at)
		if err != nil {
			return nil, false, fmt.Errorf("join %s: %w", at, err)
		}
		asking, cancel := context.WithTimeout(ctx, membersTime+reachTime)
		r, err := apiv1connect.NewControlClient(c, base, connect.WithReadMaxBytes(maxRequest)).ListMembers(asking,
			&apiv1.ListMembersRequest{})
		cancel()
		if err != nil {
			var answer *connect.Error
			if errors.As(err, &answer) {
				away = away || answer.Code() == connect.CodeUnavailable && connect.IsWireError(answer)
			}
			errs = append(errs, fmt.Errorf("join %s: %w", at, err))
			continue
		}
		peers, err = peersOf(r.Members, o.Name, own)
		if err != nil {
			return nil, false, fmt.Errorf("join %s: %w", at, err)
		}
		return peers, false, nil
	}
	return nil, away, errors.Join(errs...)
}

// peersOf lists members as NAME=URL, with this member's name at its URL.
func peersOf(members []*apiv1.Member, name, own string) ([]string, error) {
	var peers []string
	found := false
	for _, m := range members {
		who := m.Name
		switch {
		case slices.Contains(m.PeerUrls, own):
			who, found = name, true
		case who == name:
			return nil, fmt.Errorf("a member called %s is there already, at %s: remove it, or choose another name",
				name, strings.Join(m.PeerUrls, ", "))
		case who == "":
			who = "added-" + m.Id // not started yet; only its URL matters
		}
		for _, u := range m.PeerUrls {
			peers = append(peers, who+"="+u)
		}
	}
	if !found {
		return nil, fmt.Errorf("nobody has added %s: millrace control members add %s", own, own)
	}
	return peers, nil
}
