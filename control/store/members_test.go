package store

import (
	"context"
	"fmt"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// freeURL returns a peer URL that was free a moment ago.
func freeURL(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	return "http://" + l.Addr().String()
}

// joining returns the options of a member that was added.
func joining(t *testing.T, of *Store, name, at string) Options {
	list, err := of.Members(patient(t))
	require.NoError(t, err)
	o := Options{Data: t.TempDir(), Name: name, Join: true}
	for _, m := range list {
		who := m.Name
		if slices.Contains(m.PeerURLs, at) {
			who = name
		}
		o.Peers = append(o.Peers, who+"="+m.PeerURLs[0])
	}
	return o
}

// promoted waits until a member has a vote.
func promoted(t *testing.T, s *Store, name string) {
	t.Helper()
	for ctx := patient(t); ; time.Sleep(10 * time.Millisecond) {
		list, err := s.Promote(ctx)
		require.NoError(t, err)
		if len(list) > 0 {
			assert.Equal(t, name, list[0].Name)
			assert.True(t, list[0].Votes)
			return
		}
	}
}

// TestAMemberIsReplaced: one of three members is lost for good, with its disk. Another member takes its place, and then
// a second member may be lost.
func TestAMemberIsReplaced(t *testing.T) {
	t.Parallel()
	members := cluster(t, 3)
	term, err := members[1].Campaign(patient(t), "one")
	require.NoError(t, err)
	require.NoError(t, term.Commit(patient(t), Put("k", []byte("kept"))))
	require.NoError(t, members[0].Close())

	at := freeURL(t)
	for _, bad := range []string{"", "x", "http://host", "https://127.0.0.1:1", "http://127.0.0.1:1/path"} {
		_, err := members[1].AddMember(patient(t), bad)
		assert.ErrorIs(t, err, ErrMembers, bad)
	}
	_, err = members[1].RemoveMember(patient(t), "m7")
	assert.ErrorIs(t, err, ErrMembers)
	_, err = members[1].RemoveMember(patient(t), "m1")
	assert.ErrorIs(t, err, ErrMembers, "of the two that are up neither can be spared")
	require.Eventually(t, func() bool { // when etcd has noticed that it is down
		gone, err := members[1].RemoveMember(context.Background(), "m0")
		return err == nil && gone.Name == "m0"
	}, time.Minute, 100*time.Millisecond)
	added, err := members[2].AddMember(patient(t), at)
	require.NoError(t, err)
	assert.Equal(t, []string{at}, added.PeerURLs)
	assert.False(t, added.Votes)
	assert.Empty(t, added.Name)
	_, err = members[2].AddMember(patient(t), at)
	assert.ErrorContains(t, err, "is there already")

	o := joining(t, members[1], "m3", at)
	assert.False(t, Founded(o.Data))
	next := open(t, o)
	assert.True(t, Founded(o.Data))
	promoted(t, members[1], "m3")
	h, err := members[1].Healthy(patient(t))
	require.NoError(t, err)
	assert.Equal(t, 3, h.Members)

	require.NoError(t, term.Resign(patient(t)))
	require.NoError(t, members[1].Close())
	term, err = next.Campaign(patient(t), "three")
	require.NoError(t, err)
	value, _, err := term.Get(patient(t), "k")
	require.NoError(t, err)
	assert.Equal(t, "kept", string(value))
	require.NoError(t, term.Commit(patient(t), Put("k", []byte("on"))))
	require.NoError(t, members[2].Close())
	require.NoError(t, next.Close())
}

// TestAMemberAloneGrows: a member that ran alone is started again at a URL that others reach, and accepts a member that
// is started afterwards. A member that is removed ends.
func TestAMemberAloneGrows(t *testing.T) {
	t.Parallel()
	o := Options{Data: t.TempDir()}
	s := open(t, o)
	_, err := s.AddMember(patient(t), freeURL(t))
	assert.ErrorContains(t, err, "was started alone")
	_, err = s.RemoveMember(patient(t), "millrace")
	assert.ErrorContains(t, err, "the only one")
	term, err := s.Campaign(patient(t), "alone")
	require.NoError(t, err)
	require.NoError(t, term.Commit(patient(t), Put("k", []byte("kept"))))
	require.NoError(t, s.Close())

	o.Name, o.Peers = "m0", []string{"m0=" + freeURL(t)}
	s = open(t, o)
	at := freeURL(t)
	_, err = s.AddMember(patient(t), at)
	require.NoError(t, err)
	next := open(t, joining(t, s, "m1", at))
	promoted(t, s, "m1")
	value, err := next.client.Get(patient(t), next.key("k"))
	require.NoError(t, err)
	assert.Equal(t, "kept", string(value.Kvs[0].Value))
	list, err := next.Members(patient(t))
	require.NoError(t, err)
	assert.Equal(t, []string{"m0", "m1"}, []string{list[0].Name, list[1].Name})

	assert.Eventually(t, func() bool { // when they have been in touch for as long as etcd wants
		_, err := s.RemoveMember(patient(t), fmt.Sprintf("%x", list[1].ID))
		return err == nil
	}, time.Minute, 100*time.Millisecond)
	select {
	case <-next.Stopped():
	case <-time.After(time.Minute):
		t.Error("it does not notice")
	}
	require.NoError(t, next.Close())
	_, err = s.client.Put(patient(t), "k", "alone again")
	assert.NoError(t, err)
	require.NoError(t, s.Close())
}

// TestMembersOfAnEtcdElsewhere: only its operator changes the members of an etcd that runs elsewhere.
func TestMembersOfAnEtcdElsewhere(t *testing.T) {
	s := &Store{o: Options{External: []string{"http://etcd:2379"}}}
	_, err := s.AddMember(context.Background(), "http://a:1")
	assert.ErrorIs(t, err, ErrMembers)
	_, err = s.RemoveMember(context.Background(), "a")
	assert.ErrorContains(t, err, "http://etcd:2379")
	assert.Nil(t, s.Stopped())
}

// electing is a cluster that elects a leader while it is asked for the first times.
type electing struct {
	clientv3.Cluster
	left int
}

func (e *electing) MemberList(ctx context.Context, opts ...clientv3.OpOption) (*clientv3.MemberListResponse, error) {
	if e.left--; e.left >= 0 {
		return nil, rpctypes.ErrLeaderChanged
	}
	return e.Cluster.MemberList(ctx, opts...)
}

// TestMembersWaitForALeader: an election while the members are listed is waited for, for as long as the caller waits.
func TestMembersWaitForALeader(t *testing.T) {
	t.Parallel()
	s := open(t, Options{Data: t.TempDir()})
	defer s.Close()
	s.client.Cluster = &electing{s.client.Cluster, 2}
	list, err := s.Members(patient(t))
	require.NoError(t, err)
	assert.Len(t, list, 1)
	s.client.Cluster = &electing{s.client.Cluster, 1 << 30}
	brief, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	_, err = s.Members(brief)
	assert.ErrorIs(t, err, ErrAway)
}
