package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// A listing is what a server offers.
type listing struct {
	Tools     []*protocol.Tool             `json:"tools"`
	Prompts   []*protocol.Prompt           `json:"prompts"`
	Resources []*protocol.Resource         `json:"resources"`
	Templates []*protocol.ResourceTemplate `json:"resourceTemplates"`
}

// listAll requests all lists that the server declares; the others are empty. A list that fails is
// nil, and the others are still requested; the error joins those of the lists that failed.
func listAll(ctx context.Context, c *client.Client) (l listing, err error) {
	l = listing{[]*protocol.Tool{}, []*protocol.Prompt{}, []*protocol.Resource{}, []*protocol.ResourceTemplate{}}
	var errs [4]error
	has := c.Capabilities()
	if has.Tools != nil {
		l.Tools, errs[0] = collect(c.Tools(ctx))
	}
	if has.Prompts != nil {
		l.Prompts, errs[1] = collect(c.Prompts(ctx))
	}
	if has.Resources != nil {
		l.Resources, errs[2] = collect(c.Resources(ctx))
		l.Templates, errs[3] = collect(c.Templates(ctx))
	}
	return l, errors.Join(errs[:]...)
}

func collect[T any](pages iter.Seq2[T, error]) ([]T, error) {
	all := []T{}
	for v, err := range pages {
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, nil
}

func listCommand(std streams) *cobra.Command {
	return remoteCommand(std, &cobra.Command{
		Use:   "list SERVER",
		Short: "List tools, prompts, resources and templates",
		Long:  "Lists tools, prompts, resources and templates, one on each line.",
	}, runList)
}

// runList is the command list.
func runList(ctx context.Context, r *remote) error {
	return r.with(ctx, func(c *client.Client) error {
		l, err := listAll(ctx, c)
		if wantsLogin(err) {
			return err
		}
		return errors.Join(err, r.write(l, func() {
			for _, v := range l.Tools {
				kind := "tool"
				if v.OnlyAsTask() {
					kind = "task tool"
				}
				r.listed(kind, v.Name, v.Description)
			}
			for _, v := range l.Prompts {
				r.listed("prompt", v.Name, v.Description)
			}
			for _, v := range l.Resources {
				r.listed("resource", v.URI, v.Description)
			}
			for _, v := range l.Templates {
				r.listed("template", v.URITemplate, v.Description)
			}
		}))
	})
}

// listed writes a line of a list, with the first line of a text.
func (r *remote) listed(kind, name, text string) {
	first, _, _ := strings.Cut(text, "\n")
	r.out.line(r.out.paint(faint, fmt.Sprintf("%-9s", kind)), r.out.paint(bold, fmt.Sprintf("%-24s", cleanLine(name))), clean(first))
}

// An overview is what a server publishes about itself.
type overview struct {
	Server       protocol.Implementation     `json:"server"`
	Version      protocol.Version            `json:"protocolVersion"`
	Versions     []protocol.Version          `json:"supportedVersions"`
	Capabilities protocol.ServerCapabilities `json:"capabilities"`
	Instructions string                      `json:"instructions,omitempty"`
	listing
}

// stages are the stages of the official extensions (SEP-3392).
var stages = map[string]string{
	"io.modelcontextprotocol/ui":     "stable",
	"io.modelcontextprotocol/tasks":  "beta",
	"io.modelcontextprotocol/skills": "beta",
	"io.modelcontextprotocol/events": "beta",
}

func inspectCommand(std streams) *cobra.Command {
	var texts bool
	cmd := remoteCommand(std, &cobra.Command{
		Use:   "inspect SERVER",
		Short: "Show a server's versions, capabilities, inputs and outputs",
		Long: `Shows the server's name, protocol versions, capabilities, and the inputs and
outputs of its tools.`,
	}, func(ctx context.Context, r *remote) error { return runInspect(ctx, r, texts) })
	cmd.Flags().BoolVar(&texts, "overrides", false, "print the texts of tools, prompts, resources and arguments, as the JSON file that the key overrides of a configuration names")
	return cmd
}

// runInspect is the command inspect. Texts says to show only the overrides.
func runInspect(ctx context.Context, r *remote, texts bool) error {
	return r.with(ctx, func(c *client.Client) error {
		l, err := listAll(ctx, c)
		if wantsLogin(err) {
			return err
		}
		if texts {
			r.asJSON = true
			return errors.Join(err, r.write(overrides(&l), nil))
		}
		o := overview{c.Server(), c.Version(), versions(ctx, c), c.Capabilities(), c.Instructions(), l}
		return errors.Join(err, r.write(o, func() { r.writeOverview(&o) }))
	})
}

// An override is an item in the file of catalog.Overrides.
type override struct {
	Title       string                       `json:"title"`
	Description string                       `json:"description"`
	Arguments   map[string]map[string]string `json:"arguments,omitempty"`
}

// overrides returns the file that says what the server says already.
func overrides(l *listing) map[string]map[string]override {
	tools, prompts, resources := map[string]override{}, map[string]override{}, map[string]override{}
	for _, t := range l.Tools {
		args := map[string]map[string]string{}
		for key, schema := range jsonx.Members(jsonx.Member(t.InputSchema, "properties")) {
			args[jsonx.String(key)] = map[string]string{"description": jsonx.String(jsonx.Member(schema, "description"))}
		}
		tools[t.Name] = override{t.Title, t.Description, args}
	}
	for _, p := range l.Prompts {
		args := map[string]map[string]string{}
		for _, a := range p.Arguments {
			args[a.Name] = map[string]string{"description": a.Description}
		}
		prompts[p.Name] = override{p.Title, p.Description, args}
	}
	for _, v := range l.Resources {
		resources[v.URI] = override{v.Title, v.Description, nil}
	}
	for _, v := range l.Templates {
		resources[v.URITemplate] = override{v.Title, v.Description, nil}
	}
	return map[string]map[string]override{"tools": tools, "prompts": prompts, "resources": resources}
}

// versions returns the versions that a server supports. A legacy server names only the negotiated
// one.
func versions(ctx context.Context, c *client.Client) []protocol.Version {
	var res protocol.DiscoverResult
	if !c.Version().Modern() || c.Request(ctx, protocol.MethodDiscover, nil, &res) != nil || len(res.SupportedVersions) == 0 {
		return []protocol.Version{c.Version()}
	}
	return res.SupportedVersions
}

func (r *remote) writeOverview(o *overview) {
	out := r.out
	name := cleanLine(o.Server.Name)
	if o.Server.Title != "" {
		name = cleanLine(o.Server.Title) + " (" + name + ")"
	}
	out.line(out.paint(bold, name), cleanLine(o.Server.Version))
	speaks := "speaks " + string(o.Version)
	for _, v := range o.Versions {
		if v != o.Version {
			speaks += ", " + string(v)
		}
	}
	out.line(cleanLine(speaks))
	if can, err := jsonx.Marshal(o.Capabilities); err == nil && len(memberNames(can)) > 0 {
		out.line(cleanLine("can " + strings.Join(memberNames(can), ", ")))
	}
	for _, id := range slices.Sorted(maps.Keys(o.Capabilities.Extensions)) {
		out.line(cleanLine("extends MCP by " + joined(", ", id, stages[id])))
	}
	out.indented("", o.Instructions)
	if len(o.Tools) > 0 {
		out.line(costOf(o.Tools))
	}
	for _, t := range o.Tools {
		out.heading("tool", t.Name, joined(", ", toolHints(t), fmt.Sprintf("%d tokens", tokens(t))))
		for _, why := range refusals(t) {
			out.line("  warning:", cleanLine(why))
		}
		out.indented("  ", t.Description)
		r.writeSchema("takes", t.InputSchema)
		r.writeSchema("gives", t.OutputSchema)
	}
	for _, p := range o.Prompts {
		out.heading("prompt", p.Name, "")
		out.indented("  ", p.Description)
		for _, a := range p.Arguments {
			optional := "?"
			if a.Required != nil && *a.Required {
				optional = ""
			}
			out.line("  takes", out.paint(bold, cleanLine(a.Name))+optional, cleanLine(a.Description))
		}
	}
	for _, v := range o.Resources {
		out.heading("resource", v.URI, v.MIMEType)
		out.indented("  ", v.Description)
	}
	for _, v := range o.Templates {
		out.heading("template", v.URITemplate, v.MIMEType)
		out.indented("  ", v.Description)
	}
}

func (s *screen) heading(kind, name, more string) {
	s.line()
	s.line(s.paint(faint, kind), s.paint(bold, cleanLine(name)), s.paint(faint, cleanLine(more)))
}

func (s *screen) indented(by, text string) {
	if text = strings.TrimSpace(clean(text)); text != "" {
		s.printf("%s%s\n", by, strings.ReplaceAll(text, "\n", "\n"+by))
	}
}

// toolHints describes the effects that a tool declares. Nothing enforces them.
func toolHints(t *protocol.Tool) string {
	if t.Annotations == nil {
		return ""
	}
	var all []string
	for _, hint := range []struct {
		value   *bool
		yes, no string
	}{
		{t.Annotations.ReadOnlyHint, "reads only", ""},
		{t.Annotations.DestructiveHint, "may destroy", "only adds"},
		{t.Annotations.IdempotentHint, "may be repeated", ""},
		{t.Annotations.OpenWorldHint, "reaches out", "stays inside"},
	} {
		if text := hint.no; hint.value != nil {
			if *hint.value {
				text = hint.yes
			}
			all = append(all, text)
		}
	}
	return joined(", ", all...)
}

// writeSchema writes the properties of an object schema, one on each line.
func (r *remote) writeSchema(verb string, schema json.RawMessage) {
	var object struct {
		Properties json.RawMessage `json:"properties"`
		Required   []string        `json:"required"`
	}
	if len(schema) == 0 || json.Unmarshal(schema, &object) != nil {
		return
	}
	if object.Properties == nil {
		r.out.line("  "+verb, r.out.paint(faint, cleanLine(typeName(schema))))
		return
	}
	for key, raw := range jsonx.Members(object.Properties) {
		var member struct {
			Description string `json:"description"`
		}
		_ = json.Unmarshal(raw, &member) // a schema without a description is valid
		name, optional := jsonx.String(key), "?"
		if slices.Contains(object.Required, name) {
			optional = ""
		}
		kind := typeName(raw)
		if within := bounds(raw); within != "" {
			kind += " (" + within + ")"
		}
		r.out.line("  "+verb, r.out.paint(bold, cleanLine(name))+optional, r.out.paint(faint, cleanLine(kind)), cleanLine(member.Description))
	}
}

// typeName describes the type of a schema.
func typeName(schema json.RawMessage) string {
	var s struct {
		Type   any               `json:"type"`
		Format string            `json:"format"`
		Const  json.RawMessage   `json:"const"`
		Enum   []json.RawMessage `json:"enum"`
		Items  json.RawMessage   `json:"items"`
	}
	if json.Unmarshal(schema, &s) != nil {
		return "anything"
	}
	if s.Const != nil {
		s.Enum = []json.RawMessage{s.Const}
	}
	name, isName := s.Type.(string)
	switch {
	case len(s.Enum) > 0:
		all := make([]string, len(s.Enum))
		for i, v := range s.Enum {
			all[i] = string(v)
		}
		return strings.Join(all, " | ")
	case name == "array" && s.Items != nil:
		return "array of " + typeName(s.Items)
	case s.Format != "":
		return s.Format
	case isName:
		return name
	}
	return "anything"
}

// limits are the keywords of a schema that inspect shows.
var limits = []string{
	"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "minItems", "maxItems", "pattern", "default",
}

// bounds describes the limits of a schema and its default.
func bounds(schema json.RawMessage) string {
	var s map[string]json.RawMessage
	if json.Unmarshal(schema, &s) != nil {
		return ""
	}
	var all []string
	for _, key := range limits {
		if s[key] != nil {
			all = append(all, key+" "+string(s[key]))
		}
	}
	return strings.Join(all, ", ")
}

func memberNames(object []byte) []string {
	var names []string
	for key := range jsonx.Members(object) {
		names = append(names, jsonx.String(key))
	}
	return names
}
