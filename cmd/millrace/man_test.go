package main

import "testing"

func TestManual(t *testing.T) { tree.CheckManual(t) }
