package host

import "github.com/millrace/millrace/sdk/dataset"

// ShortDigest returns the digits of a job's digest that logs name the job by.
func ShortDigest(d dataset.Digest) string { return d.String()[:12] }
