// Package byhand is a server with JSON-RPC written by hand.
package byhand

// docs:begin byhand

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
)

type request struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

const forecastSchema = `{"type": "object", "required": ["city"], "properties": {
	"city": {"type": "string", "description": "The name of the city."},
	"days": {"type": "integer", "description": "How many days.", "minimum": 1, "maximum": 7, "default": 3}}}`

// Serve answers the requests on in, one on each line.
func Serve(in io.Reader, out io.Writer) error {
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		var req request
		if err := json.Unmarshal(lines.Bytes(), &req); err != nil || req.ID == nil {
			continue
		}
		response := map[string]any{"jsonrpc": "2.0", "id": req.ID}
		if result, err := answer(req); err != nil {
			response["error"] = map[string]any{"code": -32602, "message": err.Error()}
		} else {
			response["result"] = result
		}
		if err := json.NewEncoder(out).Encode(response); err != nil {
			return err
		}
	}
	return lines.Err()
}

func answer(req request) (any, error) {
	switch req.Method {
	case "initialize":
		return map[string]any{
			"protocolVersion": "2025-11-25",
			"capabilities":    map[string]any{"tools": map[string]any{}},
			"serverInfo":      map[string]any{"name": "weather", "version": "1.0.0"},
		}, nil
	case "tools/list":
		return map[string]any{"tools": []any{map[string]any{
			"name":        "forecast",
			"description": "Forecasts the weather of a city.",
			"inputSchema": json.RawMessage(forecastSchema),
			"annotations": map[string]any{"readOnlyHint": true},
		}}}, nil
	case "tools/call":
		var call struct {
			Name      string
			Arguments struct {
				City string
				Days *int
			}
		}
		if err := json.Unmarshal(req.Params, &call); err != nil {
			return nil, err
		}
		if call.Name != "forecast" {
			return nil, fmt.Errorf("unknown tool %q", call.Name)
		}
		days := 3
		if call.Arguments.Days != nil {
			days = *call.Arguments.Days
		}
		if call.Arguments.City == "" || days < 1 || days > 7 {
			return nil, fmt.Errorf("city is required, and days is 1 to 7")
		}
		text, err := json.Marshal(forecast(call.Arguments.City, days))
		return map[string]any{"content": []any{map[string]any{"type": "text", "text": string(text)}}}, err
	}
	return nil, fmt.Errorf("unknown method %q", req.Method)
}

// docs:end byhand

// forecast returns one word for each day.
func forecast(city string, days int) map[string]any {
	words := make([]string, days)
	for i := range words {
		words[i] = "sunny"
	}
	return map[string]any{"city": city, "days": words}
}
