package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/cmd/cli"
	"github.com/millrace/millrace/fpga/image"
	"github.com/millrace/millrace/fpga/image/document"
	"github.com/millrace/millrace/fpga/image/stock"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/internal/terminal"
	"github.com/millrace/millrace/internal/wholefile"
)

// imageCommands are the commands of FPGA images, in files and on drives.
type imageCommands struct{ *console }

func (c imageCommands) command() *cobra.Command {
	return cli.Group("image",
		"Images: what the drives' FPGAs are to be; build and sign them, load and activate them, go back",
		c.build(), c.sign(), c.verify(), c.info(), c.diff(), c.explore(), c.pack(), c.load(), c.activate(),
		c.rollback(), c.list(), c.trust())
}

// readRegular reads a file of at most limit bytes. The file is examined before it is opened: opening a pipe would wait
// for its writer.
func readRegular(path string, limit int64) ([]byte, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: it is not a regular file", path)
	}
	return wholefile.Read(path, limit)
}

// readImage reads an image file.
func readImage(path string) (*image.Image, error) {
	b, err := readRegular(path, image.MaxSize)
	if err != nil {
		return nil, err
	}
	m, err := image.Parse(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return m, nil
}

// imageDescription is what `millrace image info` prints.
type imageDescription struct {
	File      string          `json:"file"`
	Image     image.ID        `json:"image"`
	Stock     string          `json:"stock,omitempty"` // name of the stock image that it is
	UUID      string          `json:"uuid"`
	Interface string          `json:"interface"`
	Platform  string          `json:"platform"`
	Time      uint64          `json:"time_seconds"` // since 1970
	Bytes     int             `json:"bytes"`
	SignedBy  string          `json:"signed_by"` // key id; empty: unsigned
	Build     image.BuildInfo `json:"build"`
	Sections  []imageSection  `json:"sections"`
	Units     []string        `json:"units"`    // name and version
	Unproven  []string        `json:"unproven"` // units that no known answer proves
	SelfTests []string        `json:"self_tests"`
	Modules   []imageModule   `json:"modules"`
	// Parameters are empty where the image states none. Unsourced are figures of format 1.0, which nothing reads.
	Parameters []image.NamedFigure `json:"parameters"`
	Unsourced  []string            `json:"figures_without_source"`
}

// imageModule is a WebAssembly module of an image.
type imageModule struct {
	Name      string               `json:"name"`
	SHA256    program.ModuleDigest `json:"sha256"`
	Bytes     int                  `json:"bytes"`
	Functions []string             `json:"functions"` // as add(int64, int64) -> int64
}

type imageSection struct {
	Name     string `json:"name"`
	Required bool   `json:"required"`
	Bytes    int    `json:"bytes"`
	SHA256   string `json:"sha256"`
}

func describeImage(path string, m *image.Image) imageDescription {
	d := imageDescription{
		File: path, Image: m.ID, UUID: m.ID.UUID().String(), Interface: m.Interface().String(),
		Platform: m.Spec.Platform, Time: m.Spec.Time,
		Bytes: len(m.Bytes()), Build: m.Spec.Build, Parameters: []image.NamedFigure{},
		Unsourced: append([]string{}, m.Spec.Unsourced()...),
		Units:     []string{}, Unproven: []string{}, SelfTests: []string{}, Modules: []imageModule{},
	}
	if p := m.Spec.Parameters; p != nil {
		d.Parameters = p.Figures(m.Spec.Units)
	}
	if m.Signature != nil {
		d.SignedBy = image.KeyID(m.Signature.Key).String()
	}
	for _, s := range m.Sections {
		x := imageSection{s.Name, s.Flags&image.Required != 0, s.Size, ""}
		if s.Kind != image.KindSignature { // the table is signed itself, so it cannot hold the signature's digest
			x.SHA256 = fmt.Sprintf("%x", s.SHA256)
		}
		d.Sections = append(d.Sections, x)
	}
	for i := range m.Spec.Modules {
		x := &m.Spec.Modules[i]
		d.Modules = append(d.Modules, imageModule{x.Name, x.Digest(), len(x.Bytes), x.Functions()})
	}
	proven := map[int]bool{}
	for _, v := range m.Spec.SelfTest {
		d.SelfTests = append(d.SelfTests, v.Name)
		for _, u := range v.Units {
			proven[u] = true
		}
	}
	for _, u := range m.Spec.Units {
		d.Units = append(d.Units, fmt.Sprintf("%s/%d", u.Name, u.Version))
		if !proven[int(u.Number)] {
			d.Unproven = append(d.Unproven, u.Name)
		}
	}
	return d
}

func (c imageCommands) info() *cobra.Command {
	var spec bool
	cmd := &cobra.Command{
		Use: "info FILE", Short: "What an image file holds",
		Long: `Prints what an image file holds, after everything about its format was checked: sections, digests,
identity. The signature is not judged, for that takes keys: see millrace image verify. With --spec
the document is printed, in JSON, from which millrace image build makes the same image again.`,
		Example: "  millrace image info stock.mimg\n  millrace image info stock.mimg --spec > spec.json",
		Args:    cli.ExactArgs("FILE"),
		RunE: func(_ *cobra.Command, args []string) error {
			m, err := readImage(args[0])
			if err != nil {
				return err
			}
			if spec {
				e := json.NewEncoder(c.Out)
				e.SetIndent("", "  ")
				return e.Encode(document.Of(&m.Spec))
			}
			d := describeImage(args[0], m)
			if d.Stock, err = stock.NameOf(m.ID); err != nil {
				return err
			}
			return c.Print(d, d.table)
		},
	}
	cmd.Flags().BoolVar(&spec, "spec", false, "print the document that builds it, in JSON")
	return cmd
}

// table prints what an image file holds.
func (d *imageDescription) table(w io.Writer) {
	if d.Stock != "" {
		fmt.Fprintf(w, "stock image\t%s\n", d.Stock)
	}
	fmt.Fprintf(w, "image\t%s\nuuid\t%s\ninterface\t%s\nplatform\t%s\nbytes\t%d\n", d.Image, d.UUID,
		d.Interface, d.Platform, d.Bytes)
	signed := "no"
	if d.SignedBy != "" {
		signed = "by key " + d.SignedBy
	}
	fmt.Fprintf(w, "signed\t%s\nunits\t%s\n", signed, strings.Join(d.Units, ", "))
	for _, x := range d.Modules {
		fmt.Fprintf(w, "module %s\t%s, %d bytes\n", terminal.Cell(x.Name), x.SHA256, x.Bytes)
		fmt.Fprintf(w, "\tfunctions: %s\n", terminal.Cell(listOrNone(x.Functions)))
	}
	fmt.Fprintf(w, "self-tests\t%s\n", listOrNone(d.SelfTests))
	fmt.Fprintf(w, "without self-test\t%s\n", listOrNone(d.Unproven))
	printParameters(w, *d)
	fmt.Fprintf(w, "built by\t%s %s\n", d.Build.Tool, d.Build.Revision)
	for _, s := range d.Sections {
		fmt.Fprintf(w, "section %s\t%d bytes", s.Name, s.Bytes)
		if s.SHA256 != "" {
			fmt.Fprintf(w, ", SHA-256 %s", s.SHA256[:16])
		}
		fmt.Fprintln(w)
	}
}

// printParameters prints the figures of an image with their sources.
func printParameters(w io.Writer, d imageDescription) {
	if len(d.Parameters) == 0 {
		fmt.Fprintf(w, "parameters\tnot stated\n")
	}
	for _, f := range d.Parameters {
		fmt.Fprintf(w, "%s\t%s\n", terminal.Cell(f.Name), terminal.Cell(f.Figure.String()))
	}
	if len(d.Unsourced) > 0 {
		fmt.Fprintf(w, "without source, not read\t%s\n", terminal.Cell(listOrNone(d.Unsourced)))
	}
}

func listOrNone(list []string) string {
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, ", ")
}

// imageComparison is what `millrace image diff` prints.
type imageComparison struct {
	A           string             `json:"first"`
	B           string             `json:"second"`
	SameImage   bool               `json:"same_image"` // the same id: they do the same
	SameBytes   bool               `json:"same_bytes"`
	Differences []image.Difference `json:"differences"`
}

func (c imageCommands) diff() *cobra.Command {
	return &cobra.Command{
		Use: "diff FILE FILE", Short: "What differs between two images",
		Long: `Compares two images value by value. Images with the same id do the same: builds, signatures and user
bytes may differ. The exit status is 0 whether they differ or not.`,
		Example: "  millrace image diff old.mimg new.mimg",
		Args:    cli.ExactArgs("FILE", "FILE"),
		RunE: func(_ *cobra.Command, args []string) error {
			a, err := readImage(args[0])
			if err != nil {
				return err
			}
			b, err := readImage(args[1])
			if err != nil {
				return err
			}
			d := imageComparison{
				A: args[0], B: args[1], SameImage: a.ID == b.ID, SameBytes: string(a.Bytes()) == string(b.Bytes()),
				Differences: image.Diff(a, b),
			}
			if d.Differences == nil {
				d.Differences = []image.Difference{}
			}
			return c.Print(d, func(w io.Writer) {
				switch {
				case d.SameBytes:
					fmt.Fprintln(w, "the same bytes")
				case d.SameImage:
					fmt.Fprintf(w, "the same image, %s\n", a.ID)
				}
				for _, x := range d.Differences {
					fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", x.Section, x.Path, dash(x.Was), dash(x.Is))
				}
			})
		},
	}
}

// dash returns what a cell of a table shows: the text, or a dash where there is none.
func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
