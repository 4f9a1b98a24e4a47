package document

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"github.com/google/uuid"
	"go.yaml.in/yaml/v3"

	"github.com/millrace/millrace/fpga/image"
	"github.com/millrace/millrace/fpga/image/stock"
)

// MaxBytes bounds a document. Modules and known answers are its largest parts.
const MaxBytes = 8 << 20

// maxDepth bounds how deep values lie in each other.
const maxDepth = 16

// Document is a Spec as it is written. Parts that are empty are left out.
type Document struct {
	Platform    string              `json:"platform"`
	Interface   uuid.UUID           `json:"interface"`
	Time        uint64              `json:"time"` // seconds since 1970
	Units       []image.Unit        `json:"units,omitempty"`
	Compute     []image.ComputeUnit `json:"compute,omitempty"`
	Memories    []image.Memory      `json:"memories,omitempty"`
	Connections []image.Connection  `json:"connections,omitempty"`
	Clocks      []image.Clock       `json:"clocks,omitempty"` // Images of format 1.0 have them; Read refuses them.
	Partition   image.Partition     `json:"partition"`
	Kernels     []image.Kernel      `json:"kernels,omitempty"`
	Resources   *image.Resources    `json:"resources,omitempty"`
	SelfTest    []image.Vector      `json:"selftest,omitempty"`
	Modules     []image.Module      `json:"modules,omitempty"`
	Parameters  *image.Parameters   `json:"parameters,omitempty"`
	Build       image.BuildInfo     `json:"build"`
	User        []byte              `json:"user,omitempty"`
}

// Of writes a Spec as a document.
func Of(s *image.Spec) Document {
	d := Document{
		Platform: s.Platform, Interface: s.Interface, Time: s.Time, Units: s.Units, Compute: s.Compute, Memories: s.Memories,
		Connections: s.Connections, Clocks: s.Clocks, Partition: s.Partition, Kernels: s.Kernels, SelfTest: s.SelfTest,
		Modules: s.Modules, Parameters: s.Parameters, Build: s.Build, User: s.User,
	}
	if len(s.Resources.Units) > 0 {
		d.Resources = &s.Resources
	}
	return d
}

// Error is a fault of a document.
type Error struct {
	Line    int    // from 1; 0 where it is not known
	Part    string // as units[2]; "" for the whole
	Message string
}

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("image document: ")
	if e.Line > 0 {
		fmt.Fprintf(&b, "line %d: ", e.Line)
	}
	if e.Part != "" {
		b.WriteString(e.Part + ": ")
	}
	return b.String() + e.Message
}

func fault(n *yaml.Node, part, format string, a ...any) error {
	return &Error{Line: n.Line, Part: part, Message: fmt.Sprintf(format, a...)}
}

// Read reads a document. epoch is the image's time where the document has none.
func Read(b []byte, epoch uint64) (*image.Spec, error) {
	if len(b) > MaxBytes {
		return nil, &Error{Message: fmt.Sprintf("%d bytes, at most %d", len(b), MaxBytes)}
	}
	root, err := parse(b)
	if err != nil {
		return nil, err
	}
	parts := make(map[string]*yaml.Node)
	for i := 0; i+1 < len(root.Content); i += 2 {
		key := root.Content[i]
		if parts[key.Value] != nil {
			return nil, fault(key, key.Value, "is there twice")
		}
		parts[key.Value] = root.Content[i+1]
	}
	s := &image.Spec{Time: epoch}
	if n := parts["base"]; n != nil {
		if n.Value != "stock" {
			return nil, fault(n, "base", "%q: want stock, or leave it out", n.Value)
		}
		stock, err := stockSpec()
		if err != nil {
			return nil, err
		}
		*s = *stock
		s.Time = epoch
	}
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, n := root.Content[i], root.Content[i+1]
		into := part(s, key.Value)
		switch {
		case key.Value == "base":
		case into == nil:
			return nil, fault(key, "", "unknown key %q", key.Value)
		case key.Value == "selftest" && n.Kind == yaml.ScalarNode && n.Value == "stock":
			stock, err := stockSpec()
			if err != nil {
				return nil, err
			}
			s.SelfTest = stock.SelfTest
		default:
			if err := decode(n, key.Value, into); err != nil {
				return nil, err
			}
		}
	}
	if list := s.Unsourced(); len(list) > 0 {
		at := parts["kernels"]
		for _, name := range []string{"units", "clocks"} {
			if parts[name] != nil {
				at = parts[name]
			}
		}
		return nil, fault(at, "", "%s names no source: leave it out, and state the figure in parameters", list[0])
	}
	if s.Parameters != nil {
		if err := fillFigures(s); err != nil {
			return nil, fault(parts["parameters"], "parameters", "%s", err)
		}
	}
	return s, nil
}

func stockSpec() (*image.Spec, error) {
	b, err := stock.Image()
	if err != nil {
		return nil, err
	}
	m, err := image.Parse(b)
	if err != nil {
		return nil, err
	}
	return &m.Spec, nil
}

// part is where a key's value goes.
func part(s *image.Spec, key string) any {
	switch key {
	case "platform":
		return &s.Platform
	case "interface":
		return &s.Interface
	case "time":
		return &s.Time
	case "units":
		return &s.Units
	case "compute":
		return &s.Compute
	case "memories":
		return &s.Memories
	case "connections":
		return &s.Connections
	case "clocks":
		return &s.Clocks
	case "partition":
		return &s.Partition
	case "kernels":
		return &s.Kernels
	case "resources":
		return &s.Resources
	case "selftest":
		return &s.SelfTest
	case "modules":
		return &s.Modules
	case "parameters":
		return &s.Parameters
	case "build":
		return &s.Build
	case "user":
		return &s.User
	}
	return nil
}

// parse reads the one document that there is, a mapping.
func parse(b []byte) (*yaml.Node, error) {
	var doc, second yaml.Node
	d := yaml.NewDecoder(bytes.NewReader(b))
	if err := d.Decode(&doc); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, &Error{Message: "it is empty"}
		}
		return nil, &Error{Message: strings.TrimPrefix(err.Error(), "yaml: ")}
	}
	if err := d.Decode(&second); !errors.Is(err, io.EOF) {
		return nil, &Error{Message: "something follows the document"}
	}
	if len(doc.Content) != 1 || doc.Content[0].Kind != yaml.MappingNode {
		return nil, fault(&doc, "", "want keys and values")
	}
	return doc.Content[0], check(doc.Content[0], 0)
}

// check refuses anchors, with which a short document describes a huge value, and nodes that lie too deep.
func check(n *yaml.Node, depth int) error {
	if n.Kind == yaml.AliasNode || n.Anchor != "" {
		return fault(n, "", "anchors and aliases are not taken: write it out")
	}
	if depth > maxDepth {
		return fault(n, "", "values lie more than %d deep", maxDepth)
	}
	for _, c := range n.Content {
		if err := check(c, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// decode puts a node into what into points to: a list element by element, so that an error names the line.
func decode(n *yaml.Node, name string, into any) error {
	v := reflect.ValueOf(into).Elem()
	if v.Kind() != reflect.Slice || v.Type().Elem().Kind() == reflect.Uint8 {
		fresh := reflect.New(v.Type())
		if err := strict(n, name, fresh.Interface()); err != nil {
			return err
		}
		v.Set(fresh.Elem())
		return nil
	}
	if n.Kind != yaml.SequenceNode {
		return fault(n, name, "want a list")
	}
	list := reflect.MakeSlice(v.Type(), 0, len(n.Content))
	for i, c := range n.Content {
		e := reflect.New(v.Type().Elem())
		if err := strict(c, fmt.Sprintf("%s[%d]", name, i), e.Interface()); err != nil {
			return err
		}
		list = reflect.Append(list, e.Elem())
	}
	v.Set(list)
	return nil
}

// strict decodes a node by way of JSON, which has the names and checks the ranges.
func strict(n *yaml.Node, name string, into any) error {
	if err := repeated(n, name); err != nil {
		return err
	}
	var v any
	if err := n.Decode(&v); err != nil {
		return fault(n, name, "%s", strings.TrimPrefix(err.Error(), "yaml: "))
	}
	b, err := json.Marshal(v)
	if err != nil {
		return fault(n, name, "%s", err)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return fault(n, name, "%s", strings.TrimPrefix(err.Error(), "json: "))
	}
	return nil
}

// repeated refuses a mapping that has a key twice, in any spelling: JSON takes keys of fields without regard to case.
func repeated(n *yaml.Node, name string) error {
	if n.Kind == yaml.MappingNode {
		var seen []string
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i]
			if key.Kind != yaml.ScalarNode || strings.ToLower(key.Value) != key.Value {
				return fault(key, name, "unknown key %q", key.Value)
			}
			if slices.Contains(seen, key.Value) {
				return fault(key, name, "%s is there twice", key.Value)
			}
			seen = append(seen, key.Value)
		}
	}
	for _, c := range n.Content {
		if err := repeated(c, name); err != nil {
			return err
		}
	}
	return nil
}
