package contexts

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// maxFile bounds contexts.yaml.
const maxFile = 1 << 20

// Parse reads the file's bytes and checks them. It is strict: a field that is unknown or that comes twice is an error,
// and every error names the line.
func Parse(b []byte) (*File, error) {
	if !utf8.Valid(b) {
		return nil, errors.New("it is not UTF-8 text")
	}
	p := parser{b: b, d: json.NewDecoder(bytes.NewReader(b))}
	f := &File{Contexts: map[string]Context{}}
	err := p.object("the file", func(field string) error {
		switch field {
		case "current":
			return p.text(&f.Current)
		case "contexts":
			return p.object(field, func(name string) error {
				if err := CheckName(name); err != nil {
					return p.errorf("%w", err)
				}
				c, err := p.context(name)
				f.Contexts[name] = c
				return err
			})
		}
		return p.errorf("there is no field %.80q: want current or contexts", field)
	})
	if err != nil {
		return nil, err
	}
	if _, err := p.d.Token(); err != io.EOF {
		return nil, p.errorf("something follows the closing brace")
	}
	return f, f.Check()
}

// parser reads the file token by token, so that its errors know their line.
type parser struct {
	b []byte
	d *json.Decoder
}

// line returns the line of the next token, from 1.
func (p *parser) line() int {
	return 1 + bytes.Count(p.b[:min(p.d.InputOffset(), int64(len(p.b)))], []byte{'\n'})
}

// errorf makes an error that names the line.
func (p *parser) errorf(format string, a ...any) error {
	return fmt.Errorf("line %d: %w", p.line(), fmt.Errorf(format, a...))
}

// token returns the next token.
func (p *parser) token() (json.Token, error) {
	t, err := p.d.Token()
	if err == nil {
		return t, nil
	}
	if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
		at := min(max(syntax.Offset, 0), int64(len(p.b)))
		if strings.Contains(syntax.Error(), `'\n' in string`) {
			at-- // the offset is behind the line's end
		}
		return nil, fmt.Errorf("line %d: %w (the file is JSON, which YAML contains; millrace context writes it)",
			1+bytes.Count(p.b[:at], []byte{'\n'}), err)
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, fmt.Errorf("line %d: the file ends too early", 1+bytes.Count(p.b, []byte{'\n'}))
	}
	return nil, p.errorf("%w", err)
}

// object reads an object and calls field for each of its keys, once.
func (p *parser) object(what string, field func(key string) error) error {
	t, err := p.token()
	if err != nil {
		return err
	}
	if t != json.Delim('{') {
		return p.errorf("%s: want an object in braces", what)
	}
	seen := map[string]bool{}
	for {
		t, err := p.token()
		if err != nil {
			return err
		}
		key, ok := t.(string)
		if !ok {
			return nil // the closing brace: the decoder takes nothing else here
		}
		if seen[key] {
			return p.errorf("%.80q comes twice", key)
		}
		seen[key] = true
		if err := field(key); err != nil {
			return err
		}
	}
}

// context reads one context.
func (p *parser) context(name string) (c Context, err error) {
	return c, p.object("context "+name, func(field string) error {
		switch field {
		case "control":
			return p.texts(&c.Control)
		case "cert":
			return p.text(&c.Cert)
		case "key":
			return p.text(&c.Key)
		case "ca":
			return p.text(&c.CA)
		}
		return p.errorf("context %s: there is no field %.80q: want control, cert, key or ca", name, field)
	})
}

// text reads a string.
func (p *parser) text(to *string) error {
	t, err := p.token()
	if err != nil {
		return err
	}
	s, ok := t.(string)
	if !ok {
		return p.errorf("want a text in quotes")
	}
	*to = s
	return nil
}

// texts reads a list of strings.
func (p *parser) texts(to *[]string) error {
	t, err := p.token()
	if err != nil {
		return err
	}
	if t != json.Delim('[') {
		return p.errorf("want a list of texts in brackets")
	}
	for p.d.More() {
		var s string
		if err := p.text(&s); err != nil {
			return err
		}
		*to = append(*to, s)
	}
	_, err = p.token()
	return err
}
