package auth

import (
	"fmt"

	"github.com/millrace/millrace/internal/transition"
)

// State is a state of a transaction on one side.
type State uint8

// States of a host, of a controller, and the two final states of both.
const (
	HostIdle               State = iota // nothing was sent; Step(nil) starts
	HostAwaitChallenge                  // AUTH_Negotiate was sent
	HostAwaitSuccess1                   // DH-HMAC-CHAP_Reply was sent
	ControllerIdle                      // nothing has arrived
	ControllerAwaitReply                // DH-HMAC-CHAP_Challenge was made
	ControllerAwaitSuccess              // DH-HMAC-CHAP_Success1 with a response was made: Success2 is due
	Authenticated                       // final
	Failed                              // final
)

var stateNames = [...]string{
	HostIdle: "idle", HostAwaitChallenge: "awaiting challenge", HostAwaitSuccess1: "awaiting success1",
	ControllerIdle: "awaiting negotiate", ControllerAwaitReply: "awaiting reply",
	ControllerAwaitSuccess: "awaiting success2", Authenticated: "authenticated", Failed: "failed",
}

func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return fmt.Sprintf("state %d", uint8(s))
}

// event is an event of a transaction: a message that was taken and found right, or a failure.
type event uint8

const (
	eventStart       event = iota // the host sends AUTH_Negotiate
	eventChallenge                // the host took the challenge
	eventSuccess1                 // the host took the controller's success, with the response where it wanted one
	eventNegotiate                // the controller took the offer
	eventReply                    // the controller took a reply that proves the host and does not challenge the controller
	eventReplyMutual              // the controller took a reply that proves the host and challenges the controller
	eventSuccess2                 // the controller took the host's word that the controller is authenticated
	eventFail                     // either side found a fault, or the peer reported one
)

var eventNames = [...]string{
	eventStart: "start", eventChallenge: "challenge", eventSuccess1: "success1", eventNegotiate: "negotiate",
	eventReply: "reply", eventReplyMutual: "reply with challenge", eventSuccess2: "success2", eventFail: "fail",
}

func (e event) String() string { return eventNames[e] }

// hostTransitions and controllerTransitions are the machines of the two sides.
var (
	hostTransitions = transition.Table[State, event]{
		HostIdle:           {eventStart: HostAwaitChallenge, eventFail: Failed},
		HostAwaitChallenge: {eventChallenge: HostAwaitSuccess1, eventFail: Failed},
		HostAwaitSuccess1:  {eventSuccess1: Authenticated, eventFail: Failed},
		Authenticated:      {},
		Failed:             {},
	}
	controllerTransitions = transition.Table[State, event]{
		ControllerIdle: {eventNegotiate: ControllerAwaitReply, eventFail: Failed},
		ControllerAwaitReply: {
			eventReply: Authenticated, eventReplyMutual: ControllerAwaitSuccess, eventFail: Failed,
		},
		ControllerAwaitSuccess: {eventSuccess2: Authenticated, eventFail: Failed},
		Authenticated:          {},
		Failed:                 {},
	}
)
