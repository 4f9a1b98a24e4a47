//go:build !amd64 || purego

package text

// There are no vector kernels: nothing is ever ahead, and nothing is done.

func vectors() vectorSet { return noVectors }

func (vectorSet) index([]byte, *[startsRoom]uint16, int, int) int { return 0 }

func (d *Decoder) parse([]byte, int, int) int { return 0 }

func (t *targets) columns(vectorSet, *byte, int, int, int) int { return 0 }

func (t *targets) validity(vectorSet, *[groups][block]byte, int, int) bool { return false }
