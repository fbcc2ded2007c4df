package mcpkit

import (
	"context"
	"log/slog"
	"reflect"

	"github.com/mcpkit/mcpkit-go/internal/rehearsal"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/reflectx"
)

// Rehearse registers a service of which there are only the types, as "mcpkit vet" makes them from source. Its parameter is of an
// internal package: it is not for programs.
func Rehearse(in rehearsal.Service) rehearsal.Result {
	s, err := New(nil, Logger(slog.New(slog.DiscardHandler)), Authenticated())
	if err != nil {
		return rehearsal.Result{Faults: reflectx.Errors{{Msg: err.Error()}}}
	}
	s.words = in.Words
	for _, t := range in.Provided {
		s.config.providers[t] = func(context.Context) (reflect.Value, func(), error) { return reflect.Zero(t), nil, nil }
	}
	r := newRegistrar(s, registration{prefix: in.Prefix, optIn: in.OptIn})
	r.typ, r.name = in.Type, in.Name
	err = r.read(in.Methods)
	if err == nil {
		r.addAll()
		err = joinFaults(s.addUnless(r.faults, &r.draft))
	}
	if err != nil {
		faults, _ := joinFaults(err).(reflectx.Errors)
		return rehearsal.Result{Faults: faults}
	}
	b := []byte{'['}
	for i, t := range s.catalog.Load().tools.all() {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, t.base().wires[revisionIndex(protocol.Latest)]()...)
	}
	return rehearsal.Result{Tools: append(b, ']')}
}
