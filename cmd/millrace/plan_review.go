package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/millrace/millrace/capacity"
	"github.com/millrace/millrace/capacity/review"
	"github.com/millrace/millrace/capacity/sizing"
	"github.com/millrace/millrace/cmd/cli"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/internal/terminal"
)

// reviews reports whether the flags name a job to compare the plan with.
func (o *planOptions) reviews() bool { return o.fromJob != "" || o.jobID != "" }

// checkReview refuses flags that no comparison with a job takes.
func (o *planOptions) checkReview(output string) error {
	switch {
	case o.fromJob != "" && o.jobID != "":
		return cli.Usagef("--from-job and --job both name a job: give one of them")
	case o.reviews() && output == "html":
		return cli.Usagef("--output html is of a plan: a comparison with a job is a table or JSON")
	}
	return nil
}

// review compares the plan of the flags with a job.
func (o *planOptions) review(ctx context.Context) (*review.Review, error) {
	ran, err := o.ran(ctx)
	if err != nil {
		return nil, err
	}
	prices, err := o.readPrices()
	if err != nil {
		return nil, err
	}
	table, err := o.readFigures()
	if err != nil {
		return nil, err
	}
	job, need, err := o.job(ctx)
	if err != nil {
		return nil, err
	}
	ownT := o.t == 0 && o.gpus == 0 && job.T.Value == 0
	if ownT && ran.T <= 0 {
		return nil, cli.Usagef("--t is wanted, as it was planned: job %.12s did not measure T", ran.Job)
	}
	if ownT {
		job.T = sizing.Figure{Value: ran.T, Kind: sizing.Measured, Source: "T of the job"}
	}
	if err := o.takeFlags(job, &need); err != nil {
		return nil, err
	}
	plan := planned(job, table, prices, ran.Engine)
	plan.OwnT = ownT
	if plan.OwnP = plan.P.Value == 0 && ran.P > 0; plan.OwnP {
		plan.P = sizing.Figure{Value: ran.P, Kind: sizing.Measured, Source: "P of the job"}
	}
	v, err := review.Compare(plan, ran)
	if errors.Is(err, review.ErrReport) {
		return nil, cli.WrongUsage(err)
	}
	return v, err
}

// planned returns what a plan says of the workers of an engine: of drives, or of cores that run our kernels.
func planned(job *sizing.Job, table *sizing.Table, prices *capacity.Prices, engine string) *review.Plan {
	p := &review.Plan{Model: job.Model, T: job.T, RowIn: job.RowIn, RowOut: job.RowOut}
	figure := func(v float64, source string) sizing.Figure {
		return sizing.Figure{Value: v, Kind: sizing.Assumed, Source: "price file: " + source}
	}
	if engine == "cpu" {
		p.Worker, p.P = "cores", job.KernelsCore
		p.Watts = figure(prices.CPU.NodeWatts/prices.CPU.Cores, prices.CPU.NodeWattsSource+", over the node's cores")
		return p
	}
	p.Worker, p.P = "drives", job.Drive.P
	p.Flash, p.Memory, p.Link = prices.Drive.Read, job.Drive.Memory.Value, table.DriveLink()
	p.Watts = figure(prices.Drive.Watts, prices.Drive.WattsSource)
	return p
}

// ran returns what the job did: by its report, or by what the control plane knows of it.
func (o *planOptions) ran(ctx context.Context) (_ *review.Ran, err error) {
	if o.fromJob != "" {
		b, err := readDocument(o.fromJob)
		if err != nil {
			return nil, fmt.Errorf("read the job's report: %w", err)
		}
		return review.RanOf(b, o.fromJob)
	}
	client, err := o.service.dial()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	status, err := client.Get(ctx, o.jobID)
	if err != nil {
		return nil, err
	}
	return ranOnService(status)
}

// ranOnService returns what a control plane knows of a job. It does not keep the job's bytes, time and energy.
func ranOnService(s *apiv1.JobStatus) (*review.Ran, error) {
	r := &review.Ran{Source: "the control plane", Job: s.GetId(), P: s.GetPRowsPerSecond(),
		Drives: int(s.GetDrives()), Wanted: int(s.GetDrivesWanted()), Foretold: s.GetExpectedStallSeconds()}
	for _, rank := range s.GetRanks() {
		r.T += rank.GetTRowsPerSecond()
		r.Stall += rank.GetStallSeconds()
	}
	if r.T == 0 {
		r.T = s.GetSpec().GetTRowsPerSecond()
	}
	if r.P <= 0 {
		return nil, fmt.Errorf("job %s is %s and has no P yet: a comparison wants a job that ran", s.GetId(),
			s.GetState())
	}
	return r, nil
}

// printReview prints a comparison.
func printReview(w io.Writer, v *review.Review) {
	fmt.Fprintf(w, "%s\n\njob\t%s, by %s\n", v.Says, terminal.Cell(v.Job), terminal.Cell(v.From))
	fmt.Fprintf(w, "%s at once\t%.3g planned, %.3g with the job's figures\n", v.Workers, v.Planned, v.Then)
	fmt.Fprintf(w, "drives of the job\t%d at once (T/P asks for %d)%s\n", v.Allowed, v.Wanted, busiest(v.Busiest))
	share := ""
	if v.Stall.Share > 0 {
		share = fmt.Sprintf(", %.1f %% of the time", 100*v.Stall.Share)
	}
	fmt.Fprintf(w, "stall\t%.2f s%s; the job foretold %.2f s\n", v.Stall.Ran, share, v.Stall.Foretold)
	if p := v.Power; p != nil {
		fmt.Fprintf(w, "watts\t%.4g planned (%s, %s), %.4g in the job (%s), %.4g J a million rows\n", p.Planned,
			p.PlannedKind, p.PlannedSource, p.Ran, p.RanKind, p.PerMillion)
	}
	fmt.Fprintf(w, "\nassumption\tplanned\tjob\tunit\tjob / planned\t%s at once with it\tkind\tsource of the plan's\n",
		v.Workers)
	for _, a := range v.Assumptions {
		fmt.Fprintf(w, "%s\t%.4g\t%.4g\t%s\t%.3g\t%.3g\t%s\t%s\n", a.Name, a.Planned, a.Ran, a.Unit, a.Ratio, a.Then,
			a.Kind, terminal.Cell(a.Source))
	}
	fmt.Fprintln(w)
	terminal.Rows(w, v.Links)
	printLines(w, "not compared", v.NotCompared)
}

// busiest says how many drives ran at once at the most; nothing if it is not known.
func busiest(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(", %d at the busiest", n)
}
