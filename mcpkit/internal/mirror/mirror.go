// Package mirror compares the headers of a request with the members of its body that they mirror
// (2026-07-28).
package mirror

import (
	"encoding/json"
	"strings"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/internal/paramheader"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
)

// Check compares a header with the value in the body that it mirrors.
func Check(header transport.Header, name, value string) *jsonrpc.Error {
	lines := header[name]
	if len(lines) == 0 {
		return protocol.HeaderMismatch("the header %s is missing; it has to say %q, as the body does", name, value)
	}
	got, err := protocol.DecodeHeader(lines[0])
	if err != nil {
		return protocol.HeaderMismatch("the header %s: %v", name, err)
	}
	if len(lines) > 1 || got != value {
		return protocol.HeaderMismatch("the header %s says %q but the body says %q", name, got, value)
	}
	return nil
}

// CheckParams compares headers with the arguments that they mirror.
func CheckParams(header transport.Header, params []paramheader.Param, args json.RawMessage) *jsonrpc.Error {
	for _, p := range params {
		value := p.Of(args)
		if value == nil || jsonx.Kind(value) == 'n' {
			continue // it need not be mirrored
		}
		if err := check(&p, header, value); err != nil {
			return err
		}
	}
	return nil
}

func check(p *paramheader.Param, header transport.Header, value []byte) *jsonrpc.Error {
	lines := header[p.Header]
	at := strings.Join(p.Path, ".")
	switch {
	case len(lines) == 0:
		return protocol.HeaderMismatch("the header %s is missing; it mirrors argument %q", p.Header, at)
	case len(lines) > 1 || !protocol.ParamHeaderMatches(lines[0], value):
		return protocol.HeaderMismatch("the header %s says %q, which is not argument %q", p.Header, lines[0], at)
	}
	return nil
}
