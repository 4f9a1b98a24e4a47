package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/pflag"

	"github.com/millrace/millrace/capacity"
	"github.com/millrace/millrace/fpga/timing"
	"github.com/millrace/millrace/internal/power"
	"github.com/millrace/millrace/internal/terminal"
)

// PowerFlags say how energy is measured.
type PowerFlags struct {
	readings string
	idle     time.Duration
}

// AddFlags adds the flags to a command.
func (p *PowerFlags) AddFlags(f *pflag.FlagSet) {
	f.StringVar(&p.readings, "power-file", "", "readings of a PDU or a BMC: lines of time,watts, while this command "+
		"runs; instead of the machine's own counters")
	f.DurationVar(&p.idle, "power-idle", 0, "first wait so long and measure what the machine draws idle, to tell static "+
		"and dynamic energy apart")
}

// Open returns what measures energy. It waits as long as --power-idle says.
func (p *PowerFlags) Open(ctx context.Context, mode string) (*power.Meter, error) {
	if p.idle < 0 {
		return nil, Usagef("--power-idle %v: want 0 or more", p.idle)
	}
	prices, err := capacity.ReadPrices(capacity.DefaultPrices())
	if err != nil {
		return nil, err
	}
	m := power.Model{Core: prices.CPU.NodeWatts / prices.CPU.Cores, CoreSource: prices.CPU.NodeWattsSource +
		", over the node's cores", Drive: timing.PreStoWatts, DriveSource: prices.Drive.WattsSource}
	if mode == string(timing.ModeU280) {
		m.Drive, m.DriveSource = timing.U280Watts, "PreSto VI-C: TDP"
	}
	meter, err := power.Open(ctx, power.Options{Readings: p.readings, Idle: p.idle, Model: m})
	if errors.Is(err, power.ErrReadings) {
		return nil, WrongUsage(err)
	}
	return meter, err
}

// PrintEnergy prints the energy of a run, and where it comes from.
func PrintEnergy(w io.Writer, e *power.Energy) {
	fmt.Fprintf(w, "energy\t%s\n", e)
	for _, d := range e.Domains {
		fmt.Fprintf(w, "energy of %s\t%.4g J: %s\n", terminal.Cell(d.Name), d.Joules, terminal.Cell(d.Source))
	}
	for _, n := range e.Notes {
		fmt.Fprintf(w, "energy, note\t%s\n", terminal.Cell(n))
	}
}
