package mcpkit

import (
	"fmt"
	"reflect"

	"github.com/mcpkit/mcpkit-go/internal/naming"
	"github.com/mcpkit/mcpkit-go/mcpkit/internal/annotation"
	"github.com/mcpkit/mcpkit-go/mcpkit/internal/service"
	"github.com/mcpkit/mcpkit-go/reflectx"
)

// The markers say in a service's annotation block what its methods are. The block is a blank field
// of anonymous struct type; its field names are method names:
//
//	type Notes struct {
//		_ struct {
//			Search mcpkit.Tool     `hints:"readonly"`
//			Note   mcpkit.Resource `uri:"note://{id}"`
//			Ask    mcpkit.Prompt   `params:"topic,style?"`
//			Reload mcpkit.Skip
//		}
//	}
//
// They take no space. The tags that each takes are listed in docs/reference/tags.md.
type (
	// Tool marks a method as a tool. Exported methods that the block does not list are tools. The
	// definition that clients get is a [protocol.Tool].
	Tool struct{}
	// Resource marks a method as a resource or, if its URI has variables, as a resource template.
	Resource struct{}
	// Prompt marks a method as a prompt.
	Prompt struct{}
	// Event marks a method as an event, for clients of package ext/events.
	Event struct{}
	// Skip hides an exported method from clients.
	Skip struct{}
	// Info is the type of a blank field of a service, whose tags set the server's name, version,
	// title and so on.
	Info struct{}
)

// markers are the markers by their types.
var markers = map[reflect.Type]annotation.Kind{
	reflect.TypeFor[Tool]():     annotation.Tool,
	reflect.TypeFor[Resource](): annotation.Resource,
	reflect.TypeFor[Prompt]():   annotation.Prompt,
	reflect.TypeFor[Event]():    annotation.Event,
	reflect.TypeFor[Info]():     annotation.Info,
	reflect.TypeFor[Skip]():     annotation.Skip,
}

// Register adds a service. Each exported method becomes a tool, or what the annotation block says.
// The error, a [reflectx.Errors], has all faults of the service; then nothing of it is registered.
func (s *Server) Register(service any, opts ...ServiceOption) error {
	return s.registerAll([]registration{newRegistration(service, opts)})
}

// registerAll registers all services, or returns all of their faults.
func (s *Server) registerAll(regs []registration) error {
	var faults reflectx.Errors
	var all []Item
	for i := range regs {
		items, err := s.itemsOf(&regs[i])
		faults.Add("", err)
		all = append(all, items...)
	}
	if err := s.put(faults, all, nil); err != nil {
		return err
	}
	for _, reg := range regs {
		s.life.add(reg.service)
	}
	return nil
}

// itemsOf returns the methods of a service, and notes what it says about itself.
func (s *Server) itemsOf(reg *registration) (items []Item, err error) {
	if err := checkService(reg); err != nil {
		return nil, err
	}
	read := service.Read(reg.service, service.Options{
		Markers: markers, Extensions: s.config.tags, OptIn: reg.optIn, Comments: descriptions,
	})
	reg.about = read.About
	for _, m := range read.Methods {
		if reg.prefix != "" && !m.Kind.IsResource() {
			m.About.Name = reg.prefix + "_" + m.About.Name
		}
		items = append(items, &spec{Method: m, methods: read.All, guards: reg.guards})
	}
	return items, read.Faults.Err()
}

// checkService refuses what is not a service.
func checkService(reg *registration) error {
	var err error
	v := reflect.ValueOf(reg.service)
	_, isItem := reg.service.(Item)
	_, isServer := reg.service.(*Server)
	switch {
	case v.Kind() == reflect.Pointer && v.IsNil():
		err = fmt.Errorf("the service is a nil %T; write for example &Notes{}", reg.service)
	case v.Kind() == reflect.Struct:
		err = fmt.Errorf("a service is a pointer to a struct, not %T; write &%s{}", reg.service, v.Type().Name())
	case v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct:
		err = fmt.Errorf("a service is a pointer to a struct, not %T; write for example &Notes{}", reg.service)
	case isItem || isServer:
		err = fmt.Errorf("a %T is not a service; pass it to Server.Add or Server.Mount", reg.service)
	case reg.prefix != "":
		err = prefixed("prefix: ", naming.Check(reg.prefix))
	}
	return prefixed("mcpkit: ", err)
}
