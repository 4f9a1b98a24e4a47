package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/cmd/cli"
	"github.com/millrace/millrace/fpga/image"
	"github.com/millrace/millrace/host/inspection"
	"github.com/millrace/millrace/nvme/cs"
	"github.com/millrace/millrace/sdk"
)

// slotResult is what commands print that load, activate or roll back an image.
type slotResult struct {
	Drive  string     `json:"drive"`
	Slot   int        `json:"slot"`
	Role   image.Role `json:"role"`
	Image  image.ID   `json:"image"`
	Region int        `json:"region"`
	Active bool       `json:"active"`
	Tested bool       `json:"tested"`
}

// printSlot prints the image that a slot holds.
func (c imageCommands) printSlot(ctx context.Context, dev *sdk.Device, slot int, did string) error {
	r, err := dev.ImageLog(ctx)
	if err != nil {
		return err
	}
	if slot >= len(r.Slots) {
		return fmt.Errorf("%s: the drive does not have slot %d", dev, slot)
	}
	s := r.Slots[slot]
	active, ok := r.Active()
	result := slotResult{dev.String(), s.Slot, s.Role, s.Image, dev.Region(), ok && active.Slot == slot, s.Tested}
	return c.Print(result, func(w io.Writer) {
		in := ""
		if len(r.Regions) > 1 {
			in = fmt.Sprintf(", region %d", dev.Region())
		}
		fmt.Fprintf(w, "%s: %s image %s, slot %d%s\n", dev, did, s.Image, s.Slot, in)
	})
}

func (c imageCommands) load() *cobra.Command {
	var (
		slot     int
		activate bool
		region   regionFlag
	)
	cmd := &cobra.Command{
		Use: "load URI FILE", Short: "Put an image into a slot of a drive",
		Long: `Puts an image into a slot of a drive, which judges it: format, interface, revocation, signature. The
active image goes on running. Without --slot it goes where it lies already, or into the free slot of
the field pair (1 and 2). With --activate it is tested and made the active one.`,
		Example: "  millrace image load file:d0.flash new.mimg\n" +
			"  millrace image load tcp://192.0.2.7:4420/nqn.2024-01.io.millrace:d0 new.mimg --activate",
		Args: cli.ExactArgs("URI", "FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if given := cmd.Flags().Changed("slot"); given && slot < 1 {
				return cli.Usagef("--slot %d: want 1 or more: slot 0 holds the image that the drive came with", slot)
			}
			if err := checkURI(args[0]); err != nil {
				return err
			}
			if err := region.check(); err != nil {
				return err
			}
			b, err := readRegular(args[1], image.MaxSize)
			if err != nil {
				return err
			}
			return withRegion(cmd.Context(), args[0], int(region), nil, func(dev *sdk.Device) error {
				ctx, did := cmd.Context(), "loaded"
				if slot == 0 {
					at, loaded, err := dev.PlaceImage(ctx, b)
					if err != nil {
						return err
					}
					if slot = at; !loaded {
						did = "it has already"
					}
				} else if err := dev.LoadImage(ctx, slot, b); err != nil {
					return err
				}
				if activate {
					if err := dev.TestImage(ctx, slot); err != nil {
						return err
					}
					if err := dev.ActivateImage(ctx, slot); err != nil {
						return err
					}
					did = "activated"
				}
				return c.printSlot(ctx, dev, slot, did)
			})
		},
	}
	cmd.Flags().IntVar(&slot, "slot", 0,
		"slot to load into: 1 or 2, or 3 to try an image (default: the free one of 1 and 2)")
	cmd.Flags().BoolVar(&activate, "activate", false, "make it the active image")
	region.addFlag(cmd)
	return cmd
}

// regionFlag is the flag --region.
type regionFlag int

func (r *regionFlag) addFlag(cmd *cobra.Command) {
	cmd.Flags().IntVar((*int)(r), "region", 0, "region whose image changes, unless the URI names one")
}

func (r regionFlag) check() error {
	if r < 0 || r >= cs.MaxRegions {
		return cli.Usagef("--region %d: want 0 to %d", r, cs.MaxRegions-1)
	}
	return nil
}

func (c imageCommands) activate() *cobra.Command {
	var region regionFlag
	cmd := &cobra.Command{
		Use: "activate URI SLOT|ID", Short: "Make an image that a drive holds the active one",
		Long: `Makes the image in a slot the active one; it may be named by its id, or the first 16 digits of it,
instead. The drive tests it first, and the image that was active goes on running until the test is
passed. While a host holds memory of the region, or executes there, it is refused. Other regions go on.`,
		Example: "  millrace image activate file:d0.flash 1\n" +
			"  millrace image activate file:d0.flash da4c21672900be58\n" +
			"  millrace image activate file:d0.flash 2 --region 1",
		Args: cli.ExactArgs("URI", "SLOT|ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			find, err := parseSlot(args[1])
			if err != nil {
				return cli.WrongUsage(err)
			}
			if err := region.check(); err != nil {
				return err
			}
			return withRegion(cmd.Context(), args[0], int(region), nil, func(dev *sdk.Device) error {
				ctx := cmd.Context()
				r, err := dev.ImageLog(ctx)
				if err != nil {
					return err
				}
				slot, err := find(r)
				if err != nil {
					return fmt.Errorf("%s: %w", dev, err)
				}
				if err := dev.ActivateImage(ctx, slot); err != nil {
					return err
				}
				return c.printSlot(ctx, dev, slot, "activated")
			})
		},
	}
	region.addFlag(cmd)
	return cmd
}

// parseSlot parses a slot's number, or the id of an image, whole or its first 16 digits. It returns a function that
// finds the slot in a log page.
func parseSlot(s string) (func(*image.LogPage) (int, error), error) {
	if n, err := strconv.Atoi(s); err == nil && n >= 0 && n < 256 {
		return func(r *image.LogPage) (int, error) {
			for _, t := range r.Slots {
				if t.Slot == n && t.Image == (image.ID{}) && t.Reason == "" {
					return 0, fmt.Errorf("slot %d is empty: put an image into it with millrace image load", n)
				}
			}
			return n, nil
		}, nil
	}
	if len(s) != 16 && len(s) != 64 || strings.Trim(s, "0123456789abcdef") != "" {
		return nil, fmt.Errorf("%q: want the number of a slot, or an image's id or its first 16 hexadecimal digits", s)
	}
	return func(r *image.LogPage) (int, error) {
		for _, t := range r.Slots {
			if t.Image != (image.ID{}) && strings.HasPrefix(t.Image.String(), s) {
				return t.Slot, nil
			}
		}
		return 0, fmt.Errorf("no slot holds image %s: load it first", s)
	}, nil
}

func (c imageCommands) rollback() *cobra.Command {
	var region regionFlag
	cmd := &cobra.Command{
		Use: "rollback URI", Short: "Go back to the image that was active before",
		Long: `Activates the image that was active before the one that is; where that is gone, the stock image,
which always is there. Rolling back twice leads back again.`,
		Example: "  millrace image rollback file:d0.flash",
		Args:    cli.ExactArgs("URI"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := region.check(); err != nil {
				return err
			}
			return withRegion(cmd.Context(), args[0], int(region), nil, func(dev *sdk.Device) error {
				to, err := dev.RollbackImage(cmd.Context())
				if err != nil {
					return err
				}
				return c.printSlot(cmd.Context(), dev, to.Slot, "went back to")
			})
		},
	}
	region.addFlag(cmd)
	return cmd
}

func (c imageCommands) list() *cobra.Command {
	var f inspectFlags
	cmd := &cobra.Command{
		Use: "list DRIVE", Short: "What images a drive holds, which it takes, and what it refused lately",
		Long: "Lists the slots of a drive with the image in each, the policy and the keys by which it takes " +
			"images, and the images that it refused since it was opened.",
		Example: "  millrace image list file:d0.flash\n  millrace image list node0/d0",
		Args:    cli.ExactArgs("DRIVE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			v, err := c.inspectDrive(cmd.Context(), &f, args[0], inspection.Images)
			if err != nil {
				return err
			}
			return c.printImages(v.(*inspection.ImageList))
		},
	}
	f.addFlags(cmd)
	return cmd
}

// printImages prints the images of a drive.
func (c imageCommands) printImages(r *inspection.ImageList) error {
	return c.Print(r, func(w io.Writer) {
		fmt.Fprintf(w, "slot\trole\timage\tbytes\tsignature\tstate\n")
		for _, s := range r.Slots {
			id := "-"
			if s.Image != (image.ID{}) {
				id = s.Image.Short()
			}
			fmt.Fprintf(w, "%d\t%s\t%s\t%d\t%s\t%s\n", s.Slot, s.Role, id, s.Bytes, dash(string(s.Standing)),
				slotState(&s))
		}
		printRegions(w, r.LogPage)
		printTrust(w, r.LogPage)
		for _, f := range r.Refusals {
			fmt.Fprintf(w, "refused\t%s: %s\n", f.Operation, cli.OneLine(f.Err().Error()))
		}
	})
}

// slotState returns the state of a slot in words.
func slotState(s *image.Slot) string {
	var words []string
	for _, w := range []struct {
		is   bool
		word string
	}{
		{s.Active, "active"}, {s.Boot && !s.Active, "boots next"}, {s.Previous, "before it"}, {s.Tested, "tested"},
		{s.Reason != "", s.Reason},
	} {
		if w.is {
			words = append(words, w.word)
		}
	}
	return dash(strings.Join(words, ", "))
}

// printRegions prints the regions of a drive that has several.
func printRegions(w io.Writer, r *image.LogPage) {
	if len(r.Regions) < 2 {
		return
	}
	for _, g := range r.Regions {
		runs := "no image"
		if g.Slot != image.NoSlot {
			runs = fmt.Sprintf("slot %d, image %s", g.Slot, r.Slots[g.Slot].Image.Short())
		}
		fmt.Fprintf(w, "region %d\t%s, %d engine threads, %d bytes of memory from byte %d\n", g.Region, runs, g.Threads,
			g.SLMBytes, g.SLMAddress)
	}
}

// printTrust prints a drive's policy and keys.
func printTrust(w io.Writer, r *image.LogPage) {
	fmt.Fprintf(w, "image interface\t%s\nimage policy\t%s\n", r.Interface, r.Policy)
	for _, k := range r.Keys {
		fmt.Fprintf(w, "image key\t%s\n", k)
	}
	for _, k := range r.RevokedKeys {
		fmt.Fprintf(w, "revoked key\t%s\n", k)
	}
	for _, id := range r.RevokedImages {
		fmt.Fprintf(w, "revoked image\t%s\n", id)
	}
}
