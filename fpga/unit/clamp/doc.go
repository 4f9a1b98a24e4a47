// Package clamp is the unit clamp: values below a bound become the bound.
//
// # Overview
//
// It is C++'s std::clamp, as TorchArrow's clamp_list uses it: v < lo ? lo : (hi < v ? hi : v). So a NaN passes with
// its bits, and -0 in a range that begins at +0 stays -0. Neg2Zero, the first step of DLRM, Piper and MiniPipe, is a
// clamp with lo 0 and no upper bound (hi the type's largest value, or +Inf). The functions run in place.
//
// # Concurrency
//
// The functions keep no state.
//
// # Errors
//
// ErrBounds when lo is above hi or a bound is NaN; nothing has been written then.
//
// # Debugging
//
// Reference is the definition, a value at a time.
package clamp
