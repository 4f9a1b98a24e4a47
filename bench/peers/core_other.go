//go:build !linux

package main

import (
	"errors"
	"time"
)

func tie(int) (int, error) {
	return 0, errors.New("binding to a processor is written for Linux: -core none")
}

var began = time.Now()

// cpuSeconds is the wall's clock where the processor's is not asked for.
func cpuSeconds() float64 { return time.Since(began).Seconds() }
