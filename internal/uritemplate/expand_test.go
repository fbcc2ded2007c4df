package uritemplate

import "strings"

// expand returns the URI for the values of the variables. A variable without a value is left out
// together with its separator (section 3.2.1). The value of {/path*} is split at its slashes.
func (t *Template) expand(values map[string]string) string {
	var b strings.Builder
	for _, p := range t.pieces {
		if p.op == nil {
			b.WriteString(p.literal)
			continue
		}
		lead := p.op.first
		for _, s := range p.specs {
			value, ok := values[s.name]
			if !ok {
				continue
			}
			b.WriteString(lead)
			lead = p.op.sep
			s.expand(&b, p.op, value)
		}
	}
	return b.String()
}

func (s spec) expand(b *strings.Builder, op *operator, value string) {
	if op.named {
		b.WriteString(s.name)
		if value == "" {
			if op.char != ';' {
				b.WriteByte('=')
			}
			return
		}
		b.WriteByte('=')
	}
	if s.prefix > 0 {
		value = prefix(value, s.prefix)
	}
	if !s.explode {
		if op.char == '+' || op.char == '#' {
			encodeReserved(b, value)
		} else {
			encode(b, value)
		}
		return
	}
	for i, segment := range strings.Split(value, "/") {
		if i > 0 {
			b.WriteByte('/')
		}
		encode(b, segment)
	}
}

// prefix returns the first n characters of s.
func prefix(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}

// encodeReserved is like encode, but leaves reserved characters and %xx as they are.
func encodeReserved(b *strings.Builder, s string) {
	for i := range len(s) {
		if strings.IndexByte(":/?#[]@!$&'()*+,;=", s[i]) >= 0 || isTriplet(s[i:]) {
			b.WriteByte(s[i])
		} else {
			encode(b, s[i:i+1])
		}
	}
}
