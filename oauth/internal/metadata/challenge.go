package metadata

import (
	"errors"
	"fmt"
	"strings"
)

// A Challenge is one of the challenges of a WWW-Authenticate header (RFC 9110, section 11.6.1).
type Challenge struct {
	// Scheme is "Bearer" or "DPoP", in the case that the server used.
	Scheme string
	// Token68 is the credential of schemes that have no parameters. Usually empty.
	Token68 string
	Params  []Param
}

// A Param is a parameter of a challenge. Names are not case sensitive.
type Param struct{ Name, Value string }

// Param returns the value of a parameter, or "" if there is none.
func (c *Challenge) Param(name string) string {
	for _, p := range c.Params {
		if strings.EqualFold(p.Name, name) {
			return p.Value
		}
	}
	return ""
}

// Is reports whether c has the scheme. The case does not matter.
func (c *Challenge) Is(scheme string) bool { return strings.EqualFold(c.Scheme, scheme) }

// Scopes returns the words of the scope parameter.
func (c *Challenge) Scopes() []string { return strings.Fields(c.Param("scope")) }

// Set adds a parameter unless value is empty, and returns c.
func (c *Challenge) Set(name, value string) *Challenge {
	if value != "" {
		c.Params = append(c.Params, Param{name, value})
	}
	return c
}

// String returns c as the value of a WWW-Authenticate header. Values are quoted. Characters that
// are not allowed in a header are replaced by "?", so that a value cannot end the string or the
// header.
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

// maxChallenges is the largest number of challenges, and of parameters of a challenge, that a
// client reads.
const maxChallenges = 32

var errTooMany = fmt.Errorf("more than %d challenges or parameters", maxChallenges)

// ParseChallenges parses the values of all WWW-Authenticate headers of a response. With an error it
// returns the challenges before the error. A repeated parameter is an error, because programs would
// disagree on which one applies.
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

// parse reads challenges and parameters, both separated by commas. A word followed by "=" is a
// parameter of the current challenge. Any other word starts a new challenge.
func (p *challengeParser) parse() error {
	for {
		p.rest = strings.TrimLeft(p.rest, " \t,") // empty elements are allowed (RFC 9110, section 5.6.1)
		if p.rest == "" {
			return nil
		}
		word := p.word()
		if word == "" {
			return fmt.Errorf("%.20q is neither a scheme nor a parameter", p.rest)
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

// isParam reports whether rest follows the name of a parameter.
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
		return fmt.Errorf("the scheme %.20q is followed by %.20q, which is not a parameter", scheme, name+p.rest)
	}
	return p.param(name)
}

// token68 reads a token68 if the text up to the next comma is one.
func (p *challengeParser) token68() (string, bool) {
	end := strings.IndexByte(p.rest, ',')
	if end < 0 {
		end = len(p.rest)
	}
	text := strings.TrimRight(p.rest[:end], " \t")
	body := strings.TrimRight(text, "=")
	if body == "" || strings.Trim(body, alphanumeric+"-._~+/") != "" {
		return "", false
	}
	p.rest = p.rest[end:]
	return text, true
}

func (p *challengeParser) param(name string) error {
	if len(p.list) == 0 {
		return fmt.Errorf("the parameter %.20q precedes every scheme", name)
	}
	c := &p.list[len(p.list)-1]
	if c.Token68 != "" {
		return fmt.Errorf("the parameter %.20q follows a token", name)
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
			return fmt.Errorf("the parameter %.20q is repeated", name)
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

// alphanumeric are the characters that all tokens may have.
const alphanumeric = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

// word reads a token (RFC 9110, section 5.6.2). It returns "" if there is none.
func (p *challengeParser) word() string {
	rest := strings.TrimLeft(p.rest, alphanumeric+"!#$%&'*+-.^_`|~")
	word := p.rest[:len(p.rest)-len(rest)]
	p.rest = rest
	return word
}
