package mcptest

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// A Refusal is an answer of a user who does not fill in the form.
type Refusal string

// The refusals.
const (
	Decline Refusal = protocol.ElicitDecline
	Cancel  Refusal = protocol.ElicitCancel
)

// An answer is what the user says to a question.
type answer struct {
	question string
	value    any
}

// Answer is the server as a client sees it whose user answers questions in which the text stands, each time, with the value: what
// encodes as the object that fills the form, a bare value for a form of one field, [Decline] or [Cancel]. Of several that fit, the
// first counts. A question without an answer fails the test.
func (s *Server) Answer(question string, value any) *Server {
	v := s.view()
	v.handlers = nil
	v.answers = append(v.answers, &answer{question, value})
	return v
}

// A script answers by a list.
type script struct {
	t  testing.TB
	mu sync.Mutex // one question at a time

	answers []*answer
}

// Elicit answers a form.
func (s *script) Elicit(_ context.Context, p *protocol.ElicitParams) (*protocol.ElicitResult, error) {
	return s.answer(p)
}

// ElicitURL says whether the user went there.
func (s *script) ElicitURL(_ context.Context, p *protocol.ElicitParams) (*protocol.ElicitResult, error) {
	return s.answer(p)
}

func (s *script) answer(p *protocol.ElicitParams) (*protocol.ElicitResult, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var known []string
	for _, a := range s.answers {
		if !strings.Contains(p.Message, a.question) {
			known = append(known, a.question)
			continue
		}
		if refusal, ok := a.value.(Refusal); ok {
			return &protocol.ElicitResult{Action: string(refusal)}, nil
		}
		if p.URL != "" {
			return &protocol.ElicitResult{Action: protocol.ElicitAccept}, nil
		}
		content, err := fill(p.RequestedSchema, a.value)
		if err != nil {
			s.t.Errorf("mcptest: the answer to %q: %v", p.Message, err)
			return nil, client.ErrRejected
		}
		return &protocol.ElicitResult{Action: protocol.ElicitAccept, Content: content}, nil
	}
	s.t.Errorf("mcptest: the server asked %q, and no answer fits; there are answers to %q", p.Message, known)
	return nil, client.ErrRejected
}

// fill makes the content of a form.
func fill(schema json.RawMessage, value any) (json.RawMessage, error) {
	raw, err := jsonx.Marshal(value)
	if err != nil || jsonx.Kind(raw) == '{' {
		return raw, err
	}
	var names []string
	for name := range jsonx.Members(jsonx.Member(schema, "properties")) {
		names = append(names, string(name))
	}
	if len(names) != 1 {
		return nil, fmt.Errorf("%s cannot fill a form of %d fields; give an object", raw, len(names))
	}
	return json.RawMessage("{" + names[0] + ":" + string(raw) + "}"), nil
}
