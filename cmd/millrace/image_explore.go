package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/capacity"
	"github.com/millrace/millrace/cmd/cli"
	"github.com/millrace/millrace/fpga/timing/exploration"
	"github.com/millrace/millrace/host/workload"
)

// exploredDesigns is what `millrace image explore` prints.
type exploredDesigns struct {
	Model string `json:"model"`
	exploration.Report
}

func (c imageCommands) explore() *cobra.Command {
	var (
		model, picture string
		ids, most      int
		clocks         []int
	)
	cmd := &cobra.Command{
		Use: "explore", Short: "Which designs fit the board, and which has the most rows/s",
		Long: `Tries every number of elements of the decoder, Bucketize, SigridHash and Log at every clock of
--clock-khz: whether they fit LUT, block RAM, UltraRAM and DSP of a SmartSSD beside its platform, by the
synthesis of fpga/rtl, and how many rows/s of a pipeline's rows the model (fpga/timing) gives. Prints the best
design, PreSto's, PreSto's counts made of the units of fpga/rtl, and the frontier: the designs that no
smaller one matches. --svg draws them.

No board ran, and no tool placed a design: clocks are requested, and the areas lack memory controllers,
movers of data, double buffers and most of the decoder (docs/images.md). Watts are not estimated.`,
		Example: "  millrace image explore --model rm5\n" +
			"  millrace image explore --model rm1 --clock-khz 100000,223000,300000 --svg rm1.svg --output json",
		Args: cli.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if ids != 4 && ids != 8 || most < 1 {
				return cli.Usagef("--id-bytes %d, --elements %d: want ids of 4 or 8 bytes, and 1 element or more", ids, most)
			}
			w, err := capacity.CostOfRow(model, ids)
			if err != nil {
				return cli.Usagef("--model %q: want rm1 to rm5", model)
			}
			r, err := exploration.Explore(exploration.Options{Board: exploration.SmartSSD(), Workload: w,
				Rows: workload.Batch, Elements: most, Clocks: clocks})
			if errors.Is(err, exploration.ErrOptions) {
				return cli.WrongUsage(err)
			}
			if err != nil {
				return err
			}
			if picture != "" {
				title := fmt.Sprintf("%s on the %s: designs that fit", strings.ToUpper(model), r.Board)
				if err := os.WriteFile(picture, []byte(r.Picture(title)), 0o644); err != nil {
					return err
				}
			}
			return c.Report(exploredDesigns{model, r}, func(w io.Writer) { printExploration(w, r) })
		},
	}
	f := cmd.Flags()
	f.StringVar(&model, "model", "rm5", "rows and pipeline of: rm1 to rm5")
	f.IntVar(&ids, "id-bytes", 8, "bytes of an id in the files: 4 or 8")
	f.IntVar(&most, "elements", 16, fmt.Sprintf("most elements of a unit, 1 to %d", exploration.MaxElements))
	f.IntSliceVar(&clocks, "clock-khz", []int{100_000, 150_000, 200_000, 223_000}, "clocks to request")
	f.StringVar(&picture, "svg", "", "file to draw the designs into")
	return cmd
}

// printExploration prints the designs, and under them what was explored.
func printExploration(w io.Writer, r exploration.Report) {
	fmt.Fprintf(w, "design\tMHz\tdecode\tbucketize\thash\tlog\tLUT\tRAMB18\tURAM\tDSP\tlargest share\trows/s\tbound by\n")
	for _, d := range append([]exploration.Design{r.Best, r.PreSto, r.Counted}, r.Frontier...) {
		lut, ram, ultra, dsp := percent(d.Shares.LUT), percent(d.Shares.BRAM), percent(d.Shares.URAM), percent(d.Shares.DSP)
		if a := d.Area; a != nil {
			lut, ram, ultra, dsp = fmt.Sprint(a.LUT), fmt.Sprint(a.BRAM18), fmt.Sprint(a.URAM), fmt.Sprint(a.DSP)
		}
		fmt.Fprintf(w, "%s\t%g\t%dx%d\t%d\t%d\t%d\t%s\t%s\t%s\t%s\t%s\t%.0f\t%s\n", d.Name, float64(d.ClockKHz)/1e3,
			d.Elements.Decode, d.DecoderLanes, d.Elements.Bucketize, d.Elements.Hash, d.Elements.Log, lut, ram, ultra, dsp,
			percent(d.LargestShare), d.RowsPerSecond, d.Bottleneck)
	}
	fmt.Fprintf(w, "%d of %d designs fit the %s; a design may take %d LUT, %d RAMB18, %d URAM, %d DSP\n", r.Fitting,
		r.Designs, r.Board, r.Limit.LUT, r.Limit.BRAM18, r.Limit.URAM, r.Limit.DSP)
	fmt.Fprintf(w, "areas: fpga/rtl, %s, before placement, without memory controllers and movers; %s: %s\n", r.Tool,
		r.PreSto.Name, r.PreSto.AreaSource)
}

// percent writes a share.
func percent(share float64) string { return fmt.Sprintf("%.2f %%", 100*share) }
