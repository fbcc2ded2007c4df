// Package apps serves MCP Apps: pages that a host shows in a chat, with the result of a tool. It
// implements the server side of the extension io.modelcontextprotocol/ui.
//
// A page is one HTML file with its scripts and style sheets inside, because it has no server to load
// other files from. A tag ties a tool to it:
//
//	type Notes struct {
//		_ struct {
//			Board mcpkit.Tool `app:"ui://notes/board"`
//			Move  mcpkit.Tool `app:"visibility=app"`
//		}
//	}
//
//	//go:embed board.html
//	var board string
//
//	mcpkit.Serve(&Notes{}, apps.Pages(apps.Page{URI: "ui://notes/board", HTML: board}))
//
// A host reads the page as the resource ui://notes/board, and shows it in a sandboxed frame. Pages
// adds the script mcp-app.js of this package to it: the object mcpApp, with which the page gets the
// arguments and the result of the tool, and calls tools.
package apps

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/internal/naming"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// ID identifies the extension in the capabilities of clients and servers.
const ID = "io.modelcontextprotocol/ui"

// MIMEType is the media type of pages.
const MIMEType = "text/html;profile=mcp-app"

// nameMember is the member of a tool's _meta with the name that the tool has in its own server. Where
// the server is mounted with a prefix, mcp-app.js finds the prefix with it.
const nameMember = "io.github.mcpkit/name"

//go:embed mcp-app.js
var bridge string

// Shown reports whether the client of the call that ctx belongs to shows pages: it declared the
// extension. A tool has useful text for other clients and for the model in any case, but may leave
// out what only a page can show.
func Shown(ctx context.Context) bool {
	call := mcpkit.CallFrom(ctx)
	if call == nil {
		return false
	}
	settings, ok := call.Extension(ID)
	if !ok {
		return false
	}
	for raw := range jsonx.Elements(settings["mimeTypes"]) {
		if jsonx.IsString(raw, MIMEType) {
			return true
		}
	}
	return false
}

// A Page is a page of a server.
type Page struct {
	// URI begins with "ui://", such as "ui://notes/board".
	URI string

	// HTML is the document.
	HTML string

	// Title and Description are shown in lists of resources. They may be empty.
	Title, Description string

	// CSP has the origins that the page may use. By default it loads nothing and connects to
	// nothing.
	CSP CSP

	// Permissions are what the page needs of the browser: "camera", "microphone", "geolocation" and
	// "clipboardWrite". The host may refuse.
	Permissions []string

	// Border says whether the host should draw a border and a background around the page. Nil
	// leaves it to the host.
	Border *bool

	// Domain asks for an origin of the page's own, which does not change between chats. Each host
	// has a format for it.
	Domain string

	// Scopes are what a caller needs to read the page. Nil means those of the tools that are tied
	// to the page; if they differ, Scopes is needed.
	Scopes []string
}

// A CSP has the origins that a page may use, such as "https://api.example.com" or
// "https://*.example.com". The host makes a content security policy of them.
type CSP struct {
	// Connect are for fetch and WebSockets.
	Connect []string `json:"connectDomains,omitzero"`
	// Resources are for scripts, style sheets, images, fonts and media.
	Resources []string `json:"resourceDomains,omitzero"`
	// Frames are for frames in the page.
	Frames []string `json:"frameDomains,omitzero"`
	// BaseURIs are for the base URI of the page.
	BaseURIs []string `json:"baseUriDomains,omitzero"`
}

// Pages serves pages. It is an option of [mcpkit.New] and [mcpkit.Serve], which a server has once.
//
// A page has the scopes of the tools that are tied to it, so that callers who do not know of the
// tools cannot read it, and is not listed if all of the tools are hidden. Each page needs a tool when
// the server is made.
//
// New reports tags that name unknown pages, pages without a tool, and values that are not allowed.
func Pages(pages ...Page) mcpkit.Option {
	return mcpkit.ExtendEach(func() mcpkit.Extension {
		a := &app{pages: map[string]*page{}, server: mcpkit.MustNew(nil, mcpkit.Authenticated())}
		a.err = a.add(pages)
		return mcpkit.Extension{
			ID:    ID,
			Tags:  []string{"app"},
			Tool:  a.tool,
			Items: a.server,
			Check: a.check,
		}
	})
}

// app is the extension of one server.
type app struct {
	pages  map[string]*page // by URI
	err    error            // of the pages
	server *mcpkit.Server
	made   bool // check has run: the pages have their scopes
}

// A page is a page and the tools that are tied to it.
type page struct {
	Page
	tools []tiedTool
}

// A tiedTool is a tool with a page.
type tiedTool struct {
	site   string
	scopes []string
	hidden bool
}

// add checks the pages and adds the bridge to them. The error has all faults.
func (a *app) add(pages []Page) error {
	var faults []error
	for _, p := range pages {
		if err := p.check(); err != nil {
			faults = append(faults, fmt.Errorf("page %q: %w", p.URI, err))
		} else if a.pages[p.URI] != nil {
			faults = append(faults, fmt.Errorf("page %q: another page has the same URI", p.URI))
		}
		p.HTML = withBridge(p.HTML)
		a.pages[p.URI] = &page{Page: p}
	}
	return errors.Join(faults...)
}

var uriPattern = regexp.MustCompile(`^ui://[A-Za-z0-9._~-]+(/[A-Za-z0-9._~-]+)*$`)

var permissions = []string{"camera", "microphone", "geolocation", "clipboardWrite"}

func (p *Page) check() error {
	if !uriPattern.MatchString(p.URI) {
		return errors.New(`a URI is "ui://" and names of letters, digits and . _ ~ -, separated by slashes`)
	}
	if strings.TrimSpace(p.HTML) == "" || !utf8.ValidString(p.HTML) {
		return errors.New("it is empty or not in UTF-8")
	}
	for _, name := range p.Permissions {
		if !slices.Contains(permissions, name) {
			return fmt.Errorf("unknown permission %q%s; known are %s", name, naming.Hint(name, permissions), strings.Join(permissions, ", "))
		}
	}
	for _, origin := range slices.Concat(p.CSP.Connect, p.CSP.Resources, p.CSP.Frames, p.CSP.BaseURIs) {
		if !isOrigin(origin) {
			return fmt.Errorf(`%q is not an origin; write for example "https://api.example.com" or "https://*.example.com"`, origin)
		}
	}
	return nil
}

// isOrigin reports whether a text is an origin that a page may use: a scheme, a host and perhaps a
// port. The host may begin with "*.". Anything else could add directives to the policy.
func isOrigin(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Host != "" && slices.Contains([]string{"https", "http", "wss", "ws"}, u.Scheme) && text == u.Scheme+"://"+u.Host &&
		!strings.ContainsAny(text, " ;,'\"") && !strings.Contains(strings.TrimPrefix(u.Host, "*."), "*")
}

// beginning matches the tags after which the bridge may stand, the best one last.
var beginning = []*regexp.Regexp{
	regexp.MustCompile(`(?i)<!doctype[^>]*>`), regexp.MustCompile(`(?i)<html(\s[^>]*)?>`), regexp.MustCompile(`(?i)<head(\s[^>]*)?>`),
}

// withBridge returns the document with the bridge at the beginning of its head, before all scripts.
func withBridge(html string) string {
	at := 0
	for _, tag := range beginning {
		if found := tag.FindStringIndex(html); found != nil {
			at = found[1]
		}
	}
	return html[:at] + "<script>" + bridge + "</script>" + html[at:]
}

// A tie is the value of the tag app.
type tie struct {
	uri        string // "" if the tool has no page
	visibility []string
}

func parseTie(value string) (tie, error) {
	var t tie
	for _, word := range strings.FieldsFunc(value, func(r rune) bool { return r == ' ' || r == ',' }) {
		visibility, isVisibility := strings.CutPrefix(word, "visibility=")
		switch {
		case strings.HasPrefix(word, "ui://") && t.uri == "":
			t.uri = word
		case strings.HasPrefix(word, "ui://"):
			return t, fmt.Errorf("it names two pages, %q and %q", t.uri, word)
		case visibility == "app", visibility == "model":
			t.visibility = []string{visibility}
		case isVisibility:
			return t, fmt.Errorf("unknown visibility %q; known are app (the tool is for pages) and model (it is for models); without it, it is for both", visibility)
		default:
			return t, fmt.Errorf("unknown word %q; known are the URI of a page and visibility", word)
		}
	}
	if t.uri == "" && t.visibility == nil {
		return t, errors.New("it names no page")
	}
	return t, nil
}

// toolUI is the member ui in the _meta of a tool.
type toolUI struct {
	ResourceURI string   `json:"resourceUri,omitzero"`
	Visibility  []string `json:"visibility,omitzero"`
}

// tool ties a tool to its page.
func (a *app) tool(t *mcpkit.ToolEntry, _ protocol.Version) error {
	meta := t.Definition.Meta
	var ui toolUI
	if raw, byHand := meta["ui"]; byHand {
		if err := json.Unmarshal(raw, &ui); err != nil {
			return fmt.Errorf("_meta.ui: %w", err)
		}
	}
	if value, ok := t.Tags["app"]; ok {
		tied, err := parseTie(value)
		if err != nil {
			return fmt.Errorf("tag app: %w; write for example app:\"ui://notes/board\"", err)
		}
		ui = toolUI{tied.uri, tied.visibility}
		if err := meta.Set("ui", ui); err != nil {
			return err
		}
	}
	if ui.ResourceURI == "" || a.err != nil {
		return nil
	}
	p := a.pages[ui.ResourceURI]
	if p == nil {
		known := slices.Sorted(maps.Keys(a.pages))
		return fmt.Errorf("tag app: there is no page %q%s; known are %s", ui.ResourceURI, naming.Hint(ui.ResourceURI, known), strings.Join(known, ", "))
	}
	if !a.made {
		p.tools = append(p.tools, tiedTool{t.Site, t.Scopes, t.Hidden})
	}
	if _, has := meta["ui/resourceUri"]; !has { // hosts of the time before the specification was stable
		if err := meta.Set("ui/resourceUri", ui.ResourceURI); err != nil {
			return err
		}
	}
	return meta.Set(nameMember, t.Definition.Name)
}

// check gives the pages their scopes and registers them. The tools of all services have been tied.
func (a *app) check() error {
	if a.err != nil {
		return a.err
	}
	var faults []error
	var items []mcpkit.Item
	for _, uri := range slices.Sorted(maps.Keys(a.pages)) {
		p := a.pages[uri]
		scopes, err := p.readers()
		faults = append(faults, err)
		items = append(items, p.resource(scopes))
	}
	a.made = true
	if err := errors.Join(faults...); err != nil {
		return err
	}
	return a.server.Add(items...)
}

// readers returns the scopes that a caller needs to read the page.
func (p *page) readers() ([]string, error) {
	if len(p.tools) == 0 {
		return nil, fmt.Errorf("page %q: no tool has it; write app:%[1]q in the tags of one", p.URI)
	}
	if p.Scopes != nil {
		return p.Scopes, nil
	}
	first := p.tools[0]
	for _, t := range p.tools {
		if !slices.Equal(slices.Sorted(slices.Values(first.scopes)), slices.Sorted(slices.Values(t.scopes))) {
			return nil, fmt.Errorf("page %q: %s needs the scopes %q, and %s %q; set Scopes of the page to those that callers need for it",
				p.URI, first.site, first.scopes, t.site, t.scopes)
		}
	}
	return first.scopes, nil
}

// pageUI is the member ui in the _meta of a page.
type pageUI struct {
	CSP           CSP                 `json:"csp,omitzero"`
	Permissions   map[string]struct{} `json:"permissions,omitzero"`
	Domain        string              `json:"domain,omitzero"`
	PrefersBorder *bool               `json:"prefersBorder,omitzero"`
}

// resource returns the page as a resource.
func (p *page) resource(scopes []string) *mcpkit.Builder {
	ui := pageUI{CSP: p.CSP, Domain: p.Domain, PrefersBorder: p.Border}
	for _, name := range p.Permissions {
		if ui.Permissions == nil {
			ui.Permissions = map[string]struct{}{}
		}
		ui.Permissions[name] = struct{}{}
	}
	meta := protocol.Meta{}
	_ = meta.Set("ui", ui) // strings and bools: always encodable
	result := &protocol.ReadResourceResult{Contents: []protocol.ResourceContents{{URI: p.URI, MIMEType: MIMEType, Text: &p.HTML, Meta: meta}}}
	r := mcpkit.NewResource(p.URI, strings.TrimPrefix(p.URI, "ui://"), func() *protocol.ReadResourceResult { return result }).
		Title(p.Title).Desc(p.Description).MIME(MIMEType).Size(int64(len(p.HTML))).Scopes(scopes...)
	for key, value := range meta {
		r.Meta(key, value)
	}
	if !slices.ContainsFunc(p.tools, func(t tiedTool) bool { return !t.hidden }) {
		r.Hidden()
	}
	return r
}
