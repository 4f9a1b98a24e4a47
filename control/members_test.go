package control

import (
	"context"
	"errors"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/api/v1/apiv1connect"
	"github.com/millrace/millrace/host/identity"
)

// electing answers as a member does whose etcd has no leader, a number of times, and then with a list of members.
type electing struct {
	apiv1connect.UnimplementedControlHandler
	left  atomic.Int32 // calls to refuse
	code  connect.Code
	asked atomic.Int32
}

func (e *electing) ListMembers(context.Context, *apiv1.ListMembersRequest) (*apiv1.ListMembersResponse, error) {
	e.asked.Add(1)
	if e.left.Add(-1) >= 0 {
		return nil, connect.NewError(e.code, errors.New("etcd is without a leader for now"))
	}
	return &apiv1.ListMembersResponse{Members: []*apiv1.Member{{Name: "m0", PeerUrls: []string{"http://m0:1"}},
		{Id: "b", PeerUrls: []string{"http://m3:1"}}}}, nil
}

// TestAMemberJoinsDuringAnElection asks members that cannot list the members for a moment, that refuse, and that nobody
// reaches.
func TestAMemberJoinsDuringAnElection(t *testing.T) {
	for _, c := range []struct {
		code  connect.Code
		asked int32
		says  string
	}{{connect.CodeUnavailable, 3, ""}, {connect.CodePermissionDenied, 1, "without a leader"}} {
		e := &electing{code: c.code}
		e.left.Store(2)
		_, handler := apiv1connect.NewControlHandler(e)
		server := httptest.NewServer(handler)
		defer server.Close()
		o := &Options{Name: "m3", Peers: []string{"m3=http://m3:1"}, Join: []string{"http://127.0.0.1:1", server.URL},
			Data: t.TempDir()}
		err := join(patient(t), o)
		assert.Equal(t, c.asked, e.asked.Load())
		if c.says != "" {
			require.ErrorContains(t, err, c.says)
			continue
		}
		require.NoError(t, err)
		assert.Equal(t, []string{"m0=http://m0:1", "m3=http://m3:1"}, o.Peers)
	}
	begin := time.Now()
	o := &Options{Name: "m3", Peers: []string{"m3=http://m3:1"}, Join: []string{"http://127.0.0.1:1"}, Data: t.TempDir()}
	require.ErrorContains(t, join(patient(t), o), "connection refused")
	assert.Less(t, time.Since(begin), joinTime, "nobody is there to wait for")
}

// TestAMemberIsReplacedForGood has the leader of three members die with its disk in the middle of an epoch. The dead
// member is removed, and another member is added and joins. When a second of the first three members dies, the job
// goes on with all acknowledgements.
func TestAMemberIsReplacedForGood(t *testing.T) {
	t.Parallel()
	members, c := startCluster(t, 3)
	defer func() { closeAll(t, members) }()
	n := liveNode(t, c, "n", map[string][]*apiv1.Partition{"d": {partition(t, "p0", 1000)}})
	st := submitRunning(t, c, &apiv1.JobSpec{Name: "job", Plan: &apiv1.PlanOptions{SplitBatches: 5}})
	k := attachedRank(t, c, st.Id, 0)
	require.NoError(t, k.consume(6))
	delivered := get(t, c, "job").Delivered
	require.GreaterOrEqual(t, delivered, uint64(30))

	at := leads(t, members)
	dead := members[at]
	members[at] = nil
	require.NoError(t, kill(dead))
	next := members[(at+1)%3]
	list := func() map[string]*apiv1.Member {
		r, err := next.ListMembers(patient(t), &apiv1.ListMembersRequest{})
		if !assert.NoError(t, err) { // not require, since conditions call this in a goroutine of their own
			return nil
		}
		by := map[string]*apiv1.Member{}
		for _, m := range r.Members {
			by[m.Name] = m
		}
		return by
	}
	require.Len(t, list(), 3)
	for name, m := range list() {
		assert.Equal(t, name != dead.o.Name, m.Answers, name)
		assert.True(t, m.Votes)
	}
	require.Eventually(t, func() bool { // when etcd has noticed that the member is down
		_, err := next.RemoveMember(context.Background(), &apiv1.RemoveMemberRequest{Member: dead.o.Name})
		return err == nil
	}, time.Minute, 100*time.Millisecond)

	o := testOptions(t)
	clustered(&o, "m3", freePeers(t, 1, "http"))
	url := strings.TrimPrefix(o.Peers[0], "m0=")
	o.Peers = []string{"m3=" + url}
	o.Join = []string{"http://127.0.0.1:1", next.URL()} // the member at the first URL is away
	_, err := Start(patient(t), o)
	require.ErrorContains(t, err, "nobody has added "+url)
	_, err = next.AddMember(patient(t), &apiv1.AddMemberRequest{PeerUrl: url})
	require.NoError(t, err)
	clash := o
	clash.Name, clash.Peers = next.o.Name, []string{next.o.Name + "=" + url}
	_, err = Start(patient(t), clash)
	require.ErrorContains(t, err, "is there already")
	joined, err := Start(patient(t), o)
	require.NoError(t, err)
	members[at] = joined
	require.Eventually(t, func() bool { m := list()["m3"]; return m != nil && m.Votes }, time.Minute,
		10*time.Millisecond)

	// The first leader is replaced by now; the second of the first three members ends.
	other := members[(at+2)%3]
	members[(at+2)%3] = nil
	require.NoError(t, kill(other))
	c = newClient(next, joined)
	k.c = c
	n.beats(t, c)
	await(t, c, "n")
	assert.GreaterOrEqual(t, get(t, c, "job").Delivered, delivered)
	require.NoError(t, k.consume(0))
	until(t, c, "job", "done")
	assert.Len(t, k.got, 100)

	// The member is started again with its files. It knows the other members and asks none of them.
	members[at] = nil
	require.NoError(t, joined.Close())
	o.Join = []string{"http://127.0.0.1:1"}
	members[at], err = Start(patient(t), o)
	require.NoError(t, err)
}

func TestMembersThatCannotBeChanged(t *testing.T) {
	t.Parallel()
	s, c := start(t, testOptions(t))
	k := c.members[0]
	r, err := k.ListMembers(patient(t), &apiv1.ListMembersRequest{})
	require.NoError(t, err)
	require.Len(t, r.Members, 1)
	assert.True(t, r.Members[0].Votes)
	for _, bad := range []string{"", "nobody", r.Members[0].Name, r.Members[0].Id} {
		_, err = k.RemoveMember(patient(t), &apiv1.RemoveMemberRequest{Member: bad})
		assert.Equal(t, connect.CodeFailedPrecondition, connect.CodeOf(err), "%q: %v", bad, err)
	}
	_, err = k.AddMember(patient(t), &apiv1.AddMemberRequest{PeerUrl: "http://127.0.0.1:9"})
	assert.Equal(t, connect.CodeFailedPrecondition, connect.CodeOf(err))
	assert.ErrorContains(t, err, "was started alone")

	for name, change := range map[string]func(*Options){
		"this member is called": func(o *Options) { o.Name = "m9" },
		"connection refused":    func(o *Options) { o.Join = []string{"http://127.0.0.1:1"} },
		"ftp":                   func(o *Options) { o.Join = []string{"ftp://x"} },
		"nobody has added":      func(o *Options) {},
	} {
		o := testOptions(t)
		o.Name, o.Peers, o.Join = "m1", []string{"m1=http://127.0.0.1:9"}, []string{s.URL()}
		change(&o)
		_, err := Start(patient(t), o)
		assert.ErrorContains(t, err, name)
	}
}

// TestWhoMayChangeMembers: operators may. Members may only list the members, because a member that joins has to.
func TestWhoMayChangeMembers(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	o := testOptions(t)
	o.Identity = a.issue("control", "m0")
	s, err := Start(patient(t), o)
	require.NoError(t, err)
	defer func() { assert.NoError(t, s.Close()) }()
	for role, may := range map[string][2]bool{"operator": {true, true}, "control": {true, false}, "node": {},
		"launcher": {}} {
		k := a.client(s, identity.Role(role), role)
		for i, do := range []func(context.Context, apiv1connect.ControlClient) error{
			func(ctx context.Context, k apiv1connect.ControlClient) error {
				_, err := k.ListMembers(ctx, &apiv1.ListMembersRequest{})
				return err
			},
			func(ctx context.Context, k apiv1connect.ControlClient) error {
				_, err := k.RemoveMember(ctx, &apiv1.RemoveMemberRequest{Member: "nobody"})
				return err
			},
		} {
			err := do(patient(t), k)
			assert.Equal(t, !may[i], connect.CodeOf(err) == connect.CodePermissionDenied, "%s, call %d: %v", role, i,
				err)
		}
	}
}

// TestAMemberAloneAnswers although no other process can connect to it.
func TestClosedTwiceEndsOnce(t *testing.T) {
	s, _ := start(t, testOptions(t))
	require.NoError(t, s.Close())
	require.NoError(t, s.Close())
}

func TestAMemberAloneAnswers(t *testing.T) {
	t.Parallel()
	s, _ := start(t, testOptions(t))
	r, err := s.ListMembers(patient(t), &apiv1.ListMembersRequest{})
	require.NoError(t, err)
	require.Len(t, r.Members, 1)
	assert.True(t, r.Members[0].Answers)
	assert.True(t, r.Members[0].Votes)
}
