package remote

import "context"

// SplitShares describes how the splits of a rank are divided between the rank's own CPUs and all other workers.
type SplitShares struct {
	// All other workers have this share of the splits; -1 means that these come first.
	Elsewhere   float64 `json:"other_workers_share"`
	Why         string  `json:"offload_reason"`     // the reason for the share; empty: the control plane has not decided
	OwnRows     int64   `json:"own_rows"`           // OwnRows were made by the rank's own CPUs.
	OthersRows  int64   `json:"other_workers_rows"` // OthersRows were made by all other workers.
	ProfileFrom string  `json:"profile_from"`       // measured, stored by an earlier job, or empty: there is none
	Profile     float64 `json:"profile_seconds"`    // Profile is how long the profile took.
	// ProfileShare is the share of the training time that the profile took, 0 to 1.
	ProfileShare float64 `json:"profile_share"`
}

// SplitShares asks the control plane for the share of this rank. It returns nil if the job does not share splits.
func (j *Job) SplitShares(ctx context.Context) (*SplitShares, error) {
	r := j.rank
	status, err := r.client.Get(ctx, r.id)
	if err != nil || status.GetSpec().GetOffload() == "" {
		return nil, err
	}
	s := &SplitShares{Elsewhere: -1, OwnRows: r.ownMade.Read().Rows, OthersRows: r.othersMade.Read().Rows}
	for _, rank := range status.GetRanks() {
		if rank.Rank == r.options.Rank {
			s.Elsewhere, s.Why = rank.ShareElsewhere, rank.Offload
		}
	}
	measured := r.profiler.Status()
	s.ProfileFrom, s.Profile = measured.From, measured.Seconds
	if measured.Training > 0 {
		s.ProfileShare = min(measured.Seconds/measured.Training, 1)
	}
	return s, nil
}
