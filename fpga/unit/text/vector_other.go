//go:build !amd64 || purego

package text

// There are no vector kernels: no line is ever indexed, and every line takes the plain path.

func vectors() vectorSet { return noVectors }

func (vectorSet) indexFields([]byte, *[startsRoom]uint16, int, int) int { return 0 }

func (d *Decoder) parseIndexed([]byte, int, int) int { return 0 }

func (t *columnTargets) columns(vectorSet, *byte, int, int, int) int { return 0 }

func (t *columnTargets) validity(vectorSet, *[groups][blockRows]byte, int, int) bool { return false }
