package mcpkit

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/mcpkit/internal/annotation"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/reflectx"
)

// NewEvent describes an event, for clients of package ext/events, that calls fn: a function with the
// signature of an event method.
func NewEvent(name string, fn any) *Builder { return newBuilder(annotation.Event, name, fn) }

// Delivery sets how clients may learn of an event: some of "poll", "push" and "webhook".
func (b *Builder) Delivery(modes ...string) *Builder {
	return b.Tag("delivery", strings.Join(modes, ","))
}

// defineEvent gives e the definition of an event with the method m, and makes its iterator the result of
// the method.
func (s *Server) defineEvent(e *entry, def *spec, m *method) error {
	if !s.config.tags.Any && !slices.ContainsFunc(s.config.extensions, func(x Extension) bool { return x.Events }) {
		return errors.New("nobody serves events: add events.New() of package ext/events to the options of New")
	}
	out := m.fn.Outputs()
	if len(out) != 1 || !out[0].CanSeq2() || out[0].In(0).In(1) != reflect.TypeFor[error]() {
		return errors.New("an event returns an iter.Seq2[T, error] of what happens")
	}
	payload, err := reflectx.OutputSchema(def.Site, out[0].In(0).In(0), s.inputOptions())
	if err == nil && !jsonx.IsString(jsonx.Member(payload, "type"), "object") {
		err = errors.New("what happens is an object; write a struct")
	}
	delivery := def.Delivery
	if len(delivery) == 0 {
		delivery = []string{"poll", "push", "webhook"}
	}
	e.definition = defined(struct {
		Name        string          `json:"name"`
		Title       string          `json:"title,omitzero"`
		Description string          `json:"description,omitzero"`
		Delivery    []string        `json:"delivery"`
		Input       json.RawMessage `json:"inputSchema"`
		Payload     json.RawMessage `json:"payloadSchema"`
		Meta        protocol.Meta   `json:"_meta,omitzero"`
	}{e.key, def.About.Title, def.About.Description, delivery, def.input, payload, def.Meta})
	m.result = func(_ context.Context, _ *Call, values []reflect.Value) (Result, error) {
		return values[0].Interface(), nil
	}
	return err
}

// Event says that requests of the method are about the event that their member name names, which the
// method gets with [Call.Event]. If they stay open until the client ends them, no limit of time or
// number applies.
func (m *Method) Event(staysOpen bool) *Method {
	m.row.open = staysOpen
	m.row.prepare = func(call *Call) (err error) {
		call.name = jsonx.String(call.req.Param("name"))
		call.entry, err = call.choose(call.catalog.list(annotation.Event), call.name)
		return err
	}
	return m
}

// Event returns the event that a request is about; ok is false if the caller may know of none. open
// checks the arguments of the request and calls the event's method, whose iterator it returns.
func (c *Call) Event() (e Entry, open func(ctx context.Context) (any, error), ok bool) {
	e = Entry{c.entry}
	return e, func(ctx context.Context) (any, error) { return e.of.answer(ctx, c) }, c.entry != nil
}
