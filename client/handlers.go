package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/mcpkit/mcpkit-go/protocol"
)

// handlers holds the methods of the value passed to Handlers; missing methods are nil.
type handlers struct {
	elicit, elicitURL   func(context.Context, *protocol.ElicitParams) (*protocol.ElicitResult, error)
	sample              func(context.Context, *protocol.CreateMessageParams) (*protocol.CreateMessageResult, error)
	roots               func(context.Context) ([]protocol.Root, error)
	log                 func(context.Context, *protocol.LoggingMessageParams)
	progress            func(context.Context, *protocol.ProgressParams)
	listChanged         [3]func(context.Context) // by kind of change
	resourceUpdated     func(context.Context, string)
	elicitationComplete func(context.Context, string)
	notification        func(context.Context, string, json.RawMessage)
}

// newHandlers finds the methods of h by name. It refuses wrong signatures and misspelled names,
// which would silently remove a capability.
func newHandlers(h any) (*handlers, error) {
	hs := &handlers{}
	v := reflect.ValueOf(h)
	if !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return nil, errors.New("client: Handlers(nil): want a value with methods")
	}
	fields := map[string]reflect.Value{
		"Elicit": reflect.ValueOf(&hs.elicit), "ElicitURL": reflect.ValueOf(&hs.elicitURL), "Sample": reflect.ValueOf(&hs.sample),
		"Roots": reflect.ValueOf(&hs.roots), "Log": reflect.ValueOf(&hs.log), "Progress": reflect.ValueOf(&hs.progress),
		"ToolsChanged": reflect.ValueOf(&hs.listChanged[0]), "PromptsChanged": reflect.ValueOf(&hs.listChanged[1]),
		"ResourcesChanged": reflect.ValueOf(&hs.listChanged[2]), "ResourceUpdated": reflect.ValueOf(&hs.resourceUpdated),
		"ElicitationComplete": reflect.ValueOf(&hs.elicitationComplete), "Notification": reflect.ValueOf(&hs.notification),
	}
	var errs []error
	found := 0
	for i := range v.NumMethod() {
		name, method := v.Type().Method(i).Name, v.Method(i)
		field, known := fields[name]
		switch {
		case known && method.Type() == field.Elem().Type():
			field.Elem().Set(method)
			found++
		case known:
			errs = append(errs, fmt.Errorf("client: Handlers: %s.%s is a %s; want %s", v.Type(), name, method.Type(), field.Elem().Type()))
		default:
			if want := meant(fields, method.Type()); want != "" {
				errs = append(errs, fmt.Errorf("client: Handlers: %s.%s has the signature of %s; rename it", v.Type(), name, want))
			}
		}
	}
	if found == 0 && errs == nil {
		errs = append(errs, fmt.Errorf("client: Handlers: %s has none of the methods; if they have a pointer receiver, pass a pointer", v.Type()))
	}
	if errs != nil {
		return nil, errors.Join(errs...)
	}
	return hs, nil
}

// meant returns the names of the methods with the signature t. It returns "" if t has no type of
// package protocol, since such methods may be for something else.
func meant(fields map[string]reflect.Value, t reflect.Type) string {
	var names []string
	for name, field := range fields {
		if field.Elem().Type() == t && (t.NumOut() > 0 || t.In(t.NumIn()-1).Kind() == reflect.Pointer) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return strings.Join(names, " or ")
}

// filter returns the list changes that both the handlers and the server support.
func (h *handlers) filter(caps protocol.ServerCapabilities) protocol.SubscriptionFilter {
	f := caps.ListChanges()
	for i, sent := range listsIn(&f) {
		*sent = *sent && h.listChanged[i] != nil
	}
	return f
}

// unasked reports whether a handler needs messages that a legacy server sends outside calls.
func (h *handlers) unasked() bool {
	others := *h
	others.progress = nil // arrives during calls
	return !reflect.ValueOf(others).IsZero()
}
