package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/cmd/cli"
	"github.com/millrace/millrace/host/inspection"
	"github.com/millrace/millrace/host/volume"
	"github.com/millrace/millrace/internal/openfiles"
	"github.com/millrace/millrace/internal/quantity"
	"github.com/millrace/millrace/nvme/controller"
	"github.com/millrace/millrace/nvme/cs"
	"github.com/millrace/millrace/sdk"
)

// driveCommands are the commands of one drive, by URI.
type driveCommands struct{ *console }

func (c driveCommands) command() *cobra.Command {
	return cli.Group("drive",
		"Drives by URI: file:PATH, with ?size=1GiB&lba=512&slm=1GiB&threads=1&regions=1&region=0&commands=vendor, "+
			"tcp://HOST:PORT/NQN, or nvme:/dev/nvme0",
		c.create(), c.put(), c.files(), c.trim(), c.info(), c.list(), c.smart(), c.validate(), c.reset(),
		serveCommand(c).command(),
		placementCommands(c).retire())
}

// checkURI returns a usageError for a malformed drive URI.
func checkURI(uri string) error {
	if _, err := sdk.ParseURI(uri); err != nil {
		return cli.WrongUsage(err)
	}
	return nil
}

// warnings is the log of commands without log flags: only warnings and errors appear.
func (c *console) warnings() *slog.Logger { return c.log(logFlags{level: "warn", format: "auto"}) }

// withDrive opens a drive, calls fn with it and closes it. The drive logs to log; nil discards the log, for commands
// whose errors already say what the log would.
func withDrive(ctx context.Context, uri string, log *slog.Logger, fn func(*sdk.Device) error) (err error) {
	return withRegion(ctx, uri, 0, log, fn)
}

// withRegion is withDrive for a region of the drive, unless the URI names one.
func withRegion(ctx context.Context, uri string, region int, log *slog.Logger, fn func(*sdk.Device) error) (err error) {
	if err := checkURI(uri); err != nil {
		return err
	}
	dev, err := sdk.Open(ctx, uri, sdk.DeviceOptions{Logger: log, Region: region})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dev.Close()) }()
	return fn(dev)
}

func (c driveCommands) create() *cobra.Command {
	var (
		trust   trustFlags
		regions int
		weights []int
		share   int
	)
	cmd := &cobra.Command{
		Use:   "create URI",
		Short: "Make a drive",
		Long: `Makes a drive. file:PATH is flash byte for byte from block 0, sparse; its geometry, its identity and
which images it takes are in PATH.json. With ?size=0 the drive has no flash: PATH stays empty, and its identity,
its images and which it takes are in PATH.json and beside it. An existing drive is not touched.
Each of its regions has engine threads, an active image and a share of memory of its own: equal ones,
or in proportion to --region-weights.
--host-io-share limits ordinary reads and writes of hosts while regions compute. It protects jobs from hosts;
hosts get fewer reads and writes a second.`,
		Example: "  millrace drive create 'file:d0.flash?size=4GiB&lba=4096'\n" +
			"  millrace drive create file:d0.flash --image-policy require --image-key signing.pub.pem",
		Args: cli.ExactArgs("URI"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if err := checkURI(args[0]); err != nil {
				return err
			}
			change, err := trust.change()
			if err != nil {
				return cli.WrongUsage(err)
			}
			if err := checkRegions(regions); err != nil {
				return err
			}
			if regions, err = regionsOf(cmd, regions, weights); err != nil {
				return cli.WrongUsage(err)
			}
			if err := checkHostIOShare(share); err != nil {
				return cli.WrongUsage(err)
			}
			dev, err := sdk.Create(cmd.Context(), args[0], sdk.DeviceOptions{Trust: change, Regions: regions,
				RegionWeights: weights, HostIOShare: share})
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, dev.Close()) }()
			return c.printMade(driveInfo(inspection.Description{Info: dev.Info()}))
		},
	}
	cmd.Flags().IntVar(&regions, "regions", 1, "regions of the drive, 1 to 7, unless the URI says how many")
	cmd.Flags().IntSliceVar(&weights, "region-weights", nil, regionWeightsHelp)
	cmd.Flags().IntVar(&share, "host-io-share", controller.NoHostIOLimit, hostIOShareHelp)
	trust.addFlags(cmd)
	return cmd
}

// checkRegions returns a usageError for a number of regions that no drive has.
func checkRegions(n int) error {
	if n < 1 || n > cs.MaxRegions {
		return cli.Usagef("--regions %d: want 1 to %d", n, cs.MaxRegions)
	}
	return nil
}

// regionWeightsHelp describes the flag --region-weights.
const regionWeightsHelp = "weight of each region, 1 to 16, as 2,1,1: so many shares of the memory, and times " +
	"--threads engine threads (default: equal)"

// regionsOf returns the number of regions that --regions and --region-weights say. 0 leaves it to the weights.
func regionsOf(cmd *cobra.Command, regions int, weights []int) (int, error) {
	if len(weights) == 0 {
		return regions, nil
	}
	if !cmd.Flags().Changed("regions") {
		regions = 0
	}
	if n := cmp.Or(regions, len(weights)); n != len(weights) || n < 2 || n > cs.MaxRegions {
		return 0, fmt.Errorf("--region-weights has %d weights for %d regions: want one for each of 2 to %d regions",
			len(weights), n, cs.MaxRegions)
	}
	for _, w := range weights {
		if w < 1 || w > cs.MaxRegionWeight {
			return 0, fmt.Errorf("--region-weights: a weight of %d: want 1 to %d", w, cs.MaxRegionWeight)
		}
	}
	return regions, nil
}

// hostIOShareHelp describes the flag --host-io-share.
const hostIOShareHelp = "limit on ordinary reads and writes of hosts, for the sake of jobs: percent of the time in " +
	"which they may use the flash while regions compute, 5 to 99; 100 means no limit"

// checkHostIOShare returns an error for a share that no drive has.
func checkHostIOShare(percent int) error {
	if percent < controller.MinHostIOShare || percent > controller.NoHostIOLimit {
		return fmt.Errorf("--host-io-share %d: want %d to %d percent, where %d means no limit", percent,
			controller.MinHostIOShare, controller.NoHostIOLimit, controller.NoHostIOLimit)
	}
	return nil
}

// storedFile is a file on a drive's volume.
type storedFile struct {
	inspection.File
	note string `table:""`
}

func (c driveCommands) put() *cobra.Command {
	return &cobra.Command{
		Use:   "put URI FILE...",
		Short: "Append files to a drive's volume, a tar archive that begins at block 0",
		Long: `Appends files to the drive's volume. The volume is a tar archive from byte 0 of the namespace, so
"tar -tf d0.flash" lists it. A file is there whole or not at all, whenever the power fails.`,
		Example: "  millrace drive put file:d0.flash data/part-00000.parquet data/part-00001.parquet",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < 2 {
				return cli.Usagef("%s wants a URI and at least one FILE", cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return withDrive(ctx, args[0], c.warnings(), func(dev *sdk.Device) error {
				if dev.Info().ReadOnly {
					return fmt.Errorf("%s: nothing can be put: the drive is open for reading only", args[0])
				}
				vol, err := volume.Open(ctx, dev)
				if err != nil {
					return err
				}
				var list []inspection.File
				for i, path := range args[1:] {
					m, err := putFile(ctx, vol, path)
					if err != nil {
						if i > 0 {
							err = fmt.Errorf("%w (on the drive before it: %s)", err, quantity.Of(i, "file"))
						}
						return fmt.Errorf("put %s: %w", path, err)
					}
					list = append(list, inspection.File{Name: m.Name, Offset: m.Offset, Bytes: m.Size, Sparse: m.Sparse})
				}
				return c.printMembers(list)
			})
		},
	}
}

func putFile(ctx context.Context, vol *volume.Volume, path string) (m volume.Member, err error) {
	f, state, err := openfiles.OpenRegular(path)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	name := filepath.Base(path)
	if err := vol.Put(ctx, name, state.Size, f); err != nil {
		return m, err
	}
	return vol.Stat(name)
}

func (c driveCommands) files() *cobra.Command {
	var f inspectFlags
	cmd := &cobra.Command{
		Use: "ls DRIVE", Short: "List the members of a drive's volume",
		Long:    "Lists the files on a drive: name, size, and where each begins.",
		Example: "  millrace drive ls file:d0.flash\n  millrace drive ls node0/d0",
		Args:    cli.ExactArgs("DRIVE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			v, err := c.inspectDrive(cmd.Context(), &f, args[0], inspection.Files)
			if err != nil {
				return err
			}
			return c.printMembers(*v.(*[]inspection.File))
		},
	}
	f.addFlags(cmd)
	return cmd
}

// trimResult is what `millrace drive trim` prints.
type trimResult struct {
	URI  string `json:"uri"`
	From int64  `json:"offset_bytes"`
	Size int64  `json:"bytes"`
}

func (c driveCommands) trim() *cobra.Command {
	return &cobra.Command{
		Use: "trim URI", Short: "Give back the room that no member of a drive's volume needs",
		Long: `Deallocates everything behind the end of the drive's volume: what a put that was killed left there,
or what was in the flash before its file was cut and written again. No member is touched. Nobody
else may be putting files on the drive at the same time.`,
		Example: "  millrace drive trim file:d0.flash", Args: cli.ExactArgs("URI"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return withDrive(ctx, args[0], c.warnings(), func(dev *sdk.Device) error {
				vol, err := volume.Open(ctx, dev)
				if err != nil {
					return err
				}
				n, err := vol.Trim(ctx)
				if err != nil {
					return err
				}
				t := trimResult{URI: args[0], From: dev.Size() - n, Size: n}
				return c.Print(t, func(w io.Writer) {
					fmt.Fprintf(w, "%s\t%d bytes from byte %d on hold nothing now\n", t.URI, t.Size, t.From)
				})
			})
		},
	}
}

func (c driveCommands) printMembers(members []inspection.File) error {
	list := []storedFile{}
	for _, m := range members {
		note := ""
		if m.Sparse {
			note = "cannot be read: it is sparse (archive it again without tar's --sparse)"
		}
		list = append(list, storedFile{m, note})
	}
	return printRows(c.console, list)
}

func (c driveCommands) info() *cobra.Command {
	var f inspectFlags
	cmd := &cobra.Command{
		Use: "info DRIVE", Short: "What a drive is: capacity, namespaces, memory, image, counters",
		Long:    "Shows what a drive is, which images it holds and takes, and what it counted since it was opened.",
		Example: "  millrace drive info file:d0.flash --output json\n  millrace drive info node0/d0",
		Args:    cli.ExactArgs("DRIVE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			v, err := c.inspectDrive(cmd.Context(), &f, args[0], inspection.Info)
			if err != nil {
				return err
			}
			return c.printInfo(driveInfo(*v.(*inspection.Description)))
		},
	}
	f.addFlags(cmd)
	return cmd
}

// driveInfo is what `millrace drive info` prints.
type driveInfo inspection.Description

// printMade prints the capacity and the compute of a new drive, and the commands that come next. Its identifiers are
// printed by drive info.
func (c driveCommands) printMade(i driveInfo) error {
	return c.Print(i, func(w io.Writer) {
		fmt.Fprintf(w, "drive\t%s\n", i.URI)
		i.printCapacity(w)
		i.printCompute(w)
		if i.Images != nil {
			printTrust(w, i.Images)
		}
		if !i.Diskless {
			fmt.Fprintf(w, "next\tmillrace drive put '%s' FILE... puts Parquet files onto it\n", i.URI)
		}
		fmt.Fprintf(w, "\tmillrace drive info '%s' shows its identifiers, namespaces and counters\n", i.URI)
	})
}

// printCapacity prints the size of a drive's flash.
func (i *driveInfo) printCapacity(w io.Writer) {
	if i.Diskless {
		fmt.Fprintf(w, "capacity\tno flash: hosts store windows in its memory, at most %d bytes a command\n", i.MDTS)
		return
	}
	fmt.Fprintf(w, "capacity\t%d bytes in blocks of %d, at most %d bytes a command\n", i.Size, i.BlockSize, i.MDTS)
}

// printCompute prints the threads, the memory and the commands of the region that is open, and the limit of ordinary
// reads and writes.
func (i *driveInfo) printCompute(w io.Writer) {
	of := ""
	if i.Regions > 1 {
		of = fmt.Sprintf("region %d of %d: ", i.Region, i.Regions)
	}
	fmt.Fprintf(w, "compute\t%s%s, %s, %d bytes of memory, %s commands\n", of, i.Backend,
		quantity.Of(i.Threads, "engine thread"), i.SLM.Size, i.Commands)
	if i.HostIOShare < controller.NoHostIOLimit {
		fmt.Fprintf(w, "host I/O\tordinary reads and writes use the flash for at most %d %% of the time while regions "+
			"compute\n", i.HostIOShare)
	}
}

func (c driveCommands) printInfo(i driveInfo) error {
	return c.Print(i, func(w io.Writer) {
		fmt.Fprintf(w, "drive\t%s\nmodel\t%s, serial %s, firmware %s\nsubsystem\t%s\n", i.URI, i.Model, i.Serial,
			i.Firmware, i.NQN)
		i.printCapacity(w)
		if i.ReadOnly {
			fmt.Fprintf(w, "writes\trefused: it is open for reading only\n")
		}
		printLostRanges(w, i.Lost)
		for _, n := range i.Namespaces {
			fmt.Fprintf(w, "namespace %d\t%s, %d bytes, %s\n", n.ID, commandSetName(n.CSI), n.Size, n.UUID)
		}
		if i.SLM.Size == 0 {
			fmt.Fprintf(w, "compute\tnone: the node's CPU preprocesses what lies here\n")
			return
		}
		i.printCompute(w)
		for _, p := range i.Programs {
			fmt.Fprintf(w, "program %d\t%s, active %t, image %s, %d bytes\n", p.Slot, p.Occupancy, p.Active, p.PUID,
				p.Bytes)
		}
		if i.Images != nil {
			printRegions(w, i.Images)
			printTrust(w, i.Images)
		}
		if k := i.Counters; k != nil {
			fmt.Fprintf(w,
				"counters\t%s, %s, %d bytes flash to DRAM, %d read on flash, %d DRAM to host, %d host to DRAM\n",
				quantity.Of(k.Programs, "execution"), quantity.Of(k.Rows, "row"), k.FlashToDRAMBytes, k.FlashLentBytes,
				k.DRAMToHostBytes, k.HostToDRAMBytes)
		}
	})
}

// printLostRanges prints the ranges of bytes that a drive has lost.
func printLostRanges(w io.Writer, lost []sdk.LostRange) {
	for _, l := range lost {
		fmt.Fprintf(w,
			"lost\tbytes %d to %d are missing and read as zeros: millrace drive validate names what they held\n",
			l.Offset, l.Offset+l.Size)
	}
}

func commandSetName(csi uint8) string {
	switch csi {
	case 0:
		return "NVM"
	case 3:
		return "Subsystem Local Memory"
	case 4:
		return "Computational Programs"
	}
	return fmt.Sprintf("command set %d", csi)
}
