package manual

import (
	"fmt"
	"strings"
)

// Block is a fenced block of a document.
type Block struct {
	Kind   string // the word behind the fence: "sh", "console", "yaml", ...
	Line   int    // of the fence, from 1
	Text   string
	File   string // from "file:": the block is this file
	NotRun string // from "not run:": why the block is not run
	Given  string // commands that run before the block
}

// Command reports whether the block holds commands.
func (b *Block) Command() bool { return b.Kind == "sh" || b.Kind == "console" }

// kinds are the words that may stand behind a fence.
var kinds = map[string]bool{
	"sh": true, "console": true, "yaml": true, "json": true, "go": true, "python": true, "text": true, "mermaid": true,
}

// programs begin a command. An indented line that begins with one of them is a command that no test runs.
var programs = []string{
	"millrace ", "make ", "pip ", "go ", "nvme ", "python ", "python3 ", "apt ", "apt-get ", "systemctl ", "openssl ",
	"curl ",
	"tar ", "bash ", "sudo ",
}

// Parse returns the blocks of a Markdown document.
func Parse(document string) ([]Block, error) {
	var (
		blocks []Block
		open   *Block // the block that the current line lies in
		next   Block  // the settings that comments have made for the next block
	)
	lines := strings.Split(document, "\n")
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		switch {
		case open != nil && strings.TrimRight(line, " ") == "```":
			blocks = append(blocks, *open)
			open = nil
		case open != nil:
			open.Text += line + "\n"
		case strings.HasPrefix(line, "```"):
			next.Kind, next.Line = strings.TrimSpace(line[3:]), i+1
			if !kinds[next.Kind] {
				return nil,
					fmt.Errorf(
						"line %d: a block of kind %q: mark it sh, console, yaml, json, go, python, text or mermaid", i+
							1, next.Kind)
			}
			if next.Command() && next.File != "" {
				return nil, fmt.Errorf("line %d: a block of commands cannot be the file %s", i+1, next.File)
			}
			block := next
			open, next = &block, Block{}
		case strings.HasPrefix(line, "<!--"):
			comment := line
			for !strings.Contains(comment, "-->") {
				if i++; i == len(lines) {
					return nil, fmt.Errorf("line %d: a comment without an end", i)
				}
				comment += "\n" + lines[i]
			}
			next.note(comment)
		case strings.HasPrefix(line, "    ") || strings.HasPrefix(line, "\t"):
			for _, p := range programs {
				if strings.HasPrefix(strings.TrimSpace(line), p) {
					return nil,
						fmt.Errorf("line %d: a command in an indented block: put it between fences marked sh", i+1)
				}
			}
		}
	}
	if open != nil {
		return nil, fmt.Errorf("line %d: a block without an end", open.Line)
	}
	if next.File != "" || next.NotRun != "" {
		return nil, fmt.Errorf("a comment at the end speaks of a block that does not come")
	}
	if next.Given != "" {
		blocks = append(blocks, next)
	}
	return blocks, nil
}

// note applies a comment to the block that follows it. Comments that say nothing about a block are ignored.
func (b *Block) note(comment string) {
	comment, _, _ = strings.Cut(strings.TrimPrefix(comment, "<!--"), "-->")
	comment = strings.TrimSpace(comment)
	if name, ok := strings.CutPrefix(comment, "file:"); ok {
		b.File = strings.TrimSpace(name)
	}
	if reason, ok := strings.CutPrefix(comment, "not run:"); ok {
		b.NotRun = strings.TrimSpace(reason)
	}
	if commands, ok := strings.CutPrefix(comment, "given:"); ok {
		b.Given += strings.TrimSpace(commands) + "\n"
	}
}
