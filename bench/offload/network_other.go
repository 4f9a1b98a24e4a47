//go:build !linux

package offload

import (
	"context"
	"errors"
	"fmt"
)

// inLimitedNetwork returns errNoNetwork: only Linux has network namespaces.
func inLimitedNetwork(context.Context, float64, func() error) error {
	return fmt.Errorf("%w: %w", errNoNetwork, errors.ErrUnsupported)
}
