package rounds

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// Needs returns what a question is, the capability that a client needs to be asked it, and whether a
// client with the capabilities has that.
func Needs(method string, params json.RawMessage, has protocol.ClientCapabilities) (what string, needed protocol.ClientCapabilities, ok bool) {
	switch {
	case method == protocol.MethodSamplingCreateMessage:
		needed.Sampling, ok = &protocol.SamplingCapability{}, has.Sampling != nil
		if jsonx.Member(params, "tools") != nil || jsonx.Member(params, "toolChoice") != nil {
			needed.Sampling.Tools, ok = protocol.Object{}, ok && has.Sampling.Tools != nil
		}
		return "sampling", needed, ok
	case method == protocol.MethodRootsList:
		needed.Roots = &protocol.RootsCapability{}
		return "roots", needed, has.Roots != nil
	case jsonx.IsString(jsonx.Member(params, "mode"), protocol.ElicitURL):
		needed.Elicitation = &protocol.ElicitationCapability{URL: protocol.Object{}}
		return "URL elicitation", needed, has.Elicitation.SupportsURL()
	}
	needed.Elicitation = &protocol.ElicitationCapability{}
	return "elicitation", needed, has.Elicitation.SupportsForm()
}

// Decode decodes the response to a question into result, the type for its method.
func Decode(method string, raw json.RawMessage, result any) error {
	if err := jsonx.Unmarshal(raw, result); err != nil {
		return fmt.Errorf("the response to %s does not fit: %s", method, jsonx.Describe(err))
	}
	switch result := result.(type) {
	case *protocol.ElicitResult:
		switch result.Action {
		case protocol.ElicitAccept, protocol.ElicitDecline, protocol.ElicitCancel:
		default:
			return fmt.Errorf("the response to elicitation/create has the unknown action %q", result.Action)
		}
	case *protocol.CreateMessageResult:
		if len(result.Content) == 0 {
			return errors.New("the response to sampling/createMessage has no content")
		}
	}
	return nil
}

// check checks the response to a question before the method gets it: whether it is one, and
// whether the content of a form fits the schema that the client knows.
func check(question protocol.InputRequest, raw json.RawMessage) error {
	switch question.Method {
	case protocol.MethodSamplingCreateMessage:
		return Decode(question.Method, raw, new(protocol.CreateMessageResult))
	case protocol.MethodRootsList:
		return Decode(question.Method, raw, new(protocol.ListRootsResult))
	}
	var result protocol.ElicitResult
	if err := Decode(question.Method, raw, &result); err != nil || result.Action != protocol.ElicitAccept {
		return err
	}
	return CheckContent(jsonx.Member(question.Params, "requestedSchema"), result.Content)
}
