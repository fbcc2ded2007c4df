package mcptest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// A Refusal is the answer of a user who does not fill in the form.
type Refusal string

// The refusals.
const (
	Decline Refusal = protocol.ElicitDecline
	Cancel  Refusal = protocol.ElicitCancel
)

// An answer is the user's answer to questions that contain a text.
type answer struct {
	question string
	value    any
	used     atomic.Bool
}

// Answer returns a view whose user gives this answer to every question that contains the text
// question. The value is what encodes as the object that fills in the form, a single value for a
// form of one field, [Decline] or [Cancel]. If several answers match, the first one is used.
//
// A question without an answer fails the test, and so does an answer without a question. Answers of
// views with a protocol version before 2025-06-18, which cannot ask, do not count.
func (s *Server) Answer(question string, value any) *Server {
	s.t.Helper()
	a := &answer{question: question, value: value}
	s.t.Cleanup(func() {
		if !a.used.Load() && !s.t.Failed() {
			s.t.Errorf("mcptest: no question contained %q, so its answer was not used", question)
		}
	})
	return s.with(func(v *Server) { v.handlers, v.answers = nil, append(slices.Clip(s.answers), a) })
}

// A script answers questions from a list.
type script struct {
	t       testing.TB
	answers []*answer
}

// Elicit answers a form.
func (s *script) Elicit(_ context.Context, p *protocol.ElicitParams) (*protocol.ElicitResult, error) {
	return s.answer(p)
}

// ElicitURL answers whether the user opened the page.
func (s *script) ElicitURL(_ context.Context, p *protocol.ElicitParams) (*protocol.ElicitResult, error) {
	return s.answer(p)
}

func (s *script) answer(p *protocol.ElicitParams) (*protocol.ElicitResult, error) {
	var known []string
	for _, a := range s.answers {
		if !strings.Contains(p.Message, a.question) {
			known = append(known, a.question)
			continue
		}
		a.used.Store(true)
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
	s.t.Errorf("mcptest: the server asked %q, but no answer matches; there are answers to %q", p.Message, known)
	return nil, client.ErrRejected
}

// fill returns the content of a form.
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
