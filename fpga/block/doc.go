// Package block holds what operators take and make inside an engine: blocks of values, the memory that operators write
// to, and the forms of an operator that is ready to run.
//
// # Blocks
//
// A block is the values that one column, or one value of a graph, has in some rows: few enough to stay in a cache
// while one operator after another goes over them. [Values] is such a block: scalars, or lists with their lengths. The
// values are integers, floats or strings of bytes; the other slices are nil.
//
// # Who owns memory
//
// Values are slices of memory that belongs to somebody. They begin as a view: of a decoded page, or of another block
// that more sinks read. An operator may write to values only if Values.OwnsValues says so, and Buffers.OwnValues copies
// them to memory of the chain if it does not. An operator that makes new values writes them to what
// Buffers.IntDestination or Buffers.FloatDestination return, and then sets the slice of Values: that memory may be the
// tensor itself, so that nothing has to be copied there afterwards. Lengths and validity have owners of their own.
//
// [Buffers] belong to one thread. Operators of one chain share them one after the other, so an operator reads values
// that the operator before it wrote into the same memory: it either works in place, or its kernel allows that source
// and destination are the same. Nothing of Buffers lasts from one block to the next except its size.
//
// # Nulls
//
// Values.Valid marks nulls; nil means that there are none. A null of a decoded block holds 0, a null behind an operator
// holds anything. Operators of numbers treat a null like any number, and the null stays a null.
//
// A list that holds a null becomes empty, whoever takes it: operators see no list of numbers with a null, unless they
// fill nulls (see [NullFiller]). Buffers.EmptyNullLists does that, and a chain calls it before each of its operators
// and at its end. Lists of bytes are left to the operator that makes numbers of them, as it need not look at strings
// of lists that end up empty.
//
// # Steps
//
// [Step] is an operator of one input, made ready with its parameters; [Combiner] is one of several inputs. What makes
// chains fast is in optional interfaces: a step that takes over the work of the step before it ([Fuser]), a step that
// has nothing to do ([NullFiller]), a step that changes values where they lie ([InPlace]). Package engine runs chains;
// the steps themselves are in the folders of package operator.
//
// # Errors
//
// A step's error is about values that the pipeline does not allow or that cannot be read. The engine adds column, page
// and rows. [AbsentKeyError] also says where the value is.
package block
