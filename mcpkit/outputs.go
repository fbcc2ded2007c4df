package mcpkit

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/png"
	"io"
	"reflect"
	"sync"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/reflectx"
)

// A shape is what a Go type becomes in a result.
type shape uint8

const (
	shapeStructured shape = iota // structs, maps, slices, numbers, bools: output with a schema
	shapeText                    // string
	shapeContent                 // content of the protocol, one or several
	shapeBlob                    // Blob, []byte
	shapeImage                   // image.Image
	shapeReader                  // io.Reader: read to its end
	shapeSeq                     // iter.Seq[T]: collected
	shapeSeqErr                  // iter.Seq2[T, error]: collected
	shapeWhole                   // *protocol.CallToolResult and the like: unchanged
	shapeDynamic                 // any: decided by the value
)

var (
	typeContent = reflect.TypeFor[protocol.Content]()
	typeBlob    = reflect.TypeFor[Blob]()
	typeBytes   = reflect.TypeFor[[]byte]()
	typeImage   = reflect.TypeFor[image.Image]()
	typeReader  = reflect.TypeFor[io.Reader]()
	typeError   = reflect.TypeFor[error]()
	typeAny     = reflect.TypeFor[any]()
	typeRaw     = reflect.TypeFor[json.RawMessage]()
)

// The types of whole results.
var (
	toolResult     = reflect.TypeFor[protocol.CallToolResult]()
	promptResult   = reflect.TypeFor[protocol.GetPromptResult]()
	resourceResult = reflect.TypeFor[protocol.ReadResourceResult]()
)

// shapeOf returns the shape of a result type. whole is the type of whole results.
func shapeOf(t, whole reflect.Type) (shape, error) {
	switch {
	case t == whole, t == reflect.PointerTo(whole):
		return shapeWhole, nil
	case t == typeAny:
		return shapeDynamic, nil
	case t.Kind() == reflect.String && t.PkgPath() == "":
		return shapeText, nil
	case t == typeRaw:
		return shapeStructured, nil
	case t == typeBytes, t == typeBlob, t == reflect.PointerTo(typeBlob):
		return shapeBlob, nil
	case t.Implements(typeContent), reflect.PointerTo(t).Implements(typeContent),
		t.Kind() == reflect.Slice && (t.Elem().Implements(typeContent) || reflect.PointerTo(t.Elem()).Implements(typeContent)):
		return shapeContent, nil
	case t.Implements(typeImage):
		return shapeImage, nil
	case t.Implements(typeReader):
		return shapeReader, nil
	case t.Kind() == reflect.Func && t.CanSeq2() && t.In(0).In(1) == typeError:
		return shapeSeqErr, nil
	case t.Kind() == reflect.Func && t.CanSeq():
		return shapeSeq, nil
	}
	switch t.Kind() {
	case reflect.Func, reflect.Chan, reflect.Complex64, reflect.Complex128, reflect.UnsafePointer, reflect.Uintptr:
		return 0, fmt.Errorf("a result of type %s cannot be sent; return data, an io.Reader or an iter.Seq", t)
	case reflect.Interface:
		return 0, fmt.Errorf("a result of the interface type %s says too little; return any, or a concrete type", t)
	}
	return shapeStructured, nil
}

// outputs turns the Go results of a method into its Result.
type outputs struct {
	shapes []shape
	whole  reflect.Type    // of a result that the method makes itself
	schema json.RawMessage // of the structured result of a tool; nil if there is none
}

// newOutputs returns the outputs of a method with these result types. shapeOf refuses types that
// such a method cannot return.
func newOutputs(site string, types []reflect.Type, whole reflect.Type, shapeOf func(reflect.Type) (shape, error)) (*outputs, error) {
	o := &outputs{whole: whole}
	for _, t := range types {
		sh, err := shapeOf(t)
		if err == nil && sh == shapeWhole && len(types) > 1 {
			err = fmt.Errorf("%s is the whole result; return nothing beside it but an error", t)
		}
		if err != nil {
			return nil, at(site, err)
		}
		o.shapes = append(o.shapes, sh)
	}
	return o, nil
}

// dynamicOutputs are those of a handler that returns any.
func dynamicOutputs(whole reflect.Type) *outputs {
	return &outputs{shapes: []shape{shapeDynamic}, whole: whole}
}

// each calls add with each value and its shape, without nil ones of type any. If a value is the
// whole result, each returns that.
func (o *outputs) each(values []reflect.Value, add func(sh shape, v reflect.Value) error) (whole Result, err error) {
	for i, v := range values {
		if whole, err = o.one(o.shapes[i], v, add); whole != nil || err != nil {
			closeReaders(values[i+1:])
			return whole, err
		}
	}
	return nil, nil
}

// one is each for one value.
func (o *outputs) one(sh shape, v reflect.Value, add func(sh shape, v reflect.Value) error) (whole Result, err error) {
	if sh == shapeDynamic {
		if v.Kind() == reflect.Interface {
			v = v.Elem()
		}
		if !v.IsValid() {
			return nil, nil
		}
		if err, isError := v.Interface().(error); isError { // it has no JSON, so its text would be lost
			return nil, err
		}
		if sh, err = dynamicShape(v.Type(), o.whole); err != nil {
			return nil, err
		}
	}
	if sh == shapeWhole {
		return wholeResult(v)
	}
	return nil, add(sh, v)
}

// closeReaders closes the readers among values of which no result is made.
func closeReaders(values []reflect.Value) {
	for _, v := range values {
		if r, ok := v.Interface().(io.ReadCloser); ok && !isNil(v) {
			_ = r.Close()
		}
	}
}

// isNil reports whether v is a nil pointer or interface.
func isNil(v reflect.Value) bool {
	return (v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface) && v.IsNil()
}

func newToolOutputs(site string, types []reflect.Type, o reflectx.InputOptions) (*outputs, error) {
	var schema json.RawMessage
	structured := 0
	out, err := newOutputs(site, types, toolResult, func(t reflect.Type) (sh shape, err error) {
		sh, err = shapeOf(t, toolResult)
		if err == nil && (sh == shapeStructured || sh == shapeSeq || sh == shapeSeqErr) {
			if structured++; structured > 1 {
				return 0, errors.New("several results want to be the structured output; put them into one struct")
			}
			schema, err = outputSchema(site, t, sh, o)
		}
		return sh, err
	})
	if err != nil {
		return nil, err
	}
	out.schema = schema
	return out, nil
}

func outputSchema(site string, t reflect.Type, sh shape, o reflectx.InputOptions) (json.RawMessage, error) {
	if sh != shapeStructured {
		t = reflect.SliceOf(t.In(0).In(0)) // func(yield func(T) bool)
	}
	if t == typeRaw {
		return nil, nil
	}
	return reflectx.OutputSchema(site, t, o)
}

// tool returns the result of a tool call for the values that the method returned.
func (o *outputs) tool(call *Call, values []reflect.Value) (Result, error) {
	r := &protocol.CallToolResult{}
	whole, err := o.each(values, func(sh shape, v reflect.Value) error { return addToolOutput(call, r, sh, v) })
	if whole != nil || err != nil {
		return whole, err
	}
	return r, nil
}

// wholeResult returns a result that the method made itself.
func wholeResult(v reflect.Value) (Result, error) {
	if v.Kind() != reflect.Pointer {
		p := reflect.New(v.Type())
		p.Elem().Set(v)
		v = p
	}
	if v.IsNil() {
		return nil, fmt.Errorf("the method returned a nil %s without an error", v.Type())
	}
	return v.Interface(), nil
}

func addToolOutput(call *Call, r *protocol.CallToolResult, sh shape, v reflect.Value) error {
	switch sh {
	case shapeText:
		r.Content = append(r.Content, Text(v.String()))
	case shapeStructured:
		return setStructured(call, r, v)
	case shapeContent:
		r.Content = appendContents(r.Content, v)
	case shapeSeq, shapeSeqErr:
		collected, err := collect(call, v, sh)
		if err != nil {
			return err
		}
		return setStructured(call, r, reflect.ValueOf(collected))
	default:
		if isNil(v) {
			return nil
		}
		b, err := blobOf(call, sh, v)
		if err != nil {
			return err
		}
		r.Content = append(r.Content, b.content())
	}
	return nil
}

// setStructured makes v the structured output, and its JSON the text for older clients.
func setStructured(call *Call, r *protocol.CallToolResult, v reflect.Value) error {
	if isNil(v) {
		return Errorf("the tool returned no result and no error: it is a nil %s", v.Type())
	}
	raw, err := jsonx.Marshal(v.Interface())
	if err != nil {
		return fmt.Errorf("the result does not encode: %w", err)
	}
	r.StructuredContent = raw
	r.Content = append(r.Content, Text(string(raw)))
	return nil
}

var dynamicShapes sync.Map // dynamicKey -> shape

type dynamicKey struct{ t, whole reflect.Type }

func dynamicShape(t, whole reflect.Type) (shape, error) {
	key := dynamicKey{t, whole}
	if sh, ok := dynamicShapes.Load(key); ok {
		return sh.(shape), nil
	}
	sh, err := shapeOf(t, whole)
	if err == nil {
		dynamicShapes.Store(key, sh)
	}
	return sh, err
}

// appendContents appends v, a content or a slice of contents, without nil ones.
func appendContents(list []protocol.Content, v reflect.Value) []protocol.Content {
	if v.Kind() == reflect.Slice {
		for i := range v.Len() {
			list = appendContents(list, v.Index(i))
		}
		return list
	}
	if isNil(v) {
		return list
	}
	if c, ok := v.Interface().(protocol.Content); ok {
		return append(list, c)
	}
	p := reflect.New(v.Type())
	p.Elem().Set(v)
	return append(list, p.Interface().(protocol.Content))
}

// blobOf returns a Blob of v, which is not nil: a Blob, bytes, an image or a reader.
func blobOf(call *Call, sh shape, v reflect.Value) (Blob, error) {
	switch sh {
	case shapeBlob:
		switch b := v.Interface().(type) {
		case Blob:
			return b, nil
		case *Blob:
			return *b, nil
		case []byte:
			return Blob{Data: b}, nil
		}
	case shapeImage:
		var buf bytes.Buffer
		if err := png.Encode(&buf, v.Interface().(image.Image)); err != nil {
			return Blob{}, fmt.Errorf("the image does not encode: %w", err)
		}
		return Blob{Data: buf.Bytes(), MIMEType: "image/png"}, nil
	case shapeReader:
		data, err := readAll(v.Interface().(io.Reader), call.server.config.maxResultBytes)
		return Blob{Data: data}, err
	}
	return Blob{}, fmt.Errorf("a result of type %s makes no bytes", v.Type())
}

// readAll reads up to limit bytes and closes r.
func readAll(r io.Reader, limit int) ([]byte, error) {
	if c, ok := r.(io.Closer); ok {
		defer c.Close()
	}
	data, err := io.ReadAll(io.LimitReader(r, int64(limit)+1))
	if err == nil && len(data) > limit {
		err = Errorf("the result is larger than %d bytes", limit)
	}
	return data, err
}

// progressEvery is how often a collected iterator reports progress, unless the method does.
const progressEvery = 100 * time.Millisecond

// collect collects the values of an iterator, up to MaxResultBytes of JSON.
func collect(call *Call, seq reflect.Value, sh shape) (json.RawMessage, error) {
	b := []byte{'['}
	if seq.IsNil() {
		return append(b, ']'), nil
	}
	limit, n := call.server.config.maxResultBytes, 0
	var failed error
	last := time.Now()
	add := func(v reflect.Value) bool {
		if failed == nil { // some iterators continue though add has returned false
			failed = call.limit.Err()
		}
		if failed != nil {
			return false
		}
		if n++; n > 1 {
			b = append(b, ',')
		}
		if b, failed = jsonx.Append(b, v.Interface()); failed == nil && len(b) > limit {
			failed = Errorf("the result is larger than %d bytes after %d items", limit, n)
		}
		if now := time.Now(); now.Sub(last) >= progressEvery {
			last = now
			call.countProgress(n)
		}
		return failed == nil
	}
	if sh == shapeSeq {
		seq.Seq()(add)
	} else {
		seq.Seq2()(func(v, e reflect.Value) bool {
			if err, _ := e.Interface().(error); err != nil && failed == nil {
				failed = err
			}
			return add(v)
		})
	}
	if failed != nil {
		return nil, failed
	}
	return append(b, ']'), nil
}

var typePromptMessage = reflect.TypeFor[protocol.PromptMessage]()

func newResourceOutputs(site string, types []reflect.Type) (*outputs, error) {
	if len(types) == 0 {
		return nil, &reflectx.Error{Site: site, Msg: "a resource returns its contents: string, []byte, mcpkit.Blob, io.Reader, any data, or *protocol.ReadResourceResult"}
	}
	return newOutputs(site, types, resourceResult, func(t reflect.Type) (shape, error) {
		sh, err := shapeOf(t, resourceResult)
		if err == nil && sh == shapeContent {
			err = fmt.Errorf("%s is content, which is for tools and prompts; a resource returns string, []byte, mcpkit.Blob, io.Reader or any data", t)
		}
		return sh, err
	})
}

// read returns the result of resources/read: contents, or a stream if the method returned only a
// reader. Nil means that there is no such resource.
func (o *outputs) read(ctx context.Context, call *Call, res *resource, values []reflect.Value) (Result, error) {
	for _, v := range values {
		if v.Kind() == reflect.Interface {
			v = v.Elem()
		}
		if !v.IsValid() || isNil(v) {
			closeReaders(values)
			return nil, ErrNotFound
		}
		if r, ok := v.Interface().(io.Reader); ok && len(values) == 1 {
			return newStreamed(ctx, call, res, r)
		}
	}
	r := &protocol.ReadResourceResult{Contents: make([]protocol.ResourceContents, 0, len(values)), Cache: cacheHint(res.ttl, res.private)}
	whole, err := o.each(values, func(sh shape, v reflect.Value) error { return addResourceOutput(call, r, res.mime, sh, v) })
	if own, ok := whole.(*protocol.ReadResourceResult); ok && own.TTLMs == nil {
		cached := *own
		cached.Cache = r.Cache
		return &cached, nil
	}
	if whole != nil || err != nil {
		return whole, err
	}
	return r, nil
}

func addResourceOutput(call *Call, r *protocol.ReadResourceResult, mime string, sh shape, v reflect.Value) error {
	add := func(mime string, data []byte) { r.Contents = append(r.Contents, contentsOf(call.name, mime, data)) }
	switch sh {
	case shapeText:
		text := v.String()
		r.Contents = append(r.Contents, protocol.ResourceContents{URI: call.name, MIMEType: cmp.Or(mime, "text/plain"), Text: &text})
	case shapeSeq, shapeSeqErr:
		raw, err := collect(call, v, sh)
		if err != nil {
			return err
		}
		add(cmp.Or(mime, "application/json"), raw)
	case shapeStructured:
		switch c := v.Interface().(type) {
		case protocol.ResourceContents:
			r.Contents = append(r.Contents, c)
			return nil
		case []protocol.ResourceContents:
			r.Contents = append(r.Contents, c...)
			return nil
		}
		text, err := jsonx.Marshal(v.Interface())
		if err != nil {
			return fmt.Errorf("the result does not encode: %w", err)
		}
		add(cmp.Or(mime, "application/json"), text)
	case shapeContent:
		return errors.New("content is for tools and prompts; a resource returns its contents")
	default:
		b, err := blobOf(call, sh, v)
		if err != nil {
			return err
		}
		add(cmp.Or(b.MIMEType, mime, Blob{Data: b.Data}.mime()), b.Data)
	}
	return nil
}

func newPromptOutputs(site string, types []reflect.Type) (*outputs, error) {
	if len(types) == 0 {
		return nil, &reflectx.Error{Site: site, Msg: "a prompt returns its messages: string, protocol.PromptMessage (mcpkit.User, mcpkit.Assistant), several, content, or *protocol.GetPromptResult"}
	}
	return newOutputs(site, types, promptResult, func(t reflect.Type) (shape, error) {
		sh, err := shapeOf(t, promptResult)
		if err == nil && (sh == shapeSeq || sh == shapeSeqErr || sh == shapeStructured && t != typePromptMessage && t != reflect.SliceOf(typePromptMessage)) {
			err = fmt.Errorf("a prompt cannot return %s; return a string, mcpkit.User(…), messages or content", t)
		}
		return sh, err
	})
}

// get returns the result of prompts/get.
func (o *outputs) get(call *Call, description string, values []reflect.Value) (Result, error) {
	r := &protocol.GetPromptResult{Description: description, Messages: []protocol.PromptMessage{}}
	whole, err := o.each(values, func(sh shape, v reflect.Value) error { return addPromptOutput(call, r, sh, v) })
	if whole != nil || err != nil {
		return whole, err
	}
	return r, nil
}

func addPromptOutput(call *Call, r *protocol.GetPromptResult, sh shape, v reflect.Value) error {
	switch sh {
	case shapeText:
		r.Messages = append(r.Messages, User(v.String()))
	case shapeContent:
		for _, c := range appendContents(nil, v) {
			r.Messages = append(r.Messages, User(c))
		}
	case shapeStructured:
		switch m := v.Interface().(type) {
		case protocol.PromptMessage:
			r.Messages = append(r.Messages, m)
		case []protocol.PromptMessage:
			r.Messages = append(r.Messages, m...)
		default:
			return fmt.Errorf("a prompt cannot return %s", v.Type())
		}
	default:
		if isNil(v) {
			return nil
		}
		b, err := blobOf(call, sh, v)
		if err != nil {
			return err
		}
		r.Messages = append(r.Messages, User(b.content()))
	}
	return nil
}
