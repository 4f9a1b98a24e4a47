package machine

import (
	"errors"
	"fmt"

	"github.com/millrace/millrace/control/ledger"
)

// ErrDone is the error of a caller that requests mini-batches of a job whose mini-batches are all acknowledged.
var ErrDone = errors.New("every mini-batch was acknowledged")

// ErrDeposed is the error of a call with a session that a later leader made. This leader's term is over, and its answer
// would be of the past: it does not know that the session is valid.
var ErrDeposed = errors.New("a later leader made the session of this call")

// EndedError is the error of a caller whose job has ended in another way than done.
type EndedError struct{ Job, Words string }

// Error names the job, and says how it ended.
func (e *EndedError) Error() string { return fmt.Sprintf("job %s has ended: %s", e.Job, e.Words) }

// NotBegunError is the error of a caller whose job has not begun, or has given its room to another job.
type NotBegunError struct{ Job, Words string }

// Error names the job, and says what it waits for.
func (e *NotBegunError) Error() string { return fmt.Sprintf("job %s is %s", e.Job, e.Words) }

// ConsumedError is the error of a caller if another run has consumed mini-batches of its rank, or of another rank of
// the job.
type ConsumedError struct{ Rank ledger.RankStatus }

// Error names the rank.
func (e *ConsumedError) Error() string {
	return fmt.Sprintf("another run has consumed mini-batches of rank %d", e.Rank.Rank)
}
