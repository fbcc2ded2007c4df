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
	Method    string                     `json:"m"`
	Name      string                     `json:"n"`
	Arguments []byte                     `json:"d"` // digest
	Principal []byte                     `json:"p"` // digest of its key
	Expires   int64                      `json:"x"` // Unix seconds
	Round     int                        `json:"r"`
	Ref       string                     `json:"i"` // of the call: the same in all rounds
	Begun     int64                      `json:"b"` // Unix milliseconds
	Answers   map[string]Answer          `json:"a,omitempty"`
	Once      map[string]json.RawMessage `json:"o,omitempty"`
	Waiting   map[string]Waiting         `json:"w,omitempty"` // the questions of this round, by the key that the client knows

	// What clients know themselves, and journals keep.
	Open protocol.InputRequests `json:"q,omitempty"` // the questions of this round
	Used []string               `json:"u,omitempty"` // the keys of all questions that there were
}

// Clone returns a copy whose maps nothing else changes.
func (st *State) Clone() *State {
	c := *st
	c.Answers, c.Once, c.Waiting, c.Open = maps.Clone(st.Answers), maps.Clone(st.Once), maps.Clone(st.Waiting), maps.Clone(st.Open)
	c.Used = slices.Clip(st.Used)
	return &c
}

// Answer keeps the answer to a question of this round.
func (st *State) Answer(key string, value json.RawMessage) {
	st.keep(st.Waiting[key], value)
	delete(st.Waiting, key)
	delete(st.Open, key)
}

func (st *State) keep(q Waiting, value json.RawMessage) {
	if st.Answers == nil {
		st.Answers = map[string]Answer{}
	}
	st.Answers[q.Key] = Answer{q.Question, value}
}

// use returns the key that the client gets for a question: one that it has not seen.
func (st *State) use(name string) string {
	key := name
	for n := 2; slices.Contains(st.Used, key); n++ {
		key = fmt.Sprintf("%s~%d", name, n)
	}
	st.Used = append(st.Used, key)
	return key
}

// An Answer is bound to its question, so that no other question gets it.
type Answer struct {
	Question []byte          `json:"q"`
	Value    json.RawMessage `json:"v"`
}

// A Waiting question was asked in the round before.
type Waiting struct {
	Key      string `json:"k"`
	Question []byte `json:"q"`
}

// Questions are those of one call. The zero value is that of a first round. They are not safe for
// concurrent use.
type Questions struct {
	State   State           // of the rounds before; zero in the first
	Journal bool            // the client gets each key once
	offered json.RawMessage // responses without a state: answers to questions that the client foresaw
	pending []pending       // asked in this round, in this order
	counts  map[string]int  // how often a question without a key of its own was asked
	reused  map[string]bool // keys of kept values that the method got
}

// KeptValue returns the value of Once that an earlier round kept under key.
func (a *Questions) KeptValue(key string) (value json.RawMessage, ok bool) {
	if value, ok = a.State.Once[key]; ok {
		if a.reused == nil {
			a.reused = map[string]bool{}
		}
		a.reused[key] = true
	}
	return value, ok
}

// Unused returns the keys of the values of earlier rounds that the method did not get, sorted.
func (a *Questions) Unused(before map[string]json.RawMessage) (keys []string) {
	for key := range before {
		if !a.reused[key] {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// A pending question goes to the client when the method returns.
type pending struct {
	Waiting
	request protocol.InputRequest
}

// Answered returns the questions of a retry. state is that of the round before, or nil. responses
// are the answers of the client, an object or nil.
func Answered(state *State, responses json.RawMessage) (*Questions, *jsonrpc.Error) {
	if state == nil {
		return &Questions{offered: responses}, nil
	}
	q := &Questions{State: *state}
	for name := range state.Waiting {
		value := jsonx.Member(responses, name)
		if value == nil {
			continue // asked again if the method still wants it
		}
		if jsonx.Kind(value) != '{' {
			return nil, badResponse(name)
		}
		q.State.Answer(name, value)
	}
	q.State.Waiting = nil
	return q, nil
}

func badResponse(name string) *jsonrpc.Error {
	return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "inputResponses: the response %q is not an object", name)
}

// Ask returns the answer to a question, or nil if the client has to be asked: then the question is
// pending. owner is who asks, and key names the question; "" names it by its content.
func (a *Questions) Ask(owner []byte, method string, params json.RawMessage, key string) (json.RawMessage, error) {
	q := Waiting{Key: key, Question: Digest(owner, []byte(method), params)}
	if q.Key == "" {
		q.Key = a.nameOf(method, params)
	}
	if known, ok := a.State.Answers[q.Key]; ok && bytes.Equal(known.Question, q.Question) {
		return known.Value, nil
	}
	if value := jsonx.Member(a.offered, q.Key); value != nil {
		if jsonx.Kind(value) != '{' {
			return nil, badResponse(q.Key)
		}
		a.State.keep(q, value)
		return value, nil
	}
	for _, p := range a.pending {
		switch {
		case p.Key != q.Key:
		case !bytes.Equal(p.Question, q.Question):
			return nil, fmt.Errorf("two questions of this call have the key %q", q.Key)
		default:
			return nil, nil
		}
	}
	a.pending = append(a.pending, pending{q, protocol.InputRequest{Method: method, Params: params}})
	return nil, nil
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

// Next returns the state of the round after this one, with the open questions, if there are any.
// Several questions get numbers before their keys, since clients that keep JSON objects in maps sort by
// key.
func (a *Questions) Next() *State {
	next := a.State.Clone()
	next.Waiting, next.Open = nil, nil
	if len(a.pending) == 0 {
		return next
	}
	next.Round++
	next.Waiting, next.Open = map[string]Waiting{}, protocol.InputRequests{}
	width := len(strconv.Itoa(len(a.pending)))
	for i, p := range a.pending {
		key := p.Key
		if len(a.pending) > 1 {
			key = fmt.Sprintf("%0*d-%s", width, i+1, p.Key)
		}
		if a.Journal {
			key = next.use(key)
		}
		next.Open[key], next.Waiting[key] = p.request, p.Waiting
	}
	return next
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
