package jsonrpc

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
)

// A span is the position of a member, counted from the opening brace of its object: of the opening
// quote of its name, and of its value. 32 bits suffice, since Decode refuses longer messages.
type span struct{ name, start, end uint32 }

// members holds the positions of the members of one object. Most objects in MCP have few members,
// so the struct holds the first ones itself.
type members struct {
	first   *byte // of the object, to detect that Params was replaced after the scan
	more    []span
	inline  [5]span
	n       uint8 // used in inline
	escaped bool  // a name is written with escapes
}

func (m *members) add(s span, escaped bool) {
	m.escaped = m.escaped || escaped
	if int(m.n) < len(m.inline) {
		m.inline[m.n] = s
		m.n++
		return
	}
	m.more = append(m.more, s)
}

func (m *members) len() int { return int(m.n) + len(m.more) }

func (m *members) at(i int) span {
	if i < int(m.n) {
		return m.inline[i]
	}
	return m.more[i-int(m.n)]
}

// find returns the value of the member called name. obj must be the object that m was read from.
func (m *members) find(obj []byte, name string) []byte {
	for i := range m.len() {
		s := m.at(i)
		if m.says(obj, s, name) {
			return obj[s.start:s.end:s.end]
		}
	}
	return nil
}

func (m *members) says(obj []byte, s span, name string) bool {
	if m.escaped {
		return jsonx.IsString(obj[s.name:m.nameEnd(obj, s)], name)
	}
	// Without escapes the name ends at the next quote.
	begin, end := int(s.name)+1, int(s.name)+1+len(name)
	return end < int(s.start) && obj[end] == '"' && string(obj[begin:end]) == name
}

func (m *members) nameEnd(obj []byte, s span) int { return jsonx.Skip(obj, int(s.name)) }

// name returns the name of s, unescaped.
func (m *members) name(obj []byte, s span) []byte {
	begin := int(s.name) + 1
	if !m.escaped {
		return obj[begin : begin+bytes.IndexByte(obj[begin:s.start], '"')]
	}
	return []byte(jsonx.String(obj[begin-1 : m.nameEnd(obj, s)]))
}

// fewMembers is the most names that are compared pair by pair. An attacker chooses how many names
// there are, so longer lists are sorted instead.
const fewMembers = 16

// duplicate returns a name that occurs twice, or false if there is none.
func (m *members) duplicate(obj []byte) ([]byte, bool) {
	n := m.len()
	var room [fewMembers][]byte
	names := room[:0]
	if n > fewMembers {
		names = make([][]byte, 0, n)
	}
	for i := range n {
		names = append(names, m.name(obj, m.at(i)))
	}
	if n <= fewMembers {
		for i, name := range names {
			for _, other := range names[:i] {
				if bytes.Equal(name, other) {
					return name, true
				}
			}
		}
		return nil, false
	}
	slices.SortFunc(names, bytes.Compare)
	for i := 1; i < n; i++ {
		if bytes.Equal(names[i-1], names[i]) {
			return names[i], true
		}
	}
	return nil, false
}

// says reports whether the raw string, including its quotes, has the value name.
func says(raw []byte, name string) bool {
	if len(raw) == len(name)+2 {
		return string(raw[1:len(raw)-1]) == name
	}
	return len(raw) > len(name)+2 && jsonx.IsString(raw, name)
}

// Param returns the member of the params object called name, or nil if it is absent. If the peer
// sent null, it returns the text null. The value is part of Params and must not be changed.
func (r *Request) Param(name string) json.RawMessage {
	if len(r.Params) == 0 {
		return nil
	}
	if r.params.first != &r.Params[0] {
		return jsonx.Member(r.Params, name)
	}
	return r.params.find(r.Params, name)
}
