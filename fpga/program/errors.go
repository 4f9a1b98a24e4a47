package program

import "errors"

// ErrInvalid says that a program contradicts itself or passes a limit.
var ErrInvalid = errors.New("invalid")
