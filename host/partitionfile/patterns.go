package partitionfile

import (
	"fmt"
	"path"
	"strings"
)

// NamePatterns select files by their names, without their folders. The zero value takes every file.
// Patterns are those of [path.Match].
type NamePatterns struct {
	Include []string // if there are any, a file is taken only if one of them matches its name
	Exclude []string // a file whose name one of them matches is left out
}

// Check returns an error that names a pattern which no name can match.
func (p NamePatterns) Check() error {
	for flag, patterns := range map[string][]string{"include": p.Include, "exclude": p.Exclude} {
		for _, pattern := range patterns {
			_, err := path.Match(pattern, "")
			if err == nil && (pattern == "" || strings.Contains(pattern, "/")) {
				err = fmt.Errorf("it is matched with names of files, without their folders")
			}
			if err != nil {
				return fmt.Errorf("%s: %q: %w", flag, pattern, err)
			}
		}
	}
	return nil
}

// take reports whether the file of a name is taken.
func (p NamePatterns) take(name string) bool {
	matches := func(patterns []string) bool {
		for _, pattern := range patterns {
			if ok, _ := path.Match(pattern, name); ok {
				return true
			}
		}
		return false
	}
	return (len(p.Include) == 0 || matches(p.Include)) && !matches(p.Exclude)
}

// patternOf returns the pattern that matches one name only, quoted for a shell.
func patternOf(name string) string {
	pattern := strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(name)
	safe := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' ||
			strings.ContainsRune("._-+=@%", r)
	}
	if !strings.ContainsFunc(pattern, func(r rune) bool { return !safe(r) }) {
		return pattern
	}
	return "'" + strings.ReplaceAll(pattern, "'", `'\''`) + "'"
}
