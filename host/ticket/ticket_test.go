package ticket

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/identity"
)

// clock is a test's.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

var (
	digest = [32]byte{1, 2, 3}
	ads    = identity.Identity{Role: identity.Launcher, Name: "ads.host-1"}
	begin  = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
)

// leaderTime is the leader's clock when the node's is at begin: they are apart.
const leaderTime = 1e9

func good() *apiv1.Ticket {
	return &apiv1.Ticket{
		Node: "n0", Incarnation: "i0", Drive: "d0", Digest: digest[:], Epoch: 2, From: 16, To: 32, Lease: 7,
		Job: "job-1", Rank: 3, SessionFence: 5, SessionSeq: 9,
		Holder: "launcher/ads.host-1", Owner: "ads", ExpiresSeconds: leaderTime + 600,
	}
}

func ask(number uint64) *Ask { return &Ask{Job: digest, Epoch: 2, Drive: "d0", Number: number} }

// world is a leader's signer and a node's verifier that have met.
type world struct {
	t *testing.T
	*clock
	*Signer
	*Verifier
}

func meet(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, clock: &clock{now: begin}}
	var err error
	w.Signer, err = NewSigner(5)
	require.NoError(t, err)
	w.Verifier = NewVerifier("n0", "i0", w.clock.Now)
	w.Learn(w.beat())
	return w
}

// beat is the leader's answer.
func (w *world) beat(returned ...uint64) *apiv1.HeartbeatResponse {
	return &apiv1.HeartbeatResponse{TicketKey: w.Key(), TicketsRequired: true, Returned: returned,
		ClockSeconds: leaderTime + w.clock.Now().Sub(begin).Seconds()}
}

// header is a ticket as it is shown, signed.
func (w *world) header(change func(*apiv1.Ticket)) string {
	w.t.Helper()
	t := good()
	if change != nil {
		change(t)
	}
	b, err := w.Sign(t)
	require.NoError(w.t, err)
	return apiv1.EncodeTicket(b)
}

// TestATicketIsGoodForItsLeaseAlone checks both ends of a ticket's range, and everything that it names.
func TestATicketIsGoodForItsLeaseAlone(t *testing.T) {
	w := meet(t)
	h := w.header(nil)
	for range 2 { // verified, and known
		for n := uint64(16); n < 32; n++ {
			got, err := w.Check(h, ads, ask(n))
			require.NoError(t, err)
			assert.Equal(t, "ads", got.Owner)
		}
		for what, a := range map[string]*Ask{
			"the one before": ask(15), "the one after": ask(32),
			"another job":   {Job: [32]byte{9}, Epoch: 2, Drive: "d0", Number: 16},
			"another epoch": {Job: digest, Epoch: 1, Drive: "d0", Number: 16},
			"another drive": {Job: digest, Epoch: 2, Drive: "d1", Number: 16},
		} {
			_, err := w.Check(h, ads, a)
			assert.ErrorIs(t, err, ErrVoid, what)
			assert.ErrorContains(t, err, "lease 7", what)
		}
	}
}

// TestAHostileLaunchersTickets checks that a hostile launcher gets nothing, whatever it shows.
func TestAHostileLaunchersTickets(t *testing.T) {
	w := meet(t)
	own, err := NewSigner(5)
	require.NoError(t, err)
	forged, err := own.Sign(good())
	require.NoError(t, err)
	stranger := identity.Identity{Role: identity.Launcher, Name: "news"}
	for name, c := range map[string]struct {
		header string
		peer   identity.Identity
		err    error
		says   string
	}{
		"no ticket":        {header: "", err: ErrNone, says: "has no Millrace-Ticket header"},
		"noise":            {header: "AAAA", err: ErrNone},
		"no base64":        {header: "{}", err: ErrNone, says: "base64"},
		"a very long one":  {header: strings.Repeat("A", 1<<20), err: ErrNone, says: "too long"},
		"signed by itself": {header: apiv1.EncodeTicket(forged), err: ErrNone, says: "no leader"},
		"another's": {header: w.header(nil), peer: stranger, err: ErrVoid,
			says: "launcher/ads.host-1's, and launcher/news shows it"},
		"an operator shows a launcher's": {header: w.header(nil),
			peer: identity.Identity{Role: identity.Operator, Name: "ads.host-1"}, err: ErrVoid},
		"of another node": {header: w.header(func(t *apiv1.Ticket) { t.Node = "n1" }), err: ErrVoid,
			says: "this is n0"},
		"of the node before it restarted": {header: w.header(func(t *apiv1.Ticket) { t.Incarnation = "i9" }),
			err: ErrVoid},
		"expired": {header: w.header(func(t *apiv1.Ticket) { t.ExpiresSeconds = leaderTime - 1 }), err: ErrVoid,
			says: "expired"},
		"that never was good": {header: w.header(func(t *apiv1.Ticket) { t.ExpiresSeconds = 0 }),
			err: ErrVoid, says: "expired"},
	} {
		peer := c.peer
		if peer == (identity.Identity{}) {
			peer = ads
		}
		for range 2 {
			_, err := w.Check(c.header, peer, ask(16))
			assert.ErrorIs(t, err, c.err, name)
			assert.ErrorContains(t, err, c.says, name)
		}
	}
	// Over a unix socket no peer shows a certificate: only the ticket counts.
	_, err = w.Check(w.header(nil), identity.Identity{}, ask(16))
	assert.NoError(t, err)
	_, err = w.Check(apiv1.EncodeTicket(forged), identity.Identity{}, ask(16))
	assert.ErrorIs(t, err, ErrNone)
}

// TestEveryBitOfATicketCounts checks that no bit of a ticket can be changed.
func TestEveryBitOfATicketCounts(t *testing.T) {
	w := meet(t)
	b, err := w.Sign(good())
	require.NoError(t, err)
	for i := range b {
		for bit := range 8 {
			changed := bytes.Clone(b)
			changed[i] ^= 1 << bit
			got, err := w.Check(apiv1.EncodeTicket(changed), ads, ask(16))
			if err == nil { // of what surrounds the ticket, and is passed over
				assert.True(t, proto.Equal(got, mustRead(t, apiv1.EncodeTicket(b))), "byte %d, bit %d", i, bit)
			}
		}
	}
}

func mustRead(t *testing.T, header string) *apiv1.Ticket {
	got, _, _, err := decode(header)
	require.NoError(t, err)
	return got
}

// TestATicketIsVoidWhenItsLeaseComesBack checks that a replayed ticket is refused from the next heartbeat on.
func TestATicketIsVoidWhenItsLeaseComesBack(t *testing.T) {
	w := meet(t)
	h, other := w.header(nil), w.header(func(t *apiv1.Ticket) { t.Lease = 8 })
	for _, x := range []string{h, other} {
		_, err := w.Check(x, ads, ask(16))
		require.NoError(t, err)
	}
	w.Learn(w.beat(7))
	_, err := w.Check(h, ads, ask(16))
	assert.ErrorIs(t, err, ErrVoid)
	assert.ErrorContains(t, err, "lease 7: the lease has come back")
	_, err = w.Check(other, ads, ask(16))
	assert.NoError(t, err)
	w.Learn(w.beat())
	_, err = w.Check(h, ads, ask(16))
	assert.ErrorIs(t, err, ErrVoid, "it stays void")
}

// TestALaterSessionVoidsTheEarlierOnes checks that a later session voids earlier ones of the same rank of the same job,
// by fence and then by number.
func TestALaterSessionVoidsTheEarlierOnes(t *testing.T) {
	w := meet(t)
	of := func(job string, rank uint32, fence, seq uint64) string {
		return w.header(func(t *apiv1.Ticket) { t.Job, t.Rank, t.SessionFence, t.SessionSeq = job, rank, fence, seq })
	}
	old := of("job-1", 3, 5, 9)
	for _, h := range []string{old, of("job-1", 2, 5, 20), of("job-2", 3, 5, 20)} {
		_, err := w.Check(h, ads, ask(16))
		require.NoError(t, err)
	}
	_, err := w.Check(old, ads, ask(16))
	require.NoError(t, err, "others' sessions are nothing to it")
	for _, h := range []string{of("job-1", 3, 5, 10), of("job-1", 3, 6, 1)} {
		_, err = w.Check(h, ads, ask(16))
		require.NoError(t, err)
		_, err = w.Check(old, ads, ask(16))
		assert.ErrorIs(t, err, ErrVoid)
		assert.ErrorContains(t, err, "another launcher")
	}
}

// TestTimeIsTheLeaders checks that tickets expire by the leader's clock, not the node's.
func TestTimeIsTheLeaders(t *testing.T) {
	w := meet(t)
	h := w.header(nil)
	check := func() error {
		_, err := w.Check(h, ads, ask(16))
		return err
	}
	w.pass(599 * time.Second)
	assert.NoError(t, check(), "no heartbeat since: time passes all the same")
	w.pass(2 * time.Second)
	assert.ErrorIs(t, check(), ErrVoid)
	m := w.beat()
	m.ClockSeconds = leaderTime + 10 // another leader, whose clock is behind
	w.Learn(m)
	assert.NoError(t, check())
}

// TestLeadersFollowEachOther: the tickets of earlier ones are good for a while; of one that the node has not heard of
// the launcher comes again.
func TestLeadersFollowEachOther(t *testing.T) {
	w := meet(t)
	h := w.header(nil)
	_, err := w.Check(h, ads, ask(16))
	require.NoError(t, err)
	signers := []*Signer{w.Signer}
	for id := uint64(6); id < 6+maxKeys; id++ {
		s, err := NewSigner(id)
		require.NoError(t, err)
		b, err := s.Sign(good())
		require.NoError(t, err)
		_, err = w.Check(apiv1.EncodeTicket(b), ads, ask(16))
		assert.ErrorIs(t, err, ErrKey, "the node has not heard of it yet")
		m := w.beat()
		m.TicketKey = s.Key()
		w.Learn(m)
		_, err = w.Check(apiv1.EncodeTicket(b), ads, ask(16))
		assert.NoError(t, err)
		signers = append(signers, s)
	}
	assert.Len(t, w.keys, maxKeys)
	_, err = w.Check(h, ads, ask(16))
	assert.NoError(t, err, "known")
	b, err := signers[0].Sign(good())
	require.NoError(t, err)
	w.known = map[string]*apiv1.Ticket{}
	_, err = w.Check(apiv1.EncodeTicket(b), ads, ask(16))
	assert.ErrorIs(t, err, ErrNone, "long gone")
}

// TestWhatIsDemanded: nothing before the control plane has said anything, nothing of an older one, and nothing bad even
// if none is demanded.
func TestWhatIsDemanded(t *testing.T) {
	c := &clock{now: begin}
	s, err := NewSigner(1)
	require.NoError(t, err)
	v := NewVerifier("n0", "i0", c.Now)
	_, err = v.Check("", ads, ask(16))
	assert.ErrorIs(t, err, ErrKey)
	v.Learn(&apiv1.HeartbeatResponse{ClockSeconds: leaderTime})
	got, err := v.Check("", ads, ask(16))
	assert.NoError(t, err)
	assert.Nil(t, got)
	v.Learn(&apiv1.HeartbeatResponse{ClockSeconds: leaderTime, TicketKey: s.Key()})
	_, err = v.Check("", ads, ask(16))
	assert.NoError(t, err)
	_, err = v.Check("AAAA", ads, ask(16))
	assert.ErrorIs(t, err, ErrNone)
	v.Learn(&apiv1.HeartbeatResponse{ClockSeconds: leaderTime, TicketKey: s.Key(), TicketsRequired: true})
	_, err = v.Check("", ads, ask(16))
	assert.ErrorIs(t, err, ErrNone)
	for _, key := range [][]byte{nil, make([]byte, 31), make([]byte, 33)} {
		v.Learn(&apiv1.HeartbeatResponse{TicketKey: &apiv1.TicketKey{Id: 2, PublicKey: key}})
	}
	assert.Len(t, v.keys, 1)
}

// TestAVerifierStaysSmall whatever it is shown.
func TestAVerifierStaysSmall(t *testing.T) {
	w := meet(t)
	for i := range maxKnown/2 + 1 {
		w.known[fmt.Sprint(i)] = &apiv1.Ticket{Lease: uint64(i), ExpiresSeconds: leaderTime + 60}
	}
	w.pass(61 * time.Second)
	w.Learn(w.beat())
	assert.Empty(t, w.known, "expired")
	for i := range maxKnown {
		w.known[fmt.Sprint(i)] = &apiv1.Ticket{Lease: uint64(i), ExpiresSeconds: leaderTime + 6000}
	}
	_, err := w.Check(w.header(nil), ads, ask(16))
	require.NoError(t, err)
	assert.LessOrEqual(t, len(w.known), maxKnown)
	var many []uint64
	for i := range uint64(maxReturned + 10) {
		many = append(many, i+100)
	}
	w.Learn(w.beat(many...))
	assert.LessOrEqual(t, len(w.returned), maxReturned)
	w.pass(keepReturned + time.Second)
	w.Learn(w.beat(many[:20]...))
	w.Learn(w.beat(many...))
	assert.LessOrEqual(t, len(w.returned), maxReturned)
}

// TestAKnownTicketCostsNothing checks that a request with a known ticket allocates nothing.
// TestOneTicketIsRememberedOnce shows one ticket in many encodings. All of them take one place in the cache, and no
// other ticket loses its place.
func TestOneTicketIsRememberedOnce(t *testing.T) {
	w := meet(t)
	other := w.header(func(t *apiv1.Ticket) { t.Lease = 8 })
	_, err := w.Check(other, ads, ask(20))
	require.NoError(t, err)
	header := w.header(nil)
	signed, err := base64.StdEncoding.DecodeString(header)
	require.NoError(t, err)
	for i := range 100 {
		unknown := protowire.AppendVarint(protowire.AppendTag(bytes.Clone(signed), 99, protowire.VarintType), uint64(i))
		twice := append(protowire.AppendBytes(protowire.AppendTag(nil, 2, protowire.BytesType), []byte{byte(i)}), signed...)
		for _, b := range [][]byte{unknown, twice} {
			read, err := w.Check(apiv1.EncodeTicket(b), ads, ask(20))
			require.NoError(t, err)
			require.EqualValues(t, 7, read.Lease)
		}
	}
	require.Equal(t, 2, len(w.known)) //nolint:testifylint // Len would print all of them
	assert.NotNil(t, w.known[header])
	assert.NotNil(t, w.known[other])
}

func TestAKnownTicketCostsNothing(t *testing.T) {
	w := meet(t)
	h, a := w.header(nil), ask(16)
	_, err := w.Check(h, ads, a)
	require.NoError(t, err)
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		if _, err := w.Check(h, ads, a); err != nil {
			panic(err)
		}
	}))
}

func TestTicketsHaveABound(t *testing.T) {
	s, err := NewSigner(1)
	require.NoError(t, err)
	b, err := s.Sign(good())
	require.NoError(t, err)
	assert.Less(t, len(b), 400)
	long := good()
	long.Drive = strings.Repeat("d", MaxBytes)
	_, err = s.Sign(long)
	assert.ErrorContains(t, err, "too long")
}

// TestManyAskAtOnce while the node learns: for the race detector.
func TestManyAskAtOnce(t *testing.T) {
	w := meet(t)
	var headers []string
	for i := range uint64(8) {
		headers = append(headers, w.header(func(t *apiv1.Ticket) { t.Lease = 100 + i }))
	}
	var wg sync.WaitGroup
	for _, h := range headers {
		for range 2 {
			wg.Go(func() {
				for range 50 {
					_, err := w.Check(h, ads, ask(16))
					assert.NoError(t, err)
				}
			})
		}
	}
	wg.Go(func() {
		for i := range uint64(50) {
			w.Learn(w.beat(1000 + i))
		}
	})
	wg.Wait()
}

func FuzzCheck(f *testing.F) {
	s, err := NewSigner(5)
	require.NoError(f, err)
	b, err := s.Sign(good())
	require.NoError(f, err)
	f.Add(apiv1.EncodeTicket(b))
	f.Add("")
	f.Add("AAAA")
	f.Add(apiv1.EncodeTicket([]byte{0x0a, 0x02, 0x08, 0x05}))
	v := NewVerifier("n0", "i0", func() time.Time { return begin })
	v.Learn(&apiv1.HeartbeatResponse{TicketKey: s.Key(), TicketsRequired: true, ClockSeconds: leaderTime})
	want, _, _, err := decode(apiv1.EncodeTicket(b))
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, header string) {
		got, err := v.Check(header, ads, ask(16))
		if err == nil {
			require.True(t, proto.Equal(want, got), "only what the leader signed is taken")
		}
	})
}

func BenchmarkCheck(b *testing.B) {
	s, err := NewSigner(5)
	require.NoError(b, err)
	t, err := s.Sign(good())
	require.NoError(b, err)
	v := NewVerifier("n0", "i0", time.Now)
	v.Learn(&apiv1.HeartbeatResponse{TicketKey: s.Key(), TicketsRequired: true, ClockSeconds: leaderTime})
	h, a := apiv1.EncodeTicket(t), ask(16)
	b.Run("known", func(b *testing.B) {
		for b.Loop() {
			if _, err := v.Check(h, ads, a); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("new", func(b *testing.B) {
		for b.Loop() {
			clear(v.known)
			if _, err := v.Check(h, ads, a); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("sign", func(b *testing.B) {
		for b.Loop() {
			if _, err := s.Sign(good()); err != nil {
				b.Fatal(err)
			}
		}
	})
}
