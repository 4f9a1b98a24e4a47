package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/cmd/cli"
	"github.com/millrace/millrace/fpga/image"
	"github.com/millrace/millrace/host/inspection"
	"github.com/millrace/millrace/sdk"
)

// trustFlags are the flags that set which images a drive accepts.
type trustFlags struct {
	policy string
	keys   []string
	revoke []string
}

func (f *trustFlags) addFlags(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&f.policy, "image-policy", "",
		"which images the drive takes: require (signed by a key it holds), warn or off (default: what it kept, else "+
			"off)")
	fl.StringSliceVar(&f.keys, "image-key", nil,
		"PEM file with public keys that sign images; they take the place of those that the drive kept")
	fl.StringSliceVar(&f.revoke, "image-revoke", nil, "key:ID or image:ID to revoke, beside those that are")
}

// change returns the function that applies the flags to a drive's trust; nil if no flag is given.
func (f *trustFlags) change() (func(*image.Trust) error, error) {
	if f.policy == "" && len(f.keys) == 0 && len(f.revoke) == 0 {
		return nil, nil
	}
	var policy image.Policy
	if f.policy != "" {
		var err error
		if policy, err = image.ParsePolicy(f.policy); err != nil {
			return nil, fmt.Errorf("--image-policy: %w", err)
		}
	}
	keys, err := publicKeys(f.keys)
	if err != nil {
		return nil, fmt.Errorf("--image-key: %w", err)
	}
	revokedKeys, revokedImages, err := parseRevoked(f.revoke)
	if err != nil {
		return nil, fmt.Errorf("--image-revoke: %w", err)
	}
	return func(t *image.Trust) error {
		if f.policy != "" {
			t.Policy = policy
		}
		if len(keys) > 0 {
			t.Keys = keys
		}
		t.Revoke(revokedKeys, revokedImages)
		return t.Check()
	}, nil
}

func (c imageCommands) trust() *cobra.Command {
	var (
		f     trustFlags
		force bool
	)
	cmd := &cobra.Command{
		Use: "trust URI", Short: "Change which images a drive on this machine takes",
		Long: `Changes policy, keys and what is revoked of a drive in a file, and prints what holds from now on.
The drive must not be open elsewhere. It is started with the change: if it may not take the active
image any more, which --image-revoke wants --force for, it goes back to the one before. The stock
image, which runs where no other may, cannot be revoked. A drive that is served elsewhere is told
there, by the same flags of millrace drive serve: no host may change what a drive trusts.`,
		Example: "  millrace image trust file:d0.flash --image-policy require --image-key signing.pub.pem\n" +
			"  millrace image trust file:d0.flash --image-revoke " +
			"image:da4c21672900be58db0d520c30c2dc76d1ef81466e65c1bb7d2421a8e43b0a3c",
		Args: cli.ExactArgs("URI"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			u, err := sdk.ParseURI(args[0])
			switch {
			case err != nil:
				return cli.WrongUsage(err)
			case u.Scheme != "file":
				return cli.Usagef("%s: want file:PATH: what another drive trusts is set where it is served", args[0])
			}
			change, err := f.change()
			switch {
			case err != nil:
				return cli.WrongUsage(err)
			case change == nil:
				return cli.Usagef(
					"nothing to change: give --image-policy, --image-key or --image-revoke; millrace image list " +
						"shows what holds")
			}
			if len(f.revoke) > 0 && !force {
				if err := f.checkRunning(cmd.Context(), args[0]); err != nil {
					return err
				}
			}
			dev, err := sdk.Open(cmd.Context(), args[0], sdk.DeviceOptions{Trust: change})
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, dev.Close()) }()
			r, err := dev.ImageLog(cmd.Context())
			if err != nil {
				return err
			}
			return c.printImages(&inspection.ImageList{Drive: dev.String(), LogPage: r})
		},
	}
	f.addFlags(cmd)
	cmd.Flags().BoolVar(&force, "force", false,
		"revoke also the image that runs: the drive goes back to the one before it, or to the stock image")
	return cmd
}

// checkRunning returns an error if the image that a drive runs would be revoked, by its id or by the key that signed
// it.
func (f *trustFlags) checkRunning(ctx context.Context, uri string) error {
	keys, images, err := parseRevoked(f.revoke)
	if err != nil {
		return cli.Usagef("--image-revoke: %w", err)
	}
	return withDrive(ctx, uri, nil, func(dev *sdk.Device) error {
		r, err := dev.ImageLog(ctx)
		if err != nil {
			return err
		}
		for _, s := range r.Slots {
			if s.Active && (slices.Contains(images, s.Image) || slices.Contains(keys, s.SignedBy)) {
				return fmt.Errorf(
					"%s runs image %s, which this would revoke: activate another one first (millrace image "+
						"activate), or have the drive go back "+
						"to the one before it with --force", dev, s.Image.Short())
			}
		}
		return nil
	})
}

// parseRevoked parses key:ID and image:ID.
func parseRevoked(list []string) (keys []image.KeyID, images []image.ID, err error) {
	for _, s := range list {
		kind, text, _ := strings.Cut(s, ":")
		switch kind {
		case "key":
			var k image.KeyID
			if err := k.UnmarshalText([]byte(text)); err != nil || k == (image.KeyID{}) {
				return nil, nil, fmt.Errorf("%q: want key: and 64 hexadecimal digits", s)
			}
			keys = append(keys, k)
		case "image":
			var id image.ID
			if err := id.UnmarshalText([]byte(text)); err != nil || id == (image.ID{}) {
				return nil, nil, fmt.Errorf("%q: want image: and 64 hexadecimal digits", s)
			}
			images = append(images, id)
		default:
			return nil, nil, fmt.Errorf("%q: want key:ID or image:ID", s)
		}
	}
	return keys, images, nil
}
