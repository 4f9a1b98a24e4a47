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
	StaleSession      Mutant = "launchers go on with a session that was fenced off"
	TrainTwice        Mutant = "launchers train what they have trained"
	ForeignNumbers    Mutant = "launchers take numbers beyond their leases"
	TokenOfFetched    Mutant = "tokens hold what was fetched and not trained"
	WrongContent      Mutant = "a node gives the mini-batch behind the one that was asked for"
	SharedEditions    Mutant = "a job takes an edition twice"
	EpochEndsEarly    Mutant = "a launcher goes on to the next epoch with mini-batches left"
	DutiesStop        Mutant = "a duty that failed is not tried again"
	NoRelease         Mutant = "launchers keep leases whose node has failed"
	NoReattach        Mutant = "launchers do not attach again"
	ForgottenState    Mutant = "a new leader takes jobs as they were submitted"
	EarlyEdition      Mutant = "an edition begins before it is durable"
	ConcludeTooEarly  Mutant = "a job is removed when its last epoch is delivered"
	ForgottenEditions Mutant = "a new leader forgets the later editions"
	NoRepeats         Mutant = "calls of nodes that failed are not repeated"
	KeptEditions      Mutant = "nodes are not made to forget jobs"
)

// Mutants is the set of mutants of a day.
type Mutants map[Mutant]bool

func (m Mutants) has(name Mutant) bool { return m[name] }
