package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/cmd/cli"
	"github.com/millrace/millrace/fpga/image"
	"github.com/millrace/millrace/sdk"
)

// verification is what `millrace image verify` prints: every step that a drive takes.
type verification struct {
	File     string             `json:"file"`
	Image    image.ID           `json:"image"` // empty: the bytes could not be read so far
	Standing image.Standing     `json:"standing"`
	Steps    []verificationStep `json:"steps"`
}

type verificationStep struct {
	Step   image.Step `json:"step"`
	Result string     `json:"result"` // passed, failed, skipped
	Detail string     `json:"detail"`
}

// verifySteps are the steps of `millrace image verify`, in order.
var verifySteps = []image.Step{
	image.StepFormat, image.StepInterface, image.StepRevocation, image.StepSignature, image.StepBackend,
	image.StepSelfTest,
}

func (c imageCommands) verify() *cobra.Command {
	var keys, revoke []string
	cmd := &cobra.Command{
		Use: "verify FILE", Short: "Try an image as a drive would",
		Long: `Takes an image through the steps that a drive of this build takes: format, interface, revocation,
signature, backend (every unit is known), self-test (its known answers come out of a drive in
memory). With --key it must be signed by one of these keys; without, the signature step is skipped.
If a step fails, those behind it are skipped and the exit status is 1.`,
		Example: "  millrace image verify new.mimg --key signing.pub.pem",
		Args:    cli.ExactArgs("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			trust := image.Trust{}
			var err error
			if trust.RevokedKeys, trust.RevokedImages, err = parseRevoked(revoke); err != nil {
				return cli.Usagef("--revoke: %w", err)
			}
			if len(keys) > 0 {
				trust.Policy = image.PolicyRequire
				if trust.Keys, err = publicKeys(keys); err != nil {
					return fmt.Errorf("--key: %w", err)
				}
			}
			b, err := readRegular(args[0], image.MaxSize)
			if err != nil {
				return err
			}
			v := verification{File: args[0]}
			failure := loadIntoMemoryDrive(cmd.Context(), b, trust)
			v.fillSteps(b, &trust, failure)
			err = c.Print(v, func(w io.Writer) {
				fmt.Fprintf(w, "image\t%s\nsignature\t%s\n", dash(v.Image.Short()), dash(string(v.Standing)))
				for _, s := range v.Steps {
					fmt.Fprintf(w, "%s\t%s\t%s\n", s.Step, s.Result, s.Detail)
				}
			})
			if err == nil && failure != nil {
				var refusal *image.LoadError
				if errors.As(failure, &refusal) {
					failure = refusal // the name of the temporary drive says nothing
				}
				err = fmt.Errorf("%s: %w", args[0], failure)
			}
			return err
		},
	}
	cmd.Flags().StringSliceVar(&keys, "key", nil, "PEM file with public keys, one of which must have signed it")
	cmd.Flags().StringSliceVar(&revoke, "revoke", nil, "key:ID or image:ID that is revoked")
	return cmd
}

// loadIntoMemoryDrive loads an image into a temporary drive in memory and tests it.
func loadIntoMemoryDrive(ctx context.Context, b []byte, trust image.Trust) (err error) {
	dev, err := sdk.Create(ctx, "mem:?size=1MiB&slm=1MiB", sdk.DeviceOptions{Trust: func(t *image.Trust) error {
		*t = trust
		return nil
	}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dev.Close()) }()
	const slot = 1
	if err := dev.LoadImage(ctx, slot, b); err != nil {
		return err
	}
	return dev.TestImage(ctx, slot)
}

// fillSteps fills in the results of the steps: failure is the error of the first one that failed.
func (v *verification) fillSteps(b []byte, trust *image.Trust, failure error) {
	if m, err := image.Parse(b); err == nil {
		v.Image = m.ID
		v.Standing, _ = trust.Standing(m)
	}
	var e *image.LoadError
	errors.As(failure, &e)
	failed := false
	for _, step := range verifySteps {
		s := verificationStep{Step: step, Result: "passed"}
		switch {
		case failed:
			s.Result, s.Detail = "skipped", "a step before it failed"
		case e != nil && e.Step == step:
			s.Result, s.Detail, failed = "failed", cli.OneLine(e.Err.Error()), true
		case step == image.StepSignature && trust.Policy == image.PolicyOff:
			s.Result, s.Detail = "skipped", "no --key was given"
		}
		v.Steps = append(v.Steps, s)
	}
}
