//go:build !linux

package passthru

// system is an operating system without NVMe passthrough.
type system struct{}

func (system) openNode(string, string) (node, error) { return nil, ErrUnsupported }

func (system) newRing(int) (carrier, error) { return nil, ErrUnsupported }

func (system) mapMemory(int) ([]byte, func() error, error) { return nil, nil, ErrUnsupported }
