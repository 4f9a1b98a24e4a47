// Package split is the unit split: a text of several values becomes a list of texts, as "Action|Comedy" does.
//
// # Overview
//
// A text is cut at every separator, a text of 1 to MaxSeparator bytes. Separators are found from the left, and do not
// overlap. Two rules differ in what becomes of a part without bytes, which lies between two separators, before the
// first, or behind the last:
//
//   - Empty parts are dropped. An empty text is an empty list, and "a||b|" is the list "a", "b". RecBole reads its
//     token sequences so, and so does TensorFlow's tf.compat.v1.string_split.
//   - Empty parts are kept. An empty text is a list of one empty text, and "a||b|" is the list "a", "", "b", "". That
//     is Python's str.split, pandas' Series.str.split and TensorFlow's tf.strings.split.
//
// A null is an empty list. Nothing is trimmed or normalised, and text need not be UTF-8. A text becomes at most
// MaxParts texts: one that would become more is an error. A text of n bytes has at most n / len(separator) + 1 parts.
//
// # Concurrency
//
// The functions keep nothing. Lists belongs to one goroutine at a time.
//
// # Errors
//
// Split returns ErrSeparator for a separator that is empty or too long, and ErrParts for a row with too many parts. An
// error that wraps bytecolumn.ErrShape says that the column itself is not well formed. There are no lists then.
//
// # Debugging
//
// Reference is the definition, a text at a time.
package split
