package simulation

// Mutant is a fault that a test adds to a part of the world. The simulation must find the fault.
type Mutant string

// The mutants.
const (
	UnfencedWrites    Mutant = "the store takes writes of former leaders"
	EarlyAnswer       Mutant = "acknowledgements are answered before they are durable"
	EarlyAttach       Mutant = "a session is answered before it is durable"
	OrderOfRecords    Mutant = "records are written in another order"
	ForgottenRecords  Mutant = "a new leader forgets the bitmaps of splits"
	ForgottenRanks    Mutant = "a new leader forgets the ranks' sessions"
	OldState          Mutant = "a state is stored after a later one"
	WrongContent      Mutant = "a node gives the mini-batch behind the one that was asked for"
	SharedEditions    Mutant = "a job takes an edition twice"
	DutiesStop        Mutant = "a duty that failed is not tried again"
	ForgottenState    Mutant = "a new leader takes jobs as they were submitted"
	EarlyEdition      Mutant = "an edition begins before it is durable"
	ConcludeTooEarly  Mutant = "a job is removed when its last epoch is delivered"
	ForgottenEditions Mutant = "a new leader forgets the later editions"
	NoRepeats         Mutant = "calls of nodes that failed are not repeated"
	KeptEditions      Mutant = "nodes are not made to forget jobs"
	UnconfirmedErrors Mutant = "a leader refuses a call for good and does not know that its term is over"
)
