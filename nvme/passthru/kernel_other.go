//go:build !linux

package passthru

// system is an operating system without NVMe passthrough.
type system struct{}

func (system) open(string, string) (node, error) { return nil, ErrUnsupported }

func (system) ring(int) (carrier, error) { return nil, ErrUnsupported }

func (system) memory(int) ([]byte, func() error, error) { return nil, nil, ErrUnsupported }
