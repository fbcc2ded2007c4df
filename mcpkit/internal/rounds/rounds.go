// Package rounds keeps the questions and answers of a call whose client sends it again with each
// round of answers (2026-07-28, multi round-trip requests).
package rounds

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
)

// State is what the rounds of a call have learned. It travels through the client between them: sealed,
// and bound to that call. A call that runs outside of requests keeps it in its journal instead.
type State struct {
	Expires int64                      `json:"x"` // Unix seconds
	Round   int                        `json:"r"`
	Ref     string                     `json:"i"` // of the call: the same in all rounds
	Begun   int64                      `json:"b"` // Unix milliseconds
	Asked   []Question                 `json:"q,omitempty"`
	Once    map[string]json.RawMessage `json:"o,omitempty"`
}

// A Question is open until it has an answer. Digest binds the answer to its question, so that no
// other question gets it.
type Question struct {
	Key     string                 `json:"k"`           // that the method knows
	Sent    string                 `json:"s"`           // the key that the client knows
	Digest  []byte                 `json:"d"`           // of who asks what
	Request *protocol.InputRequest `json:"r,omitempty"` // nil in a sealed state: the client knows it
	Answer  json.RawMessage        `json:"a,omitempty"` // nil while the question is open
}

// Clone returns a copy that changes nothing of st.
func (st *State) Clone() *State {
	c := *st
	c.Asked, c.Once = slices.Clone(st.Asked), maps.Clone(st.Once)
	return &c
}

// Learned returns a copy without open questions. They are asked again if the method still wants it.
func (st *State) Learned() *State {
	c := st.Clone()
	c.Asked = slices.DeleteFunc(c.Asked, func(q Question) bool { return q.Answer == nil })
	return c
}

// Questions returns the requests of the open questions, by the keys that the client knows; nil if there
// are none.
func (st *State) Questions() (open protocol.InputRequests) {
	for _, q := range st.Asked {
		if q.Answer != nil {
			continue
		}
		if open == nil {
			open = protocol.InputRequests{}
		}
		open[q.Sent] = *q.Request
	}
	return open
}

// Answer keeps the answers to open questions, and returns how many there were. responses is an object
// with the answers, which are objects, by key. Keys of no open question are ignored. If an answer is
// malformed, or does not fit its question, the error is a protocol error for the client, and nothing is
// kept.
func (st *State) Answer(responses json.RawMessage) (answered int, err error) {
	if jsonx.Kind(responses) != '{' {
		return 0, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "inputResponses is not an object")
	}
	asked := slices.Clone(st.Asked)
	for i := range asked {
		q := &asked[i]
		answer := jsonx.Member(responses, q.Sent)
		if q.Answer != nil || answer == nil {
			continue
		}
		if jsonx.Kind(answer) != '{' {
			return 0, notAnObject(q.Sent)
		}
		if q.Request != nil { // else the answer is checked when the question is asked again
			if err := check(*q.Request, answer); err != nil {
				return 0, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "inputResponses: %q: %v", q.Sent, err)
			}
		}
		q.Answer, q.Request = bytes.Clone(answer), nil
		answered++
	}
	st.Asked = asked
	return answered, nil
}

func notAnObject(key string) error {
	return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "inputResponses: the response %q is not an object", key)
}

// Questions are those of one call. The zero value is that of a first round. They are not safe for
// concurrent use.
type Questions struct {
	State   State           // of the rounds before, with the open questions of this one
	Offered json.RawMessage // answers that came without a state, to questions that the client foresaw; may be nil
	counts  map[string]int  // how often a question without a key of its own was asked
}

// Ask returns the answer to a question, or nil if the client has to be asked. owner is who asks, and
// key names the question; "" names it by its content.
func (a *Questions) Ask(owner []byte, method string, params json.RawMessage, key string) (json.RawMessage, error) {
	if key == "" {
		key = a.nameOf(method, params)
	}
	digest := Digest(owner, []byte(method), params)
	for _, known := range a.State.Asked {
		if known.Key == key && bytes.Equal(known.Digest, digest) {
			return known.Answer, nil
		}
	}
	q := Question{Key: key, Digest: digest, Answer: jsonx.Member(a.Offered, key)}
	if q.Answer == nil {
		q.Request = &protocol.InputRequest{Method: method, Params: params}
	} else if jsonx.Kind(q.Answer) != '{' {
		return nil, notAnObject(key)
	}
	a.State.Asked = append(a.State.Asked, q)
	return q.Answer, nil
}

// nameOf names a question by its content, so that the order in which goroutines ask does not
// matter.
func (a *Questions) nameOf(method string, params json.RawMessage) string {
	if a.counts == nil {
		a.counts = map[string]int{}
	}
	name := short(method) + "-" + hex.EncodeToString(Digest([]byte(method), params)[:4])
	a.counts[name]++
	if n := a.counts[name]; n > 1 {
		name += "-" + strconv.Itoa(n)
	}
	return name
}

// Next returns the state of the round after this one, for which the open questions get the keys that
// the client knows. Several questions get numbers before their keys, since clients that keep JSON
// objects in maps sort by key.
func (a *Questions) Next() *State {
	next := a.State.Clone()
	open := len(next.Asked) - len(next.Learned().Asked)
	if open == 0 {
		return next
	}
	next.Round++
	width, n := len(strconv.Itoa(open)), 0
	for i := range next.Asked {
		q := &next.Asked[i]
		if q.Answer != nil {
			continue
		}
		n++
		sent := q.Key
		if open > 1 {
			sent = fmt.Sprintf("%0*d-%s", width, n, q.Key)
		}
		q.Sent = next.unused(sent)
	}
	return next
}

// unused returns the key, with a number if a question had it before.
func (st *State) unused(key string) string {
	sent := key
	for n := 2; slices.ContainsFunc(st.Asked, func(q Question) bool { return q.Sent == sent }); n++ {
		sent = fmt.Sprintf("%s~%d", key, n)
	}
	return sent
}

// short returns a short name for a kind of question.
func short(method string) string {
	switch method {
	case protocol.MethodElicitationCreate:
		return "elicit"
	case protocol.MethodSamplingCreateMessage:
		return "sample"
	}
	return "roots"
}
