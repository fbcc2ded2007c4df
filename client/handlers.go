package client

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/mcpkit/mcpkit-go/protocol"
)

// handlers holds the methods of the value passed to Handlers; missing methods are nil.
type handlers struct {
	elicit, elicitURL   func(context.Context, *protocol.ElicitParams) (*protocol.ElicitResult, error)
	sample              func(context.Context, *protocol.CreateMessageParams) (*protocol.CreateMessageResult, error)
	roots               func(context.Context) ([]protocol.Root, error)
	log                 func(context.Context, *protocol.LoggingMessageParams)
	progress            func(context.Context, *protocol.ProgressParams)
	toolsChanged        func(context.Context)
	promptsChanged      func(context.Context)
	resourcesChanged    func(context.Context)
	resourceUpdated     func(context.Context, string)
	elicitationComplete func(context.Context, string)
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
		"ToolsChanged": reflect.ValueOf(&hs.toolsChanged), "PromptsChanged": reflect.ValueOf(&hs.promptsChanged),
		"ResourcesChanged": reflect.ValueOf(&hs.resourcesChanged), "ResourceUpdated": reflect.ValueOf(&hs.resourceUpdated),
		"ElicitationComplete": reflect.ValueOf(&hs.elicitationComplete),
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
			if want, ok := meant(method.Type()); ok {
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

// meant returns the name of the only method with the signature t.
func meant(t reflect.Type) (string, bool) {
	switch t {
	case reflect.TypeFor[func(context.Context, *protocol.ElicitParams) (*protocol.ElicitResult, error)]():
		return "Elicit or ElicitURL", true
	case reflect.TypeFor[func(context.Context, *protocol.CreateMessageParams) (*protocol.CreateMessageResult, error)]():
		return "Sample", true
	case reflect.TypeFor[func(context.Context) ([]protocol.Root, error)]():
		return "Roots", true
	case reflect.TypeFor[func(context.Context, *protocol.LoggingMessageParams)]():
		return "Log", true
	case reflect.TypeFor[func(context.Context, *protocol.ProgressParams)]():
		return "Progress", true
	}
	return "", false
}

// filter returns the list changes that both the handlers and the server support.
func (h *handlers) filter(caps protocol.ServerCapabilities) protocol.SubscriptionFilter {
	return protocol.SubscriptionFilter{
		ToolsListChanged:     h.toolsChanged != nil && caps.Tools != nil && caps.Tools.ListChanged,
		PromptsListChanged:   h.promptsChanged != nil && caps.Prompts != nil && caps.Prompts.ListChanged,
		ResourcesListChanged: h.resourcesChanged != nil && caps.Resources != nil && caps.Resources.ListChanged,
	}
}

// unasked reports whether a handler needs messages that a legacy server sends outside calls.
func (h *handlers) unasked() bool {
	return h.elicit != nil || h.elicitURL != nil || h.sample != nil || h.roots != nil || h.log != nil || h.toolsChanged != nil ||
		h.promptsChanged != nil || h.resourcesChanged != nil || h.resourceUpdated != nil || h.elicitationComplete != nil
}
