package endtoend

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/identity"
	"github.com/millrace/millrace/host/node"
	"github.com/millrace/millrace/trainmgr/remote"
)

// authority issues identities for one test, whose servers are on loopback.
type authority string

func newAuthority(t testing.TB) authority {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, identity.InitAuthority(dir, "test"))
	return authority(dir)
}

func (a authority) issue(t testing.TB, role identity.Role, name string) identity.Options {
	t.Helper()
	o := identity.Options{Cert: filepath.Join(string(a), name+".pem"), Key: filepath.Join(string(a), name+".key"),
		CA: filepath.Join(string(a), identity.AuthorityCert)}
	require.NoError(t, identity.Issue(string(a), identity.Request{Identity: identity.Identity{Role: role, Name: name},
		Hosts: []string{"127.0.0.1"}}, o.Cert, o.Key))
	return o
}

// dial returns a client with an identity, whose patience is longer than any test.
func (a authority) dial(t testing.TB, url string, role identity.Role, name string) *remote.Client {
	t.Helper()
	c, err := remote.Dial(remote.Options{Control: []string{url}, Identity: a.issue(t, role, name), Patience: time.Hour,
		Logger: logger()})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, c.Close()) })
	return c
}

// TestOneOwnerLeavesRoomForOthers: launchers of one owner get half of the job slots and of the bytes of vocabularies,
// and another owner's launcher gets the rest. The clients' patience is an hour: a client that asked again after a
// refusal would end with the test's time, and not with the control plane's answer.
func TestOneOwnerLeavesRoomForOthers(t *testing.T) {
	data := files(t, 600)
	ofAds, _ := buildVocabularies(t, lookupDocument, data, "items", "tags")
	other, _ := buildVocabularies(t, lookupDocument, files(t, 500), "items")
	room := int64(1) // for the vocabularies of ads
	for _, path := range ofAds {
		info, err := os.Stat(path)
		require.NoError(t, err)
		room += info.Size()
	}
	a := newAuthority(t)
	o := controlOptions(t.TempDir())
	o.Identity, o.MaxJobs = a.issue(t, identity.Control, "m0"), 5
	o.VocabularyBytes = 2 * room
	s := startControl(t, o)
	nodeID := a.issue(t, identity.Node, "n0")
	config := nodeConfig("n0", []string{s.URL()}, makeDrive(t, "mem", data))
	config.TLS = node.TLSConfig{Cert: nodeID.Cert, Key: nodeID.Key, CA: nodeID.CA}
	runNode(t, config)
	ads := a.dial(t, s.URL(), identity.Launcher, "ads.host-0")
	sibling := a.dial(t, s.URL(), identity.Launcher, "ads.host-1")
	news := a.dial(t, s.URL(), identity.Launcher, "news")
	operator := a.dial(t, s.URL(), identity.Operator, "ann")
	awaitPartitions(t, operator, map[string]bool{"n0": true}, len(data))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	refused := func(err error, says ...string) {
		t.Helper()
		require.Error(t, err)
		assert.Equal(t, connect.CodeResourceExhausted, connect.CodeOf(err), "%v", err)
		assert.NotErrorIs(t, err, remote.ErrUnreachable)
		for _, text := range says {
			assert.ErrorContains(t, err, text)
		}
	}
	submit := func(c *remote.Client, owner, name string) error {
		_, err := c.SubmitFor(ctx, owner, &apiv1.JobSpec{Name: name, Pipeline: []byte(document), Plan: plan()})
		return err
	}

	st, err := ads.SubmitWith(ctx, "", &apiv1.JobSpec{Name: "lookups", Pipeline: []byte(lookupDocument), Plan: plan()},
		looksUp(ofAds))
	require.NoError(t, err)
	awaitJob(ctx, t, ads, st.Id, "running", func(s *apiv1.JobStatus) bool { return s.State == "running" })
	refused(ads.PutVocabulary(ctx, other["items"]), "the same owner has", "until a job of the owner ends")
	refused(sibling.PutVocabulary(ctx, other["items"]))
	require.NoError(t, news.PutVocabulary(ctx, other["items"]))

	require.NoError(t, submit(sibling, "", "second"))
	for _, c := range []*remote.Client{ads, sibling} {
		refused(submit(c, "", "third"), "owner ads has 2 jobs", "of the control plane's 5", "cancel one")
	}
	require.NoError(t, submit(news, "", "other"))
	require.NoError(t, submit(operator, "", "open"), "operators have no share")
	require.NoError(t, submit(operator, "ads", "given"))
	refused(submit(operator, "", "sixth"), "has 5 jobs", "--max-jobs")
	refused(submit(news, "", "sixth"), "has 5 jobs")
	require.NoError(t, ads.Cancel(ctx, "given"))
	refused(submit(ads, "", "third"), "owner ads has 2 jobs")
	require.NoError(t, submit(news, "", "sixth"))
}
