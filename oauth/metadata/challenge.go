package metadata

import (
	"errors"
	"fmt"
	"strings"
)

// A Challenge says how to authenticate (RFC 9110, section 11.6.1): one of those in WWW-Authenticate fields.
type Challenge struct {
	// Scheme is "Bearer" or "DPoP", in whatever case the server wrote it.
	Scheme string
	// Token68 is what some schemes have in place of parameters.
	Token68 string
	Params  []Param
}

// A Param is a parameter of a challenge. Names differ by more than case.
type Param struct{ Name, Value string }

// Param returns the value of a parameter, "" when there is none.
func (c *Challenge) Param(name string) string {
	for _, p := range c.Params {
		if strings.EqualFold(p.Name, name) {
			return p.Value
		}
	}
	return ""
}

// Is reports whether c is of a scheme, whatever its case.
func (c *Challenge) Is(scheme string) bool { return strings.EqualFold(c.Scheme, scheme) }

// Scopes are the words of the parameter scope.
func (c *Challenge) Scopes() []string { return strings.Fields(c.Param("scope")) }

// Set adds a parameter unless value is empty, and returns c.
func (c *Challenge) Set(name, value string) *Challenge {
	if value != "" {
		c.Params = append(c.Params, Param{name, value})
	}
	return c
}

// String writes c as the value of a WWW-Authenticate field. Values are quoted strings, in which what no header field may
// hold is replaced by "?": a value can neither end the string nor the field.
func (c *Challenge) String() string {
	var b strings.Builder
	b.WriteString(c.Scheme)
	if c.Token68 != "" {
		b.WriteString(" " + c.Token68)
	}
	for i, p := range c.Params {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(" " + p.Name + `="`)
		for _, r := range p.Value {
			switch {
			case r == '"' || r == '\\':
				b.WriteByte('\\')
				b.WriteRune(r)
			case r < ' ' || r > '~':
				b.WriteByte('?')
			default:
				b.WriteRune(r)
			}
		}
		b.WriteByte('"')
	}
	return b.String()
}

// maxChallenges bounds what a server may make a client read.
const maxChallenges = 32

var errTooMany = fmt.Errorf("more than %d challenges or parameters", maxChallenges)

// ParseChallenges reads the values of all WWW-Authenticate fields of a response. With the error come the challenges that
// could be read before it. A parameter that a challenge has twice is an error: whoever reads the other one would do
// something else.
func ParseChallenges(values []string) ([]Challenge, error) {
	var list []Challenge
	for _, value := range values {
		p := challengeParser{rest: value}
		err := p.parse()
		list = append(list, p.list...)
		if err == nil && len(list) > maxChallenges {
			err = errTooMany
		}
		if err != nil {
			return list, fmt.Errorf("WWW-Authenticate: %w", err)
		}
	}
	return list, nil
}

type challengeParser struct {
	rest string
	list []Challenge
}

func (p *challengeParser) space() { p.rest = strings.TrimLeft(p.rest, " \t") }

// parse reads challenges and parameters, both separated by commas: a word with "=" behind it is a parameter of the
// challenge before, one without begins another.
func (p *challengeParser) parse() error {
	for {
		p.rest = strings.TrimLeft(p.rest, " \t,") // empty elements are allowed (RFC 9110, section 5.6.1)
		if p.rest == "" {
			return nil
		}
		word := p.word()
		if word == "" {
			return fmt.Errorf("%.20q is no scheme and no parameter", p.rest)
		}
		if isParam(p.rest) {
			if err := p.param(word); err != nil {
				return err
			}
		} else if err := p.challenge(word); err != nil {
			return err
		}
		p.space()
		if p.rest != "" && p.rest[0] != ',' {
			return fmt.Errorf("%.20q where a comma should be", p.rest)
		}
	}
}

// isParam reports whether a parameter's name was before rest.
func isParam(rest string) bool { return strings.HasPrefix(strings.TrimLeft(rest, " \t"), "=") }

func (p *challengeParser) challenge(scheme string) error {
	if len(p.list) >= maxChallenges {
		return errTooMany
	}
	p.list = append(p.list, Challenge{Scheme: scheme})
	if p.rest == "" || p.rest[0] != ' ' && p.rest[0] != '\t' {
		return nil
	}
	p.space()
	if token, ok := p.token68(); ok {
		p.list[len(p.list)-1].Token68 = token
		return nil
	}
	if p.rest == "" || p.rest[0] == ',' {
		return nil
	}
	name := p.word()
	if name == "" || !isParam(p.rest) {
		return fmt.Errorf("the scheme %.20q is followed by %.20q, which is no parameter", scheme, name+p.rest)
	}
	return p.param(name)
}

// token68 reads one if all up to the next comma is one.
func (p *challengeParser) token68() (string, bool) {
	end := strings.IndexByte(p.rest, ',')
	if end < 0 {
		end = len(p.rest)
	}
	text := strings.TrimRight(p.rest[:end], " \t")
	body := strings.TrimRight(text, "=")
	if body == "" || strings.ContainsFunc(body, func(r rune) bool { return !isToken68(r) }) {
		return "", false
	}
	p.rest = p.rest[end:]
	return text, true
}

func isToken68(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("-._~+/", r)
}

func (p *challengeParser) param(name string) error {
	if len(p.list) == 0 {
		return fmt.Errorf("the parameter %.20q stands before any scheme", name)
	}
	c := &p.list[len(p.list)-1]
	if c.Token68 != "" {
		return fmt.Errorf("the parameter %.20q stands behind a token", name)
	}
	p.space()
	p.rest = p.rest[1:] // "="
	p.space()
	value, err := p.value()
	if err != nil {
		return fmt.Errorf("the parameter %.20q: %w", name, err)
	}
	for _, old := range c.Params {
		if strings.EqualFold(old.Name, name) {
			return fmt.Errorf("the parameter %.20q stands there twice", name)
		}
	}
	if len(c.Params) >= maxChallenges {
		return errTooMany
	}
	c.Params = append(c.Params, Param{name, value})
	return nil
}

func (p *challengeParser) value() (string, error) {
	if p.rest == "" || p.rest[0] != '"' {
		value := p.word()
		if value == "" {
			return "", errors.New("no value")
		}
		return value, nil
	}
	var b strings.Builder
	for i := 1; i < len(p.rest); i++ {
		switch p.rest[i] {
		case '"':
			p.rest = p.rest[i+1:]
			return b.String(), nil
		case '\\':
			i++
			if i == len(p.rest) {
				return "", errors.New("the quoted string does not end")
			}
		}
		b.WriteByte(p.rest[i])
	}
	return "", errors.New("the quoted string does not end")
}

// word reads a token (RFC 9110, section 5.6.2), "" where there is none.
func (p *challengeParser) word() string {
	end := 0
	for end < len(p.rest) && isTokenByte(p.rest[end]) {
		end++
	}
	word := p.rest[:end]
	p.rest = p.rest[end:]
	return word
}

func isTokenByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0
}
