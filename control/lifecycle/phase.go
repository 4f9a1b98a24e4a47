package lifecycle

import (
	"fmt"

	"github.com/millrace/millrace/control/record"
	"github.com/millrace/millrace/internal/transition"
)

// phaseEvent is an event that leads a job from one phase to another.
type phaseEvent string

const (
	onPrepared    phaseEvent = "nodes are prepared"
	onCommitted   phaseEvent = "P is measured, and the state is stored"
	onNewLeader   phaseEvent = "another leader"
	onDelayed     phaseEvent = "a node has no room, or is away"
	onWaits       phaseEvent = "waits for a node, for partitions or for ranks"
	onGoesOn      phaseEvent = "new partitions, or a rank went back"
	onSuspended   phaseEvent = "another job gets its room"
	onResumed     phaseEvent = "nodes are prepared again"
	onAllConsumed phaseEvent = "all delivered and confirmed"
	onFailed      phaseEvent = "fails"
	onCancelled   phaseEvent = "cancelled"
	onAbandoned   phaseEvent = "no rank calls"
)

// phases is the machine of a job's phases. docs/architecture.md shows it.
var phases = transition.Table[record.Phase, phaseEvent]{
	record.Preparing: {
		onDelayed: record.Preparing, onPrepared: record.Measuring, onFailed: record.Failed,
		onCancelled: record.Cancelled, onSuspended: record.Preparing, onAbandoned: record.Abandoned,
	},
	record.Measuring: {
		onDelayed: record.Measuring, onCommitted: record.Running, onNewLeader: record.Preparing,
		onFailed: record.Failed, onCancelled: record.Cancelled,
	},
	record.Running: {
		onWaits: record.Waiting, onGoesOn: record.Running, onAllConsumed: record.Done,
		onFailed: record.Failed, onCancelled: record.Cancelled, onAbandoned: record.Abandoned,
		onSuspended: record.Waiting,
	},
	record.Waiting: {
		onWaits: record.Waiting, onGoesOn: record.Running, onAllConsumed: record.Done,
		onFailed: record.Failed, onCancelled: record.Cancelled, onAbandoned: record.Abandoned,
		onSuspended: record.Waiting, onResumed: record.Running,
	},
	record.Done:      {},
	record.Failed:    {},
	record.Cancelled: {},
	record.Abandoned: {},
}

// transition changes the job's phase on an event, for a reason. No other function changes the phase. transition
// reports whether the table allows the event; if the table does not, the job stays as it is. A new reason for the
// same phase is a change, too.
func (l *life) transition(on phaseEvent, why string) bool {
	from := l.state.Phase
	to, ok := phases.Next(from, on)
	if !ok {
		err := fmt.Errorf("a job that is %s does not know the event %q", from, string(on))
		l.machine.emit(Refused{Job: l.ID, Err: err})
		return false
	}
	if from == to && l.state.Why == why {
		return true
	}
	l.state.Phase, l.state.Why = to, why
	l.unwritten, l.storeAtOnce = true, true
	l.machine.emit(Moved{Job: l.ID, From: from, To: to, Why: why})
	return true
}
