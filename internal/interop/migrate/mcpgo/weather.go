// Package mcpgo is the server built with mcp-go.
package mcpgo

import (
	"context"
	"slices"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

type forecast struct {
	City string   `json:"city"`
	Days []string `json:"days"`
}

// NewServer returns the server.
func NewServer() *server.MCPServer {
	srv := server.NewMCPServer("weather", "1.0.0",
		server.WithToolCapabilities(true), server.WithRecovery(), server.WithInputSchemaValidation())
	tool := mcp.NewTool("forecast",
		mcp.WithDescription("Forecasts the weather of a city."),
		mcp.WithReadOnlyHintAnnotation(true),
		mcp.WithDestructiveHintAnnotation(false),
		mcp.WithString("city", mcp.Required(), mcp.Description("The name of the city.")),
		mcp.WithInteger("days", mcp.Description("How many days."), mcp.Min(1), mcp.Max(7), mcp.DefaultNumber(3)),
		mcp.WithOutputSchema[forecast](),
	)
	srv.AddTool(tool, func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		city, err := req.RequireString("city")
		if err != nil {
			return mcp.NewToolResultError(err.Error()), nil
		}
		return mcp.NewToolResultStructuredOnly(forecast{city, slices.Repeat([]string{"sunny"}, req.GetInt("days", 3))}), nil
	})
	return srv
}
