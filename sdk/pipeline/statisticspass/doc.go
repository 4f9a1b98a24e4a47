// Package statisticspass makes the pipelines of passes over a data set that end in statistics: [OfColumns] of the
// columns themselves, and [OfOperators] of the values that a pipeline's operators take their numbers from. The pass of
// a vocabulary is a part of the document ([pipeline.Spec.VocabularyKeys]), and that of a filter follows from the
// columns ([resolve.FilterPass]).
//
// The package is pure, and its errors are those of package problem.
package statisticspass
