package guest

import (
	"bufio"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// session is the host's end of the second serial port: a pure reader of the guest's lines, which shell.sh writes, that
// fills a Result.
type session struct {
	result *Result
	host   map[string]func(args []string) (string, error)
	now    func() time.Time
	since  time.Time // when the running check began
	begun  string    // its name
	last   int       // number of the last line that came whole
}

// maxLine bounds one line of the guest: base64 of a file that a test keeps.
const maxLine = 64 << 20

// serve reads lines until the guest says that its script ended, or the port closes.
func (s *session) serve(port io.ReadWriter) error {
	lines := bufio.NewScanner(port)
	lines.Buffer(make([]byte, 64<<10), maxLine)
	say := func(format string, args ...any) error {
		if _, err := fmt.Fprintf(port, format+"\n", args...); err != nil {
			return fmt.Errorf("answer the guest: %w", err)
		}
		return nil
	}
	for lines.Scan() {
		text := strings.TrimRight(lines.Text(), "\r")
		if text == "" { // the guest ends what may be left of a broken line
			continue
		}
		number, text, whole := unwrap(text)
		if !whole {
			if err := say("again"); err != nil {
				return err
			}
			continue
		}
		if err := say("ok %d", number); err != nil {
			return err
		}
		if number <= s.last { // its ok did not come
			continue
		}
		s.last = number
		answer, done, err := s.line(text)
		if err == nil && answer != "" {
			err = say("%s", answer)
		}
		if err != nil || done {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("read from the guest: %w", err)
	}
	return io.ErrUnexpectedEOF
}

// unwrap takes a line's number and checksum off it, and reports whether it came whole.
func unwrap(line string) (number int, text string, whole bool) {
	first, rest, _ := strings.Cut(line, " ")
	sum, text, _ := strings.Cut(rest, " ")
	number, err := strconv.Atoi(first)
	return number, text, err == nil && sum == checksum(text)
}

// checksum is the checksum that shell.sh puts before a line.
func checksum(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:4])
}

// line takes one line and returns what to answer, "" for nothing, and whether it was the last.
func (s *session) line(text string) (answer string, done bool, err error) {
	word, rest, _ := strings.Cut(text, " ")
	switch word {
	case "uname":
		s.result.Uname = rest
		s.result.Booted = s.now()
	case "problem":
		s.result.Problems = append(s.result.Problems, rest)
	case "begin":
		s.since, s.begun = s.now(), rest
	case "result":
		fields := strings.SplitN(rest, " ", 3)
		if len(fields) != 3 {
			return "", false, fmt.Errorf("the guest said %q: want result STATUS NAME OUTPUT", text)
		}
		status, err := strconv.Atoi(fields[0])
		if err != nil {
			return "", false, fmt.Errorf("the guest said %q: %w", text, err)
		}
		output, err := base64.StdEncoding.DecodeString(fields[2])
		if err != nil {
			return "", false, fmt.Errorf("the output of check %s: %w", fields[1], err)
		}
		s.result.Checks = append(s.result.Checks, Check{
			Name: fields[1], Status: status, Output: string(output), Took: s.now().Sub(s.since),
		})
		s.begun = ""
	case "skip":
		name, why, _ := strings.Cut(rest, " ")
		s.result.Checks = append(s.result.Checks, Check{Name: name, Skipped: why})
	case "file":
		name, body, _ := strings.Cut(rest, " ")
		data, err := base64.StdEncoding.DecodeString(body)
		if err != nil {
			return "", false, fmt.Errorf("file %s: %w", name, err)
		}
		s.result.Files[name] = data
	case "ask":
		return s.ask(rest), false, nil
	case "end":
		status, err := strconv.Atoi(rest)
		if err != nil {
			return "", false, fmt.Errorf("the guest said %q: %w", text, err)
		}
		s.result.Status, s.result.Ended = status, true
		return "", true, nil
	default:
		return "", false, fmt.Errorf("the guest said %q, which is none of shell.sh's words", text)
	}
	return "", false, nil
}

// ask runs a function of the host: the request is its name and arguments, a line each, in base64. The answer is a line
// that comes twice, because the port may lose the verdict of one. The guest's say skips the second.
func (s *session) ask(request string) string {
	reply := func(verdict, text string) string {
		line := verdict + " " + base64.StdEncoding.EncodeToString([]byte(text))
		return line + "\n" + line
	}
	words, err := base64.StdEncoding.DecodeString(request)
	if err != nil {
		return reply("no", err.Error())
	}
	args := strings.Split(strings.TrimSuffix(string(words), "\n"), "\n")
	do, ok := s.host[args[0]]
	if !ok {
		return reply("no", "the host has no function "+args[0])
	}
	out, err := do(args[1:])
	if err != nil {
		return reply("no", fmt.Sprintf("host %s: %v\n", strings.Join(args, " "), err))
	}
	return reply("yes", out)
}
