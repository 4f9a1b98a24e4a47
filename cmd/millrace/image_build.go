package main

import (
	"crypto/ed25519"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/cmd/cli"
	"github.com/millrace/millrace/fpga/image"
	"github.com/millrace/millrace/fpga/image/document"
	"github.com/millrace/millrace/fpga/image/stock"
	"github.com/millrace/millrace/internal/wholefile"
)

// writtenImage is an image file that was written.
type writtenImage struct {
	File     string   `json:"file"`
	Image    image.ID `json:"image"`
	UUID     string   `json:"uuid"`
	Bytes    int      `json:"bytes"`
	SignedBy string   `json:"signed_by"` // key id; empty: unsigned
}

// writeImage writes an image file and prints what it is. After a crash the file is whole or absent.
func (c imageCommands) writeImage(path string, b []byte) error {
	m, err := image.Parse(b)
	if err != nil {
		return err
	}
	if err := wholefile.WritePublic(path, b); err != nil {
		return err
	}
	d := describeImage(path, m)
	return c.Print(writtenImage{path, d.Image, d.UUID, d.Bytes, d.SignedBy}, func(w io.Writer) {
		signed := "unsigned"
		if d.SignedBy != "" {
			signed = "signed by key " + d.SignedBy
		}
		fmt.Fprintf(w, "%s: image %s, %d bytes, %s\n", path, d.Image, d.Bytes, signed)
	})
}

// sourceDateEpoch returns SOURCE_DATE_EPOCH, the time that reproducible builds write: seconds since 1970, 0 if it is
// not set.
func sourceDateEpoch() (uint64, error) {
	s := os.Getenv("SOURCE_DATE_EPOCH")
	if s == "" {
		return 0, nil
	}
	t, err := strconv.ParseUint(s, 10, 63)
	if err != nil {
		return 0, fmt.Errorf("SOURCE_DATE_EPOCH %q: want seconds since 1970", s)
	}
	return t, nil
}

func (c imageCommands) build() *cobra.Command {
	var (
		out, key string
		isStock  bool
		modules  imageModuleFlags
	)
	cmd := &cobra.Command{
		Use: "build [SPEC]", Short: "Build an image from a document",
		Long: `Builds an image from a document in YAML or JSON, or with --stock the image that drives come with.
--stock NAME is a stock image with the units and parameters of a paper's design: presto, piper, minipipe;
passthrough decodes and computes nothing.
The bytes follow from the document alone: the time is the document's, else SOURCE_DATE_EPOCH, else
0. "base: stock" begins with the stock image and replaces what the document names; docs/images.md
has the keys. With --wasm the image holds WebAssembly modules with operators of one's own, which drives
that activate it run; --vectors adds known answers of a module to the self-tests.`,
		Example: "  millrace image build --stock --out stock.mimg\n" +
			"  millrace image build spec.yaml --out new.mimg --key signing.pem\n" +
			"  millrace image build --stock presto --out presto.mimg\n" +
			"  millrace image build --stock --wasm features.wasm --vectors features=vectors.json --out features.mimg",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 || !isStock && len(args) == 0 {
				return cli.Usagef("%s wants either a SPEC, or --stock and perhaps a stock image's name", cmd.CommandPath())
			}
			if isStock && len(args) == 1 && !slices.Contains(stock.Names(), args[0]) {
				return cli.Usagef("--stock %s: want %s, or nothing for the image that drives come with; a SPEC goes "+
					"without --stock", args[0], strings.Join(stock.Names(), ", "))
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if out == "" {
				return cli.Usagef("--out is wanted: the file to write")
			}
			b, err := buildImage(args, isStock, &modules)
			if err != nil {
				return err
			}
			if key != "" {
				if b, err = signWith(key, b); err != nil {
					return err
				}
			}
			return c.writeImage(out, b)
		},
	}
	cmd.Flags().StringVar(&out, "out", "", "file to write")
	cmd.Flags().BoolVar(&isStock, "stock", false, "build the stock image, or the one of a name behind it")
	cmd.Flags().StringVar(&key, "key", "", "sign it too, with the private key in this PEM file")
	modules.addFlags(cmd.Flags())
	return cmd
}

// buildImage builds from the document in a file, or a stock image.
func buildImage(args []string, isStock bool, modules *imageModuleFlags) ([]byte, error) {
	s, name, err := readImageSpec(args, isStock)
	if err == nil {
		err = modules.addTo(s)
	}
	if err != nil {
		return nil, err
	}
	b, err := image.Build(s)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return b, nil
}

// readImageSpec returns the specification in a file, or a stock image's, and its name.
func readImageSpec(args []string, isStock bool) (*image.Spec, string, error) {
	if isStock {
		b, err := stockImage(args)
		if err != nil {
			return nil, "", err
		}
		m, err := image.Parse(b)
		if err != nil {
			return nil, "", err
		}
		return &m.Spec, "stock image", nil
	}
	epoch, err := sourceDateEpoch()
	if err != nil {
		return nil, "", err
	}
	text, err := readRegular(args[0], document.MaxBytes)
	if err != nil {
		return nil, "", err
	}
	s, err := document.Read(text, epoch)
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w", args[0], err)
	}
	return s, args[0], nil
}

// stockImage builds the stock image of the only argument, or without one that of drives.
func stockImage(args []string) ([]byte, error) {
	if len(args) == 0 {
		return stock.Image()
	}
	return stock.Named(args[0])
}

// signWith signs an image with the private key in a PEM file.
func signWith(path string, b []byte) ([]byte, error) {
	text, err := readRegular(path, image.MaxKeyFile)
	if err != nil {
		return nil, err
	}
	key, err := image.ParsePrivateKey(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	m, err := image.Parse(b)
	if err != nil {
		return nil, err
	}
	return m.Sign(key)
}

// publicKeys reads the public keys of PEM files.
func publicKeys(paths []string) ([]ed25519.PublicKey, error) {
	var keys []ed25519.PublicKey
	for _, p := range paths {
		text, err := readRegular(p, image.MaxKeyFile)
		if err != nil {
			return nil, err
		}
		more, err := image.ParsePublicKeys(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p, err)
		}
		keys = append(keys, more...)
	}
	return keys, nil
}

func (c imageCommands) sign() *cobra.Command {
	var out, key string
	cmd := &cobra.Command{
		Use: "sign FILE", Short: "Sign an image",
		Long: `Signs an image with an Ed25519 key, in place of a signature that it may carry. Its id stays the
same. OpenSSL makes the keys: "openssl genpkey -algorithm ed25519 -out signing.pem", and "openssl
pkey -in signing.pem -pubout -out signing.pub.pem" for the drives.`,
		Example: "  millrace image sign new.mimg --key signing.pem",
		Args:    cli.ExactArgs("FILE"),
		RunE: func(_ *cobra.Command, args []string) error {
			if key == "" {
				return cli.Usagef("--key is wanted: the PEM file with the private key")
			}
			m, err := readImage(args[0])
			if err != nil {
				return err
			}
			b, err := signWith(key, m.Bytes())
			if err != nil {
				return err
			}
			if out == "" {
				out = args[0]
			}
			return c.writeImage(out, b)
		},
	}
	cmd.Flags().StringVar(&key, "key", "", "PEM file with the private key (PKCS #8)")
	cmd.Flags().StringVar(&out, "out", "", "file to write (default: the image itself is replaced)")
	return cmd
}
