package mcpkit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/internal/naming"
	"github.com/mcpkit/mcpkit-go/mcpkit/internal/result"
	"github.com/mcpkit/mcpkit-go/mcpkit/internal/secret"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/reflectx"
)

// A rawFunc reads its arguments from the call and returns what a method may return.
type rawFunc func(ctx context.Context, call *Call) (any, error)

// values returns h as a method with one result.
func (h rawFunc) values(ctx context.Context, call *Call) ([]reflect.Value, error) {
	v, err := h(ctx, call)
	return []reflect.Value{reflect.ValueOf(&v).Elem()}, err
}

// addRaw adds the entry that build makes for the handler h of a complete definition.
func (s *Server) addRaw(what, name string, h rawFunc, build func(d *draft, e entry) error) error {
	e := entry{key: name, site: calledFrom(fmt.Sprintf("mcpkit: %s %s", what, jsonx.AppendString(nil, name))), logs: true}
	if h == nil {
		return &reflectx.Error{Site: e.site, Msg: "the handler is nil; give a func(context.Context, *mcpkit.Call) (any, error)"}
	}
	var d draft
	if err := build(&d, e); err != nil {
		return at(e.site, err)
	}
	return s.add(d)
}

// addRawTool adds a tool whose schemas were written by hand.
func (s *Server) addRawTool(d *draft, t *tool, h rawFunc) error {
	input, inErr := s.handSchema("input", t.def.InputSchema)
	output, outErr := s.handSchema("output", t.def.OutputSchema)
	if err := joinFaults(at(t.site, naming.Check(t.def.Name)), at(t.site, inErr), at(t.site, outErr)); err != nil {
		return err
	}
	validate := refuseArguments
	if input == nil {
		t.def.InputSchema = noArguments
	} else {
		t.secrets = secret.OfSchema(t.def.InputSchema)
		validate = func(_ context.Context, args json.RawMessage) error {
			if args == nil {
				args = json.RawMessage("{}")
			}
			return input.Validate(args)
		}
	}
	return s.addTool(d, t, result.Dynamic(result.Tool), output, func(ctx context.Context, call *Call) ([]reflect.Value, error) {
		if err := validate(ctx, call.Arguments()); err != nil {
			return nil, err
		}
		return h.values(ctx, call)
	})
}

func prefixed(prefix string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s%w", prefix, err)
}

// checkOutput validates a result against the output schema, since clients rely on it (server/tools,
// "Output Schema").
func checkOutput(schema reflectx.RawSchema, output Result) error {
	r, ok := output.(*protocol.CallToolResult)
	if !ok || r.IsError {
		return nil
	}
	if r.StructuredContent == nil {
		return fmt.Errorf("the tool has an output schema but returned no structured content")
	}
	if err := schema.Validate(r.StructuredContent); err != nil {
		return fmt.Errorf("the structured content does not fit the output schema: %v", err)
	}
	return nil
}

// AddTool registers a tool with a complete definition, for instance one that another program
// described. The arguments are validated against the input schema before h runs; h reads them from
// the call. For schemas the server needs the option [RawSchemas]; without an input schema the tool
// takes no arguments.
func (s *Server) AddTool(def protocol.Tool, h func(ctx context.Context, call *Call) (any, error)) error {
	return s.addRaw("tool", def.Name, h, func(d *draft, e entry) error { return s.addRawTool(d, &tool{entry: e, def: def}, h) })
}

// AddPrompt registers a prompt with a complete definition. h reads the arguments with [Call.Var]
// and returns what a prompt method may return.
func (s *Server) AddPrompt(def protocol.Prompt, h func(ctx context.Context, call *Call) (any, error)) error {
	return s.addRaw("prompt", def.Name, h, func(d *draft, e entry) error {
		if err := naming.Check(def.Name); err != nil {
			return err
		}
		s.addPrompt(d, &prompt{entry: e, def: def}, result.Dynamic(result.Prompt), func(ctx context.Context, call *Call) ([]reflect.Value, error) {
			for _, a := range def.Arguments {
				if _, ok := call.text(a.Name); !ok && a.Required != nil && *a.Required {
					return nil, invalidParams("prompt %q needs the argument %q", call.name, a.Name)
				}
			}
			return rawFunc(h).values(ctx, call)
		})
		return nil
	})
}

// AddResource registers a resource with a complete definition. h returns what a resource method may
// return.
func (s *Server) AddResource(def protocol.Resource, h func(ctx context.Context, call *Call) (any, error)) error {
	return s.addRaw("resource", def.URI, h, func(d *draft, e entry) error {
		if !strings.Contains(def.URI, ":") {
			return fmt.Errorf("%q is not an absolute URI", def.URI)
		}
		s.addResource(d, &resource{entry: e, def: def, mime: def.MIMEType, private: true}, result.Dynamic(result.Resource), rawFunc(h).values)
		return nil
	})
}

// AddResourceTemplate registers a resource template with a complete definition. h reads the
// variables with [Call.Var] and returns what a resource method may return.
func (s *Server) AddResourceTemplate(def protocol.ResourceTemplate, h func(ctx context.Context, call *Call) (any, error)) error {
	return s.addRaw("resource template", def.URITemplate, h, func(d *draft, e entry) error {
		tmpl, err := parseTemplate(def.URITemplate)
		if err != nil {
			return err
		}
		if len(tmpl.Vars()) == 0 {
			return errors.New("the template has no variables; use AddResource")
		}
		r := &resource{entry: e, templateDef: def, template: tmpl, mime: def.MIMEType, private: true}
		s.addResource(d, r, result.Dynamic(result.Resource), rawFunc(h).values)
		return nil
	})
}
