package metadata

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// A Challenge is one of the challenges of a WWW-Authenticate header (RFC 9110, section 11.6.1).
type Challenge struct {
	// Scheme is "Bearer" or "DPoP", in the case that the server used.
	Scheme string
	Params []Param
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

func (c *Challenge) has(name string) bool {
	return slices.ContainsFunc(c.Params, func(p Param) bool { return strings.EqualFold(p.Name, name) })
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

var quoter = strings.NewReplacer(`"`, `\"`, `\`, `\\`)

// String returns c as the value of a WWW-Authenticate header. Values are quoted. Characters that
// are not allowed in a header are replaced by "?", so that a value cannot end the string or the
// header.
func (c *Challenge) String() string {
	var b strings.Builder
	b.WriteString(c.Scheme)
	for i, p := range c.Params {
		if i > 0 {
			b.WriteByte(',')
		}
		value := strings.Map(func(r rune) rune {
			if r < ' ' || r > '~' {
				return '?'
			}
			return r
		}, p.Value)
		b.WriteString(" " + p.Name + `="` + quoter.Replace(value) + `"`)
	}
	return b.String()
}

// maxChallenges is the largest number of challenges, and of parameters of a challenge, that a
// client reads.
const maxChallenges = 32

// word is the pattern of a token (RFC 9110, section 5.6.2).
const word = "([!#$%&'*+.^_`|~0-9A-Za-z-]+)"

// A challenge is a scheme, alone or with a token, or a scheme with parameters. Challenges and
// parameters are both separated by commas (RFC 9110, section 11.6.1).
var (
	param      = regexp.MustCompile(`(?s)^` + word + `[ \t]*=[ \t]*(?:` + word + `|"((?:[^"\\]|\\.)*)")[ \t]*(?:,|$)`)
	alone      = regexp.MustCompile(`^` + word + `(?:[ \t]+[A-Za-z0-9._~+/-]+=*)?[ \t]*(?:,|$)`)
	withParams = regexp.MustCompile(`^` + word + `[ \t]+`)
	escape     = regexp.MustCompile(`(?s)\\(.)`)
)

// ParseChallenges parses the values of all WWW-Authenticate headers of a response. With an error it
// returns the challenges before the error. A repeated parameter is an error, because programs would
// disagree on which one applies.
func ParseChallenges(values []string) (list []Challenge, err error) {
	for _, rest := range values {
		for {
			rest = strings.TrimLeft(rest, " \t,") // empty elements are allowed (RFC 9110, section 5.6.1)
			if rest == "" {
				break
			}
			if m := param.FindStringSubmatch(rest); m != nil && len(list) > 0 {
				c := &list[len(list)-1]
				name, value := m[1], m[2]+escape.ReplaceAllString(m[3], "$1")
				if c.has(name) || len(c.Params) == maxChallenges {
					return list, fmt.Errorf("WWW-Authenticate: the parameter %.20q is repeated, or one too many", name)
				}
				c.Params = append(c.Params, Param{name, value})
				rest = rest[len(m[0]):]
				continue
			}
			m := alone.FindStringSubmatch(rest)
			if m == nil {
				if m = withParams.FindStringSubmatch(rest); m != nil && !param.MatchString(rest[len(m[0]):]) {
					m = nil
				}
			}
			if m == nil || len(list) == maxChallenges {
				return list, fmt.Errorf("WWW-Authenticate: %.20q is not a challenge, or one too many", rest)
			}
			list = append(list, Challenge{Scheme: m[1]})
			rest = rest[len(m[0]):]
		}
	}
	return list, nil
}
