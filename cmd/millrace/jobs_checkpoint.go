package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/cmd/cli"
	"github.com/millrace/millrace/internal/quantity"
	"github.com/millrace/millrace/trainmgr/remote"
)

// checkpointResult is what `millrace jobs checkpoint` prints.
type checkpointResult struct {
	Job          string `json:"job"`
	File         string `json:"file"`
	Epoch        uint64 `json:"epoch"` // from 0
	Acknowledged uint64 `json:"mini_batches_acknowledged"`
}

func (c jobCommands) checkpoint() *cobra.Command {
	var (
		f   remoteFlags
		out string
	)
	cmd := &cobra.Command{
		Use:   "checkpoint JOB",
		Short: "Write the token of a job that runs, or was abandoned",
		Long: `Writes what all ranks of a job have acknowledged as a token, sealed by the control plane: a job
submitted with it as --resume delivers the rest. It is for jobs whose trainer kept no token of its
own, as one that was abandoned; of one that was cancelled, has failed or is done there is none.`,
		Example: "  millrace jobs checkpoint ads --out ads.token\n" +
			"  millrace jobs submit --pipeline rm1 --name ads-2 --resume ads.token",
		Args: cli.ExactArgs("JOB"),
	}
	cmd.Flags().StringVar(&out, "out", "", "file to write, replaced whole")
	return askControl(cmd, &f, func(ctx context.Context, client *remote.Client, args []string) error {
		if out == "" {
			return cli.Usagef("--out is wanted: the file to write the token to")
		}
		b, err := client.Checkpoint(ctx, args[0])
		if err != nil {
			return err
		}
		t, err := remote.ReadToken(b)
		if err != nil {
			return fmt.Errorf("checkpoint of job %s: %w", args[0], err)
		}
		if err := writeSealed(out, b); err != nil {
			return err
		}
		v := checkpointResult{Job: args[0], File: out, Epoch: t.Epoch, Acknowledged: t.Mark}
		for _, r := range t.Ranges {
			v.Acknowledged += r.To - r.From
		}
		return c.Print(v, func(w io.Writer) {
			fmt.Fprintf(w, "token of job %s written to %s: it acknowledges %s of epoch %d\n", v.Job, v.File,
				quantity.Of(v.Acknowledged, "mini-batch"), v.Epoch+1)
		})
	})
}

// writeSealed writes a token as text.
func writeSealed(path string, token []byte) error {
	return writeCheckpoint(path, []byte(base64.RawURLEncoding.EncodeToString(token)))
}

// readSealed reads a token that a control plane sealed: text, as train and jobs checkpoint write it, or the bytes that
// a launcher received. what is the name of the token in errors.
func readSealed(what, path string) ([]byte, error) {
	b, err := readDocument(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	if raw, err := base64.RawURLEncoding.DecodeString(string(bytes.TrimSpace(b))); err == nil {
		b = raw
	}
	if _, err := remote.ReadToken(b); err != nil {
		return nil, fmt.Errorf("%s %s: %w", what, path, err)
	}
	return b, nil
}
