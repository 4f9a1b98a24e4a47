package simulation

// Mutant is a fault that is built into a part of the world, to see that the simulation finds it.
type Mutant string

// The mutants.
const (
	UnfencedWrites    Mutant = "the store takes writes of former leaders"
	EarlyAnswer       Mutant = "acknowledgements are answered before they are durable"
	EarlyCheckpoint   Mutant = "a token is answered before its acknowledgements are durable"
	EarlyAttach       Mutant = "a session is answered before it is durable"
	LostWrites        Mutant = "records whose write failed are not written again"
	OrderOfRecords    Mutant = "records are written in another order"
	ForgottenRecords  Mutant = "a new leader forgets the bitmaps of splits"
	ForgottenRanks    Mutant = "a new leader forgets the ranks' sessions"
	OldState          Mutant = "a state is stored after a later one"
	NoGrace           Mutant = "a new leader grants before launchers have shown their leases"
	StaleAnswers      Mutant = "launchers take the answers of former leaders"
	StaleSession      Mutant = "launchers go on with a session that was fenced off"
	TrainTwice        Mutant = "launchers train what they have trained"
	NoRepeat          Mutant = "launchers forget an acknowledgement whose answer was lost"
	ForeignNumbers    Mutant = "launchers take numbers beyond their leases"
	TokenOfFetched    Mutant = "tokens hold what was fetched and not trained"
	LostRevocations   Mutant = "nodes make mini-batches of leases that came back, and launchers never release them"
	WrongContent      Mutant = "a node gives the mini-batch behind the one that was asked for"
	NoConfirm         Mutant = "a job ends before its last acknowledgements are durable"
	SharedEditions    Mutant = "a job takes an edition twice"
	EpochEndsEarly    Mutant = "a launcher goes on to the next epoch with mini-batches left"
	DeadNodesGrant    Mutant = "leases are granted on dead nodes"
	TicksStop         Mutant = "a leader does not tick"
	NeverFlushes      Mutant = "a leader writes acknowledgements only when it is asked to"
	DutiesStop        Mutant = "a duty that failed is not tried again"
	NoRelease         Mutant = "launchers keep leases whose node has failed"
	NoReattach        Mutant = "launchers do not attach again"
	ForgottenState    Mutant = "a new leader takes jobs as they were submitted"
	EarlyCommit       Mutant = "a job runs before its state is durable"
	EarlyEdition      Mutant = "an edition begins before it is durable"
	ConcludeTooEarly  Mutant = "a job is removed when its last epoch is delivered"
	ForgottenEditions Mutant = "a new leader forgets the later editions"
)

// Mutants is the set of mutants that are built in.
type Mutants map[Mutant]bool

func (m Mutants) has(name Mutant) bool { return m[name] }
