// Package gosdk is the server built with go-sdk.
package gosdk

import (
	"context"
	"fmt"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type forecastInput struct {
	City string `json:"city" jsonschema:"The name of the city."`
	Days int    `json:"days,omitempty" jsonschema:"How many days, 1 to 7. The default is 3."`
}

type forecast struct {
	City string   `json:"city"`
	Days []string `json:"days"`
}

// NewServer returns the server.
func NewServer() *mcp.Server {
	srv := mcp.NewServer(&mcp.Implementation{Name: "weather", Version: "1.0.0"}, nil)
	mcp.AddTool(srv, &mcp.Tool{
		Name:        "forecast",
		Description: "Forecasts the weather of a city.",
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true},
	}, func(_ context.Context, _ *mcp.CallToolRequest, in forecastInput) (*mcp.CallToolResult, forecast, error) {
		if in.Days == 0 {
			in.Days = 3
		}
		if in.Days < 1 || in.Days > 7 {
			return nil, forecast{}, fmt.Errorf("days is %d, and must be 1 to 7", in.Days)
		}
		return nil, forecast{in.City, slices.Repeat([]string{"sunny"}, in.Days)}, nil
	})
	return srv
}
