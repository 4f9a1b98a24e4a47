package auth

import (
	"fmt"
	"slices"
)

// State is where a transaction stands on one side.
type State uint8

// States of a host, of a controller, and the two in which both end.
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

// rule says what a state that is not final waits for and what may follow it, beside Failed.
type rule struct {
	takes MessageID // nothing for HostIdle, which starts
	next  []State
}

// rules is the table of both machines. A state that is not in it is final.
var rules = map[State]rule{
	HostIdle:               {next: []State{HostAwaitChallenge}},
	HostAwaitChallenge:     {MessageChallenge, []State{HostAwaitSuccess1}},
	HostAwaitSuccess1:      {MessageSuccess1, []State{Authenticated}},
	ControllerIdle:         {MessageNegotiate, []State{ControllerAwaitReply}},
	ControllerAwaitReply:   {MessageReply, []State{Authenticated, ControllerAwaitSuccess}},
	ControllerAwaitSuccess: {MessageSuccess2, []State{Authenticated}},
}

// final tells whether a transaction in s is over.
func (s State) final() bool {
	_, ok := rules[s]
	return !ok
}

// may tells whether next may follow s.
func (s State) may(next State) bool {
	r, ok := rules[s]
	return ok && (next == Failed || slices.Contains(r.next, next))
}
