package tcp

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/controller"
	"github.com/millrace/millrace/nvme/fabrics"
	"github.com/millrace/millrace/nvme/tcp/pdu"
)

// status polls CSTS until its bits under mask are want.
func (r *rawHost) status(mask, want uint32) {
	r.t.Helper()
	for {
		cpl, _ := r.do(fabrics.PropertyGet(controller.PropertyCSTS, 4), nil)
		require.True(r.t, cpl.Status().OK(), cpl.String())
		if cpl.DW0()&mask == want {
			return
		}
	}
}

// TestWaitingEventRequestsEndInSilence does what SPDK's host does at a clean disconnect: it forgets its event requests,
// writes CC, and uses their identifiers for its next commands. Each of those commands must get its own completion and
// no other.
func TestWaitingEventRequestsEndInSilence(t *testing.T) {
	for name, c := range map[string]struct {
		cc         uint64
		mask, want uint32 // of CSTS
	}{
		"shutdown":                     {0x464061, 3 << 2, 2 << 2},
		"reset":                        {0x460060, 1, 0},
		"reset with a shutdown before": {0x464060, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			noLeaks(t)
			s := serve(t, TargetOptions{})
			r, _ := s.admin(pdu.ICReq{})
			first := r.next
			for range controller.AsyncEventLimit {
				r.capsule(nvme.AsyncEventRequest(), nil)
			}
			r.next = first
			cpl, _ := r.do(fabrics.PropertySet(controller.PropertyCC, 4, c.cc), nil)
			require.True(t, cpl.Status().OK(), cpl.String())
			r.status(c.mask, c.want)
			for n := 0; ; n++ { // uses each identifier again, and gives a late answer time to come
				cpl, _ := r.do(fabrics.PropertyGet(controller.PropertyCC, 4), nil)
				require.True(t, cpl.Status().OK(), cpl.String())
				require.Equal(t, c.cc, cpl.Result())
				if n >= 2*controller.AsyncEventLimit && cpl.SQHead() == (r.next+controller.AsyncEventLimit)%32 {
					break
				}
				require.Less(t, n, 10_000, "the requests have not left the submission queue: its head is %d", cpl.SQHead())
			}
			require.NoError(t, r.nc.Close())
			require.Eventually(t, func() bool { return s.sub.Associations() == 0 }, time.Minute, time.Millisecond)
		})
	}
}

// TestEventRequestsAfterAReset: after each of two resets the controller takes as many event requests as before, and
// completes one of the new requests when there is an event.
func TestEventRequestsAfterAReset(t *testing.T) {
	s := serve(t, TargetOptions{})
	r, _ := s.admin(pdu.ICReq{})
	for range 3 {
		requests := map[uint16]bool{}
		for range controller.AsyncEventLimit {
			requests[r.capsule(nvme.AsyncEventRequest(), nil)] = true
		}
		cpl, _ := r.do(nvme.SetFeature(nvme.FeatureAsyncEvents, 1<<8), nil)
		require.True(t, cpl.Status().OK(), cpl.String())
		s.sub.NamespaceChanged(1)
		f, h, _ := r.receive()
		require.Equal(t, pdu.TypeCapsuleResp, f.Type)
		got := pdu.CompletionOf(h)
		require.True(t, got.Status().OK(), got.String())
		assert.True(t, requests[got.CID()], "the event answers another command")
		for _, cc := range []uint64{0x460060, 0x460061} {
			cpl, _ = r.do(fabrics.PropertySet(controller.PropertyCC, 4, cc), nil)
			require.True(t, cpl.Status().OK(), cpl.String())
			r.status(1, uint32(cc&1))
		}
	}
}

// TestAbortedEventRequestIsAnswered: an event request that an Abort ends is completed with CommandAborted.
func TestAbortedEventRequestIsAnswered(t *testing.T) {
	s := serve(t, TargetOptions{})
	r, _ := s.admin(pdu.ICReq{})
	request := r.capsule(nvme.AsyncEventRequest(), nil)
	answered := map[uint16]nvme.Completion{}
	for aborted := false; !aborted; { // an Abort that is done before the request began finds nothing
		abort := r.capsule(nvme.Abort(0, request), nil)
		for answered[abort] == (nvme.Completion{}) {
			f, h, _ := r.receive()
			require.Equal(t, pdu.TypeCapsuleResp, f.Type)
			cpl := pdu.CompletionOf(h)
			answered[cpl.CID()] = cpl
		}
		cpl := answered[abort]
		aborted = cpl.DW0()&1 == 0
	}
	cpl, ok := answered[request]
	if !ok {
		cpl, _ = r.completion(request)
	}
	assert.True(t, cpl.Status().Is(nvme.CommandAborted), cpl.String())
}
