//go:build !linux

package health

import "github.com/millrace/millrace/nvme/passthru"

// CrossCheck needs the kernel's NVMe driver, which Linux has.
func CrossCheck(string, *SMARTLog) ([]string, error) { return nil, passthru.ErrUnsupported }
