//go:build !linux

package offload

import "errors"

// quota is a control group. This system has no control groups.
type quota struct{}

func newQuota(string, float64) (*quota, error) { return nil, errors.ErrUnsupported }

func (*quota) add(int) error { return nil }

func (*quota) close() error { return nil }
