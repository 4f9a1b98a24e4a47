// Package passes makes passes: readings of all rows of a data set that end in something small, as a vocabulary, the
// statistics of columns, or a count of one's own.
//
//	report, err := passes.Fold(ctx, &local.PassSource{Storage: manager}, spec, &reducer, passes.Options{})
//
// # Overview
//
// A pass is a fold. A [Source] makes mini-batches: trainmgr/local.PassSource of the files and drives of this machine,
// trainmgr/remote.PassSource of the data of a cluster. They cover every row that the pipeline's filter lets pass, once
// and unshuffled, and come in the order that the pass asks for. A [Reducer] folds them in. [Fold] takes a reducer of
// one's own. Packages sdk/vocabulary/reducer and sdk/summary/reducer have the passes that end in vocabularies and in
// summaries, and sdk/selection.Reducer finds the rows that pass a filter.
//
// # The work folder
//
// A pass whose reducer is a [Keeper] may have a work folder ([Options].Work). From time to time the reducer then writes
// a part, a file with what it has folded in, and pass.json takes the part and its mini-batches over in one step.
// A folder belongs to one pass, and one process uses it at a time.
//
//	pass.json      what the pass is, its parts, and the token of the mini-batches that are in them
//	lock           held by the process that uses the folder
//	part-00000001  a part
//	temporary      files of the process that is there; removed when the next one begins
//
// The folder alone says what was taken. A process that goes on in it, because the last one was killed or found the disk
// full, has the source make what is in no part; mini-batches that the last process had taken and not kept come again.
// So a kill repeats work and changes no byte. The last mini-batch of all is never kept, so that whoever goes on has
// something to take. What a pass is about to write, pass.json says before the file gets its name ([Work.NoteMade]): a
// call behind one that ended between that and the removal of the folder says what was made.
//
// # Concurrency
//
// A pass calls its reducer from one goroutine. A Work has one user.
//
// # Errors
//
// [ErrInUse] says that another process uses the work folder, [ErrWork] that the folder is damaged, a *[OtherPassError]
// that the folder is of another pass, and a *[RoomError] that there is no room on a disk. dataset.ErrOtherJob says that
// the data is no longer that of the pass. After any error but ErrWork and *OtherPassError the same call goes on where
// this one ended.
//
// # Debugging
//
// A job of a cluster is among those of `millrace jobs list` and has the name that pass.json says. Options.Logger logs
// parts and merges.
package passes
