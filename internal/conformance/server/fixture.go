package main

import (
	"context"
	"encoding/base64"
	"log/slog"
	"time"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// Fixture has the tools, prompts and resources that the conformance suite calls.
type Fixture struct {
	_ mcpkit.Info `name:"mcpkit-conformance" title:"mcpkit conformance fixture" version:"1.0.0"`
	_ struct {
		SimpleText           mcpkit.Tool     `name:"test_simple_text"`
		ImageContent         mcpkit.Tool     `name:"test_image_content"`
		AudioContent         mcpkit.Tool     `name:"test_audio_content"`
		EmbeddedResource     mcpkit.Tool     `name:"test_embedded_resource"`
		MultipleContentTypes mcpkit.Tool     `name:"test_multiple_content_types"`
		ToolWithLogging      mcpkit.Tool     `name:"test_tool_with_logging"`
		LoggingTool          mcpkit.Tool     `name:"test_logging_tool"`
		ErrorHandling        mcpkit.Tool     `name:"test_error_handling"`
		ToolWithProgress     mcpkit.Tool     `name:"test_tool_with_progress"`
		Reconnection         mcpkit.Tool     `name:"test_reconnection"`
		MirroredHeader       mcpkit.Tool     `name:"test_x_mcp_header"`
		TriggerToolChange    mcpkit.Tool     `name:"test_trigger_tool_change"`
		TriggerPromptChange  mcpkit.Tool     `name:"test_trigger_prompt_change"`
		StaticText           mcpkit.Resource `uri:"test://static-text" mime:"text/plain" cache:"60s,public"`
		StaticBinary         mcpkit.Resource `uri:"test://static-binary" mime:"image/png" cache:"60s,public"`
		Watched              mcpkit.Resource `uri:"test://watched-resource" mime:"text/plain"`
		TemplateData         mcpkit.Resource `uri:"test://template/{id}/data" mime:"application/json"`
		SimplePrompt         mcpkit.Prompt   `name:"test_simple_prompt"`
		PromptWithArguments  mcpkit.Prompt   `name:"test_prompt_with_arguments"`
		PromptWithResource   mcpkit.Prompt   `name:"test_prompt_with_embedded_resource"`
		PromptWithImage      mcpkit.Prompt   `name:"test_prompt_with_image"`
	}
	srv *mcpkit.Server
}

// pixel is a red PNG of one pixel.
var pixel, _ = base64.StdEncoding.DecodeString("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHw" +
	"AFBQIAX8jx0gAAAABJRU5ErkJggg==")

// silence is a WAV file without samples.
var silence = []byte("RIFF\x24\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00\x44\xac\x00\x00\x88\x58\x01\x00" +
	"\x02\x00\x10\x00data\x00\x00\x00\x00")

// SimpleText returns text.
func (f *Fixture) SimpleText() string { return "This is a simple text response for testing." }

// ImageContent returns an image.
func (f *Fixture) ImageContent() mcpkit.Image {
	return mcpkit.Image{Data: pixel, MIMEType: "image/png"}
}

// AudioContent returns a sound.
func (f *Fixture) AudioContent() mcpkit.Audio {
	return mcpkit.Audio{Data: silence, MIMEType: "audio/wav"}
}

// EmbeddedResource returns the contents of a resource.
func (f *Fixture) EmbeddedResource() mcpkit.Embedded {
	return embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")
}

// MultipleContentTypes returns text, an image and a resource.
func (f *Fixture) MultipleContentTypes() (string, mcpkit.Image, mcpkit.Embedded) {
	resource := embedded("test://mixed-content-resource", "application/json", `{"test":"data","value":123}`)
	return "Multiple content types test:", f.ImageContent(), resource
}

func embedded(uri, mime, text string) mcpkit.Embedded {
	return mcpkit.Embedded{Resource: protocol.ResourceContents{URI: uri, MIMEType: mime, Text: &text}}
}

// ToolWithLogging logs three times while it works.
func (f *Fixture) ToolWithLogging(ctx context.Context, log *slog.Logger) (string, error) {
	for i, message := range []string{"Tool execution started", "Tool processing data", "Tool execution completed"} {
		if i > 0 {
			if err := pause(ctx, 50*time.Millisecond); err != nil {
				return "", err
			}
		}
		log.InfoContext(ctx, message)
	}
	return "Tool with logging executed successfully", nil
}

// LoggingTool logs once.
func (f *Fixture) LoggingTool(ctx context.Context, log *slog.Logger) string {
	log.InfoContext(ctx, "a message for clients that set a log level")
	return "Logged."
}

// ErrorHandling always fails.
func (f *Fixture) ErrorHandling() error {
	return mcpkit.Errorf("This tool intentionally returns an error for testing")
}

// ToolWithProgress reports its progress.
func (f *Fixture) ToolWithProgress(ctx context.Context, call *mcpkit.Call) (string, error) {
	for _, done := range []float64{0, 50, 100} {
		if done > 0 {
			if err := pause(ctx, 50*time.Millisecond); err != nil {
				return "", err
			}
		}
		call.Progress(done, 100, "")
	}
	return "Tool with progress executed successfully", nil
}

// Reconnection closes its stream while it works; the client resumes it to get the result.
func (f *Fixture) Reconnection(ctx context.Context, call *mcpkit.Call) (string, error) {
	if err := call.CloseStream(500 * time.Millisecond); err != nil {
		return "This connection cannot be resumed.", nil
	}
	if err := pause(ctx, 100*time.Millisecond); err != nil {
		return "", err
	}
	return "Reconnection test completed successfully", nil
}

// RegionInput has an argument that a header mirrors.
type RegionInput struct {
	// Where to run.
	Region string `json:"region" header:"Region"`
}

// MirroredHeader has an argument that a header mirrors.
func (f *Fixture) MirroredHeader(in RegionInput) string { return "Region: " + in.Region }

// TriggerToolChange changes the list of tools.
func (f *Fixture) TriggerToolChange() (string, error) {
	if f.srv.RemoveTools("test_comes_and_goes") {
		return "removed", nil
	}
	tool := mcpkit.NewTool("test_comes_and_goes", func() string { return "here" })
	return "added", f.srv.Add(tool.Desc("Is present at times."))
}

// TriggerPromptChange changes the list of prompts.
func (f *Fixture) TriggerPromptChange() (string, error) {
	if f.srv.RemovePrompts("test_comes_and_goes") {
		return "removed", nil
	}
	prompt := mcpkit.NewPrompt("test_comes_and_goes", func() string { return "here" })
	return "added", f.srv.Add(prompt.Desc("Is present at times."))
}

// StaticText is always the same text.
func (f *Fixture) StaticText() string { return "This is the content of the static text resource." }

// StaticBinary is always the same image.
func (f *Fixture) StaticBinary() []byte { return pixel }

// Watched is a resource to subscribe to.
func (f *Fixture) Watched() string { return "Watched resource content" }

// TemplateData returns the id of its URI.
func (f *Fixture) TemplateData(id string) any {
	return map[string]any{"id": id, "templateTest": true, "data": "Data for ID: " + id}
}

// SimplePrompt is a prompt without arguments.
func (f *Fixture) SimplePrompt() string { return "This is a simple prompt for testing." }

// PromptInput has two arguments.
type PromptInput struct {
	// First test argument.
	Arg1 string `json:"arg1" complete:"CompleteArg1"`
	// Second test argument.
	Arg2 string `json:"arg2"`
}

// PromptWithArguments uses both of its arguments.
func (f *Fixture) PromptWithArguments(in PromptInput) string {
	return "Prompt with arguments: arg1='" + in.Arg1 + "', arg2='" + in.Arg2 + "'"
}

// CompleteArg1 completes the first argument.
func (f *Fixture) CompleteArg1(_ context.Context, prefix string) ([]string, error) {
	var hits []string
	for _, word := range []string{"paris", "park", "party"} {
		if len(prefix) <= len(word) && word[:len(prefix)] == prefix {
			hits = append(hits, word)
		}
	}
	return hits, nil
}

// ResourceInput names a resource.
type ResourceInput struct {
	// URI of the resource to embed.
	ResourceURI string `json:"resourceUri"`
}

// PromptWithResource embeds a resource.
func (f *Fixture) PromptWithResource(in ResourceInput) []protocol.PromptMessage {
	return []protocol.PromptMessage{
		mcpkit.User(embedded(in.ResourceURI, "text/plain", "Embedded resource content for testing.")),
		mcpkit.User("Please process the embedded resource above."),
	}
}

// PromptWithImage shows an image.
func (f *Fixture) PromptWithImage() []protocol.PromptMessage {
	return []protocol.PromptMessage{mcpkit.User(f.ImageContent()), mcpkit.User("Please analyze the image above.")}
}

// pause waits for d, or until ctx is done.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
