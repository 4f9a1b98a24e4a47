package ticket_test

import (
	"errors"
	"fmt"
	"time"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/identity"
	"github.com/millrace/millrace/host/ticket"
)

// A leader signs a ticket for mini-batches 0 to 15, and the node checks it.
func ExampleVerifier_Check() {
	signer, err := ticket.NewSigner(7) // the leader's fence
	if err != nil {
		fmt.Println(err)
		return
	}
	job := [32]byte{1}
	now := time.Unix(1_700_000_000, 0)
	signed, err := signer.Sign(&apiv1.Ticket{
		Node: "n0", Incarnation: "i0", Drive: "d0", Digest: job[:], From: 0, To: 16, Lease: 1,
		ExpiresSeconds: float64(now.Unix() + 600),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	verifier := ticket.NewVerifier("n0", "i0", func() time.Time { return now })
	verifier.Learn(&apiv1.HeartbeatResponse{
		TicketKey: signer.Key(), TicketsRequired: true, ClockSeconds: float64(now.Unix()),
	})
	for _, number := range []uint64{15, 16} {
		ask := &ticket.Ask{Job: job, Drive: "d0", Number: number}
		_, err := verifier.Check(apiv1.EncodeTicket(signed), identity.Identity{}, ask)
		fmt.Println(number, errors.Is(err, ticket.ErrVoid))
	}
	// Output:
	// 15 false
	// 16 true
}
