// Package apps serves MCP Apps: pages that a host shows in a chat, with the result of a tool. It
// implements the server side of the extension io.modelcontextprotocol/ui.
//
// A tag ties a tool to a page, and [FS] has the pages:
//
//	type Notes struct {
//		_ struct {
//			Board mcpkit.Tool `app:"ui://notes/board"`
//			Move  mcpkit.Tool `app:"visibility=app"`
//		}
//	}
//
//	//go:embed pages
//	var pages embed.FS
//
//	mcpkit.Serve(&Notes{}, apps.FS(pages, apps.Dir("pages"), apps.Prefix("notes")))
//
// A host reads the page pages/board.html as the resource ui://notes/board, and shows it in a
// sandboxed frame. The page gets the arguments and the result of the tool, and calls tools, with the
// script mcp-app.js of this package, which a page includes with
//
//	<script src="mcp-app.js"></script>
//
// A page is one document, because it has no server to load other files from. So scripts, style
// sheets and images that it refers to by relative names are taken from the file system and become a
// part of the page when the server is made.
//
// New reports what would fail in a browser: tags that name unknown pages, pages without a tool,
// missing files, and references to origins that the page's content security policy does not allow.
package apps

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/internal/nearest"
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

// A tie is the value of the tag app.
type tie struct {
	uri        string // "" if the tool has no page
	visibility []string
}

var appTag = mcpkit.NewToolTag("app", `app:"ui://notes/board"`, parseTie)

func parseTie(value string) (tie, error) {
	var t tie
	for _, word := range strings.FieldsFunc(value, func(r rune) bool { return r == ' ' || r == ',' }) {
		key, v, isPair := strings.Cut(word, "=")
		switch {
		case strings.HasPrefix(word, "ui://") && t.uri == "":
			t.uri = word
		case strings.HasPrefix(word, "ui://"):
			return t, fmt.Errorf("it names two pages, %q and %q", t.uri, word)
		case key == "csp", key == "permissions":
			return t, fmt.Errorf("%s belongs to the page, and hosts ignore it on a tool; %s", key, pageInstead(key))
		case isPair && key == "visibility" && (v == "app" || v == "model"):
			t.visibility = []string{v}
		case isPair && key == "visibility":
			return t, fmt.Errorf("unknown visibility %q; known are app (the tool is for pages) and model (it is for models); without it, it is for both", v)
		default:
			return t, fmt.Errorf("unknown word %q; known are the URI of a page and visibility", word)
		}
	}
	if t.uri == "" && t.visibility == nil {
		return t, errors.New("it names no page")
	}
	return t, nil
}

// pageInstead says where csp and permissions are written.
func pageInstead(key string) string {
	if key == "permissions" {
		return `write apps.Page("board", apps.Permissions("camera")) for the file board.html`
	}
	return `write apps.Page("board", apps.Connect("https://api.example.com")) for the file board.html`
}

// An Option configures [FS]. Every [PageOption] is one, for all pages. A value that is not allowed is
// an error of [mcpkit.New].
type Option interface{ fs(*source) }

// A PageOption configures pages: [FS] takes it for all pages, and [Page] for one.
type PageOption interface {
	Option
	page(*pageConfig)
}

type option func(*source)

func (o option) fs(s *source) { o(s) }

type pageOption func(*pageConfig)

func (o pageOption) fs(s *source)       { s.all = append(s.all, o) }
func (o pageOption) page(p *pageConfig) { o(p) }

// source holds what FS was given.
type source struct {
	fsys   fs.FS
	dir    string
	prefix string
	all    []PageOption
	pages  map[string][]PageOption // by name
}

// Dir is the directory of the file system that has the pages. The default is its root. It is not
// part of the URIs.
func Dir(name string) Option { return option(func(s *source) { s.dir = path.Clean(name) }) }

// Prefix begins the URIs of the pages: with "notes", the file board.html is the page
// ui://notes/board.
func Prefix(path string) Option {
	return option(func(s *source) { s.prefix = strings.Trim(path, "/") })
}

// Page configures the page with the name: the path of its file below [Dir], without .html.
func Page(name string, opts ...PageOption) Option {
	return option(func(s *source) { s.pages[name] = append(s.pages[name], opts...) })
}

// Connect allows scripts of the page to connect to the origins, such as "https://api.example.com" or
// "wss://*.example.com".
func Connect(origins ...string) PageOption {
	return pageOption(func(p *pageConfig) { p.ui.csp().Connect = append(p.ui.csp().Connect, origins...) })
}

// Resources allows the page to load scripts, style sheets, images, fonts and media from the origins.
func Resources(origins ...string) PageOption {
	return pageOption(func(p *pageConfig) { p.ui.csp().Resources = append(p.ui.csp().Resources, origins...) })
}

// Frames allows the page to have frames of the origins.
func Frames(origins ...string) PageOption {
	return pageOption(func(p *pageConfig) { p.ui.csp().Frames = append(p.ui.csp().Frames, origins...) })
}

// BaseURIs allows the page to set the origins as its base URI.
func BaseURIs(origins ...string) PageOption {
	return pageOption(func(p *pageConfig) { p.ui.csp().BaseURIs = append(p.ui.csp().BaseURIs, origins...) })
}

// Permissions asks the host for what the page needs of the browser: "camera", "microphone",
// "geolocation" and "clipboardWrite". The host may refuse.
func Permissions(names ...string) PageOption {
	return pageOption(func(p *pageConfig) {
		if p.ui.Permissions == nil {
			p.ui.Permissions = map[string]struct{}{}
		}
		for _, name := range names {
			p.ui.Permissions[name] = struct{}{}
		}
	})
}

// Border says whether the host should draw a border and a background around the page. By default the
// host decides.
func Border(show bool) PageOption {
	return pageOption(func(p *pageConfig) { p.ui.PrefersBorder = &show })
}

// Domain asks for an origin of the page's own, which does not change between chats. Each host has a
// format for it.
func Domain(name string) PageOption { return pageOption(func(p *pageConfig) { p.ui.Domain = name }) }

// Scopes are what a caller needs to read the page. By default they are the scopes of the tools that
// are tied to the page; if those differ, Scopes is needed.
func Scopes(scopes ...string) PageOption {
	return pageOption(func(p *pageConfig) { p.scopes, p.hasScopes = scopes, true })
}

// FS serves the pages of a file system: each file with the extension .html. It is an option of
// [mcpkit.New] and [mcpkit.Serve], which a server has once. The files are read when a server is made.
//
// A page has the scopes of the tools that are tied to it, so that callers who do not know of the
// tools cannot read it, and is not listed if none of the tools is. The tools have to be registered
// when the server is made; those that are registered later may only use pages that have a tool.
func FS(fsys fs.FS, opts ...Option) mcpkit.Option {
	s := &source{fsys: fsys, dir: ".", pages: map[string][]PageOption{}}
	for _, o := range opts {
		o.fs(s)
	}
	return mcpkit.ExtendEach(func() mcpkit.Extension {
		a := &app{source: s}
		a.pages, a.err = s.read()
		return mcpkit.Extension{
			ID:    ID,
			Tags:  []mcpkit.AnyToolTag{appTag},
			Tool:  a.tool,
			Items: &a.items,
			Check: a.check,
		}
	})
}

// app is the extension of one server.
type app struct {
	source *source
	pages  map[string]*page // by URI
	err    error            // of reading the pages
	items  mcpkit.ItemSet
	made   bool // check has run: the pages have their scopes
}

// toolUI is the member ui in the _meta of a tool.
type toolUI struct {
	ResourceURI string   `json:"resourceUri,omitzero"`
	Visibility  []string `json:"visibility,omitzero"`
}

// tool ties a tool to its page.
func (a *app) tool(t *mcpkit.ToolEntry) error {
	def := t.Definition()
	uri, err := uriInDefinition(def)
	tied, ok := appTag.Of(t)
	if ok {
		uri = tied.uri
		t.SetMeta("ui", toolUI{tied.uri, tied.visibility})
	}
	if err != nil || uri == "" || a.err != nil {
		return err
	}
	p := a.pages[uri]
	if p == nil {
		known := slices.Sorted(maps.Keys(a.pages))
		return fmt.Errorf("tag app: there is no page %q%s; known are %s", uri, nearest.Hint(uri, known), strings.Join(known, ", "))
	}
	if _, has := def.Meta["ui/resourceUri"]; !has {
		t.SetMeta("ui/resourceUri", uri) // hosts of the time before the specification was stable
	}
	t.SetMeta(nameMember, def.Name)
	if a.made {
		return p.admits(t)
	}
	p.tools = append(p.tools, tiedTool{t.Site(), t.Scopes(), t.Hidden()})
	return nil
}

// uriInDefinition returns the page in a definition that was written by hand.
func uriInDefinition(def protocol.Tool) (string, error) {
	raw, ok := def.Meta["ui"]
	if !ok {
		return "", nil
	}
	for _, key := range []string{"csp", "permissions"} {
		if jsonx.Member(raw, key) != nil {
			return "", fmt.Errorf("_meta.ui.%s belongs to the page, and hosts ignore it on a tool; %s", key, pageInstead(key))
		}
	}
	var ui toolUI
	if err := json.Unmarshal(raw, &ui); err != nil {
		return "", fmt.Errorf("_meta.ui: %w", err)
	}
	return ui.ResourceURI, nil
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
		if err := p.takeScopes(); err != nil {
			faults = append(faults, err)
			continue
		}
		items = append(items, p.resource())
	}
	a.made = true
	if faults != nil {
		return errors.Join(faults...)
	}
	return a.items.Replace(items...)
}
