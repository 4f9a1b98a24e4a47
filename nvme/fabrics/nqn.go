package fabrics

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// CheckNQN returns the fault of a qualified name, or nil. The form is nqn.YYYY-MM.DOMAIN and, behind a colon, a text
// of the domain's owner.
func CheckNQN(s string) error {
	switch {
	case s == "":
		return fmt.Errorf("NQN is empty: want nqn.YYYY-MM.DOMAIN:NAME")
	case len(s) > MaxNQN:
		return fmt.Errorf("NQN %.40q... has %d bytes: at most %d", s, len(s), MaxNQN)
	case !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r == 0x7f }):
		return fmt.Errorf("NQN %q holds a space, a control character, or is no UTF-8", s)
	}
	rest, ok := strings.CutPrefix(s, "nqn.")
	if !ok || len(rest) < 9 || !date(rest[:7]) || rest[7] != '.' {
		return fmt.Errorf("NQN %q: want nqn.YYYY-MM.DOMAIN:NAME", s)
	}
	if domain, _, _ := strings.Cut(rest[8:], ":"); domain == "" {
		return fmt.Errorf("NQN %q names no domain: want nqn.YYYY-MM.DOMAIN:NAME", s)
	}
	return nil
}

func date(s string) bool {
	for i, c := range []byte(s) {
		if i == 4 && c != '-' || i != 4 && (c < '0' || c > '9') {
			return false
		}
	}
	return true
}
