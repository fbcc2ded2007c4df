package jsonrpc

import (
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
)

// NewRequest returns a request whose params are the JSON of params; nil means no params. It returns
// an error if params cannot be encoded or are not an object. The ID may be absent if a transport chooses it
// ([transport.Peer.Call]).
//
// [transport.Peer.Call]: https://pkg.go.dev/github.com/mcpkit/mcpkit-go/transport#Peer
func NewRequest(id ID, method string, params any) (*Request, error) {
	r := &Request{ID: id, Method: method}
	if params == nil {
		return r, nil
	}
	raw, err := jsonx.Marshal(params)
	switch {
	case err != nil:
		return nil, fmt.Errorf("jsonrpc: params of %q: %w", method, err)
	case string(raw) == "null":
		return r, nil
	case raw[0] != '{':
		return nil, fmt.Errorf("jsonrpc: params of %q must be a JSON object; %T encodes as something else", method, params)
	}
	r.Params = raw
	return r, nil
}

// NewNotification returns a notification; params are as for [NewRequest].
func NewNotification(method string, params any) (*Request, error) {
	return NewRequest(ID{}, method, params)
}

// AppendRequest appends r as JSON to dst. A request without ID becomes a notification.
func AppendRequest(dst []byte, r *Request) []byte {
	dst = append(dst, `{"jsonrpc":"2.0",`...)
	if r.ID.IsValid() {
		dst = append(dst, `"id":`...)
		dst = append(r.ID.append(dst), ',')
	}
	dst = append(dst, `"method":`...)
	dst = jsonx.AppendString(dst, r.Method)
	if len(r.Params) > 0 {
		dst = append(dst, `,"params":`...)
		dst = append(dst, r.Params...)
	}
	return append(dst, '}')
}

// AppendResponse appends r, whose Stream must be nil, as JSON to dst. An absent ID becomes null,
// and a response with neither result nor error gets the result {}.
//
// Result and Error.Data are copied unchanged, so they must be valid JSON. They may contain line
// breaks; transports that separate messages by lines must replace these.
func AppendResponse(dst []byte, r *Response) []byte {
	dst = AppendHead(slices.Grow(dst, len(r.ID.raw)+len(r.Result)+len(`{"jsonrpc":"2.0","id":null,"result":{}}`)), r)
	switch {
	case r.Error != nil:
		dst = appendError(dst, r.Error)
	case len(r.Result) > 0:
		dst = append(dst, r.Result...)
	default:
		dst = append(dst, "{}"...)
	}
	return append(dst, '}')
}

// AppendHead appends the part of r before its result or error. After that comes only a '}', so a large
// result need not be copied.
func AppendHead(dst []byte, r *Response) []byte {
	dst = append(dst, `{"jsonrpc":"2.0","id":`...)
	dst = r.ID.append(dst)
	if r.Error != nil {
		return append(dst, `,"error":`...)
	}
	return append(dst, `,"result":`...)
}

func appendError(dst []byte, e *Error) []byte {
	dst = append(dst, `{"code":`...)
	dst = strconv.AppendInt(dst, int64(e.Code), 10)
	dst = append(dst, `,"message":`...)
	dst = jsonx.AppendString(dst, e.Message)
	if len(e.Data) > 0 {
		dst = append(dst, `,"data":`...)
		dst = append(dst, e.Data...)
	}
	return append(dst, '}')
}

// WriteResponse writes r to w: in one Write, or, if r has a Stream and no Error, in the Writes that
// Stream makes. It writes nothing after the message, not even a line break. It returns the errors
// of w and of Stream.
func WriteResponse(w io.Writer, r *Response) error {
	if r.Stream != nil && r.Error == nil {
		if _, err := w.Write(AppendHead(nil, r)); err != nil {
			return err
		}
		if err := r.Stream(w); err != nil {
			return err
		}
		_, err := w.Write([]byte{'}'})
		return err
	}
	_, err := w.Write(AppendResponse(nil, r))
	return err
}
