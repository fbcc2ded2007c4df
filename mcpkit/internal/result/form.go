package result

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"io"
	"reflect"
	"time"
	"unsafe"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/mcpkit/internal/annotation"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// A piece is a value that a method returned. At most one field is set; none is for a nil value that
// adds nothing.
type piece struct {
	text      *string
	json      json.RawMessage // data
	blob      *Blob
	content   []protocol.Content
	messages  []protocol.PromptMessage
	resources []protocol.ResourceContents
	whole     any // the result itself
}

// appendTo appends the piece as content: data as its JSON, for clients without structured output.
func (p piece) appendTo(list []protocol.Content) []protocol.Content {
	switch {
	case p.text != nil:
		return append(list, Text(*p.text))
	case p.json != nil: // which does not change
		return append(list, Text(unsafe.String(unsafe.SliceData(p.json), len(p.json))))
	case p.blob != nil:
		return append(list, p.blob.content())
	}
	return append(list, p.content...)
}

// A form is how values of a Go type become pieces.
type form struct {
	convert    func(call Call, v reflect.Value) (piece, error)
	structured bool         // the output of a tool has a schema
	schema     reflect.Type // of structured output; nil if it is not known
	whole      bool         // the value is the result itself
}

// is reports whether t is T.
func is[T any](t reflect.Type) bool { return t == reflect.TypeFor[T]() }

// formOf returns the form of a type in results of the kind.
func formOf(k annotation.Kind, t reflect.Type) (form, error) {
	whole := wholes[k]
	switch {
	case whole != nil && (t == whole || t == reflect.PointerTo(whole)):
		return form{convert: convertWhole, whole: true}, nil
	case is[any](t):
		return dynamic(k), nil
	case t.Kind() == reflect.String && t.PkgPath() == "":
		return form{convert: convertText}, nil
	case is[json.RawMessage](t) && k != annotation.Prompt: // JSON, not bytes
		return form{convert: convertData, structured: true}, nil
	case is[[]byte](t), is[Blob](t), is[*Blob](t):
		return form{convert: convertBlob}, nil
	case k == annotation.Prompt && (is[protocol.PromptMessage](t) || is[[]protocol.PromptMessage](t)):
		return form{convert: func(_ Call, v reflect.Value) (piece, error) {
			return piece{messages: listOf[protocol.PromptMessage](v)}, nil
		}}, nil
	case k.IsResource() && (is[protocol.ResourceContents](t) || is[[]protocol.ResourceContents](t)):
		return form{convert: func(_ Call, v reflect.Value) (piece, error) {
			return piece{resources: listOf[protocol.ResourceContents](v)}, nil
		}}, nil
	case isContent(t), t.Kind() == reflect.Slice && isContent(t.Elem()):
		if k.IsResource() {
			return form{}, fmt.Errorf("%s is content, which is for tools and prompts; a resource returns string, []byte, mcpkit.Blob, io.Reader or any data", t)
		}
		return form{convert: convertContent}, nil
	case t.Implements(reflect.TypeFor[image.Image]()):
		return form{convert: convertImage}, nil
	case t.Implements(reflect.TypeFor[io.Reader]()):
		return form{convert: convertReader}, nil
	case k != annotation.Prompt && isSeq(t):
		return form{convert: collect, structured: true, schema: reflect.SliceOf(t.In(0).In(0))}, nil
	}
	if k == annotation.Prompt {
		return form{}, fmt.Errorf("a prompt cannot return %s; return a string, mcpkit.User(…), messages or content", t)
	}
	switch t.Kind() {
	case reflect.Func, reflect.Chan, reflect.Complex64, reflect.Complex128, reflect.UnsafePointer, reflect.Uintptr:
		return form{}, fmt.Errorf("a result of type %s cannot be sent; return data, an io.Reader or an iter.Seq", t)
	case reflect.Interface:
		return form{}, fmt.Errorf("a result of the interface type %s says too little; return any, or a concrete type", t)
	}
	return form{convert: convertData, structured: true, schema: t}, nil
}

func isContent(t reflect.Type) bool {
	content := reflect.TypeFor[protocol.Content]()
	return t.Implements(content) || reflect.PointerTo(t).Implements(content)
}

// isSeq reports whether t is an iter.Seq[T], func(yield func(T) bool), or an iter.Seq2[T, error].
func isSeq(t reflect.Type) bool {
	return t.Kind() == reflect.Func && (t.CanSeq() || t.CanSeq2() && is[error](t.In(0).In(1)))
}

// dynamic returns the form of values whose types are not known before.
func dynamic(k annotation.Kind) form {
	return form{convert: func(call Call, v reflect.Value) (piece, error) {
		if v.Kind() == reflect.Interface {
			v = v.Elem()
		}
		if !v.IsValid() {
			return piece{}, nil
		}
		if err, isError := v.Interface().(error); isError { // it has no JSON, so its text would be lost
			return piece{}, err
		}
		f, err := formOf(k, v.Type())
		if err != nil {
			return piece{}, err
		}
		return f.convert(call, v)
	}}
}

func convertWhole(_ Call, v reflect.Value) (piece, error) {
	v = addressed(v)
	if v.IsNil() {
		return piece{}, fmt.Errorf("the method returned a nil %s without an error", v.Type())
	}
	return piece{whole: v.Interface()}, nil
}

// addressed returns a pointer to v, unless v is one.
func addressed(v reflect.Value) reflect.Value {
	if v.Kind() == reflect.Pointer {
		return v
	}
	p := reflect.New(v.Type())
	p.Elem().Set(v)
	return p
}

func convertText(_ Call, v reflect.Value) (piece, error) { return piece{text: new(v.String())}, nil }

func convertData(call Call, v reflect.Value) (piece, error) {
	if IsNil(v) {
		return piece{}, Errorf("the tool returned no result and no error: it is a nil %s", v.Type())
	}
	marshal := jsonx.MarshalLarge
	if call.Small {
		marshal = jsonx.Marshal
	}
	data, err := marshal(v.Interface())
	if err != nil {
		return piece{}, fmt.Errorf("the result does not encode: %w", err)
	}
	return piece{json: data}, nil
}

// convertContent converts content or a slice of content, without nil ones.
func convertContent(_ Call, v reflect.Value) (p piece, err error) {
	if v.Kind() != reflect.Slice {
		p.addContent(v)
		return p, nil
	}
	for i := range v.Len() {
		p.addContent(v.Index(i))
	}
	return p, nil
}

func (p *piece) addContent(v reflect.Value) {
	if !IsNil(v) {
		p.content = append(p.content, ContentOf(v.Interface()))
	}
}

// listOf returns v, which is a T or a list of them, as a list.
func listOf[T any](v reflect.Value) []T {
	if one, ok := v.Interface().(T); ok {
		return []T{one}
	}
	return v.Interface().([]T)
}

func convertBlob(_ Call, v reflect.Value) (piece, error) {
	if data, ok := v.Interface().([]byte); ok {
		return piece{blob: &Blob{Data: data}}, nil
	}
	return piece{blob: addressed(v).Interface().(*Blob)}, nil
}

func convertImage(_ Call, v reflect.Value) (piece, error) {
	if IsNil(v) {
		return piece{}, nil
	}
	var buf bytes.Buffer
	if err := png.Encode(&buf, v.Interface().(image.Image)); err != nil {
		return piece{}, fmt.Errorf("the image does not encode: %w", err)
	}
	return piece{blob: &Blob{Data: buf.Bytes(), MIMEType: "image/png"}}, nil
}

// convertReader reads a reader to its end and closes it.
func convertReader(call Call, v reflect.Value) (piece, error) {
	if IsNil(v) {
		return piece{}, nil
	}
	r := v.Interface().(io.Reader)
	if c, ok := r.(io.Closer); ok {
		defer c.Close()
	}
	data, err := io.ReadAll(io.LimitReader(r, int64(call.MaxBytes)+1))
	if err == nil && len(data) > call.MaxBytes {
		err = call.tooLarge("")
	}
	return piece{blob: &Blob{Data: data}}, err
}

// tooLarge returns the error for a result with more than MaxBytes.
func (call Call) tooLarge(when string) error {
	return Errorf("the result of %s %q is larger than %d bytes%s", call.Kind, call.Name, call.MaxBytes, when)
}

// progressEvery is how often a collected iterator reports progress.
const progressEvery = 100 * time.Millisecond

// collect collects the values of an iter.Seq[T] or iter.Seq2[T, error].
func collect(call Call, seq reflect.Value) (piece, error) {
	b := []byte{'['}
	if seq.IsNil() {
		return piece{json: append(b, ']')}, nil
	}
	n := 0
	var failed error
	last := time.Now()
	add := func(v reflect.Value) bool {
		if failed == nil { // some iterators continue though add has returned false
			failed = call.Context.Err()
		}
		if failed != nil {
			return false
		}
		if n++; n > 1 {
			b = append(b, ',')
		}
		if b, failed = jsonx.Append(b, v.Interface()); failed == nil && len(b) > call.MaxBytes {
			failed = call.tooLarge(fmt.Sprintf(" after %d items", n))
		}
		if now := time.Now(); now.Sub(last) >= progressEvery {
			last = now
			call.Progress(n)
		}
		return failed == nil
	}
	if seq.Type().CanSeq() {
		seq.Seq()(add)
	} else {
		seq.Seq2()(func(v, e reflect.Value) bool {
			if err, _ := e.Interface().(error); err != nil && failed == nil {
				failed = err
			}
			return add(v)
		})
	}
	return piece{json: append(b, ']')}, failed
}

// A userError has a text that is meant for the caller.
type userError struct{ error }

func (e *userError) UserMessage() string { return e.Error() }
func (e *userError) Unwrap() error       { return e.error }

// Errorf returns an error whose text is meant for the caller.
func Errorf(format string, args ...any) error { return &userError{fmt.Errorf(format, args...)} }
