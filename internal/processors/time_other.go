//go:build !unix

package processors

import "time"

// Time returns 0: the processor time of this process is not known here.
func Time() time.Duration { return 0 }
