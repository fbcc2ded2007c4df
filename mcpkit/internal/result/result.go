// Package result makes protocol results of the Go values that methods return.
//
// How a value is converted is decided once for each type, when its method is registered. Each value
// becomes a piece, which does not depend on what the result is for, and the pieces are put together
// as the result of a tool, a prompt or a resource.
package result

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"

	"github.com/mcpkit/mcpkit-go/mcpkit/internal/annotation"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// wholes are the types of results that methods of a kind make themselves.
var wholes = map[annotation.Kind]reflect.Type{
	annotation.Tool:     reflect.TypeFor[protocol.CallToolResult](),
	annotation.Prompt:   reflect.TypeFor[protocol.GetPromptResult](),
	annotation.Resource: reflect.TypeFor[protocol.ReadResourceResult](),
	annotation.Template: reflect.TypeFor[protocol.ReadResourceResult](),
}

// A Call is what the conversion needs of a call.
type Call struct {
	Context  context.Context
	Kind     fmt.Stringer // of what is called, for errors: "tool"
	Name     string
	MaxBytes int         // limits what is collected from a reader or an iterator
	Progress func(n int) // is told how many items were collected
	Small    bool        // the last results of the method were small
}

// Outputs turn the Go results of one method into its protocol result.
type Outputs struct {
	// Structured is the type of the structured output of a tool, whose schema clients get; nil if
	// there is none.
	Structured reflect.Type
	forms      []form
}

// New returns the outputs of a method with these result types. The error says which of them such a
// method cannot return.
func New(k annotation.Kind, types []reflect.Type) (*Outputs, error) {
	if len(types) == 0 {
		switch {
		case k == annotation.Prompt:
			return nil, errors.New("a prompt returns its messages: string, protocol.PromptMessage (mcpkit.User, mcpkit.Assistant), several, content, or *protocol.GetPromptResult")
		case k.IsResource():
			return nil, errors.New("a resource returns its contents: string, []byte, mcpkit.Blob, io.Reader, any data, or *protocol.ReadResourceResult")
		}
	}
	o := &Outputs{}
	structured := 0
	for _, t := range types {
		f, err := formOf(k, t)
		if err != nil {
			return nil, err
		}
		if f.whole && len(types) > 1 {
			return nil, fmt.Errorf("%s is the whole result; return nothing beside it but an error", t)
		}
		if k == annotation.Tool && f.structured {
			if structured++; structured > 1 {
				return nil, errors.New("several results want to be the structured output; put them into one struct")
			}
			o.Structured = f.schema
		}
		o.forms = append(o.forms, f)
	}
	return o, nil
}

// fill calls add with the piece of each value and returns the result, or the value that is the whole result.
func (o *Outputs) fill(result any, call Call, values []reflect.Value, add func(piece)) (any, error) {
	for i, v := range values {
		p, err := o.forms[i].convert(call, v)
		if err != nil || p.whole != nil {
			CloseReaders(values[i+1:])
			return p.whole, err
		}
		add(p)
	}
	return result, nil
}

// CloseReaders closes the readers among values of which no result is made.
func CloseReaders(values []reflect.Value) {
	for _, v := range values {
		if r, ok := v.Interface().(io.ReadCloser); ok && !IsNil(v) {
			_ = r.Close()
		}
	}
}

// IsNil reports whether v is a nil pointer or interface.
func IsNil(v reflect.Value) bool {
	return (v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface) && v.IsNil()
}

// Tool returns the result of a tool for the values that its method returned.
func (o *Outputs) Tool(call Call, values []reflect.Value) (any, error) {
	r := &protocol.CallToolResult{}
	return o.fill(r, call, values, func(p piece) {
		r.Content = p.appendTo(r.Content)
		if p.json != nil {
			r.SetValid(p.json)
		}
	})
}

// Prompt returns the result of a prompt with the description.
func (o *Outputs) Prompt(call Call, description string, values []reflect.Value) (any, error) {
	r := &protocol.GetPromptResult{Description: description, Messages: []protocol.PromptMessage{}}
	return o.fill(r, call, values, func(p piece) {
		for _, c := range p.appendTo(nil) {
			r.Messages = append(r.Messages, User(c))
		}
		r.Messages = append(r.Messages, p.messages...)
	})
}

// Resource returns the contents of the resource with the URI. mime is its media type, if it is known.
func (o *Outputs) Resource(call Call, uri, mime string, cache protocol.Cache, values []reflect.Value) (any, error) {
	r := &protocol.ReadResourceResult{Contents: make([]protocol.ResourceContents, 0, len(values)), Cache: cache}
	add := func(mime string, data []byte) { r.Contents = append(r.Contents, ContentsOf(uri, mime, data)) }
	filled, err := o.fill(r, call, values, func(p piece) {
		switch {
		case p.text != nil:
			c := protocol.ResourceContents{URI: uri, MIMEType: cmp.Or(mime, "text/plain"), Text: p.text}
			r.Contents = append(r.Contents, c)
		case p.json != nil:
			add(cmp.Or(mime, "application/json"), p.json)
		case p.blob != nil:
			add(cmp.Or(p.blob.MIMEType, mime, Blob{Data: p.blob.Data}.mime()), p.blob.Data)
		}
		r.Contents = append(r.Contents, p.resources...)
	})
	if own, ok := filled.(*protocol.ReadResourceResult); ok && own.TTLMs == nil {
		cached := *own
		cached.Cache = cache
		return &cached, err
	}
	return filled, err
}
