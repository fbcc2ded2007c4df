package apps

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/mcpkit/mcpkit-go/internal/nearest"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// pageUI is the member ui in the _meta of a page.
type pageUI struct {
	CSP           *csp                `json:"csp,omitzero"`
	Permissions   map[string]struct{} `json:"permissions,omitzero"`
	Domain        string              `json:"domain,omitzero"`
	PrefersBorder *bool               `json:"prefersBorder,omitzero"`
}

func (ui *pageUI) csp() *csp {
	if ui.CSP == nil {
		ui.CSP = &csp{}
	}
	return ui.CSP
}

// csp has the origins that a page may use.
type csp struct {
	Connect   []string `json:"connectDomains,omitzero"`
	Resources []string `json:"resourceDomains,omitzero"`
	Frames    []string `json:"frameDomains,omitzero"`
	BaseURIs  []string `json:"baseUriDomains,omitzero"`
}

// pageConfig is what options say of a page.
type pageConfig struct {
	ui        pageUI
	scopes    []string
	hasScopes bool
}

// A page is a page of a server.
type page struct {
	pageConfig
	uri, name, file    string
	title, description string
	html               string
	tools              []tiedTool
}

// A tiedTool is a tool with a page.
type tiedTool struct {
	site   string
	scopes []string
	hidden bool
}

var permissionNames = []string{"camera", "microphone", "geolocation", "clipboardWrite"}

var namePattern = regexp.MustCompile(`^[A-Za-z0-9._~-]+(/[A-Za-z0-9._~-]+)*$`)

// read reads all pages. The error has all faults of all pages.
func (s *source) read() (map[string]*page, error) {
	if s.fsys == nil {
		return nil, errors.New("the file system is nil; embed the pages with //go:embed")
	}
	if s.prefix != "" && !namePattern.MatchString(s.prefix) {
		return nil, fmt.Errorf("prefix %q has other characters than letters, digits and . _ ~ - /", s.prefix)
	}
	root, err := fs.Sub(s.fsys, s.dir)
	if err != nil {
		return nil, fmt.Errorf("directory %q: %w", s.dir, err)
	}
	pages := map[string]*page{}
	var names []string
	var faults []error
	err = fs.WalkDir(root, ".", func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path.Ext(file) != ".html" {
			return err
		}
		name := strings.TrimSuffix(file, ".html")
		names = append(names, name)
		p, err := s.readPage(root, name)
		if err != nil {
			faults = append(faults, err)
			return nil
		}
		pages[p.uri] = p
		return nil
	})
	switch {
	case err != nil:
		return nil, fmt.Errorf("the pages cannot be read: %w", err)
	case len(names) == 0:
		return nil, fmt.Errorf("directory %q of the file system has no file with the extension .html", s.dir)
	}
	for _, name := range slices.Sorted(maps.Keys(s.pages)) {
		if !slices.Contains(names, name) {
			faults = append(faults, fmt.Errorf("Page(%q): there is no file %s.html%s", name, name, nearest.Hint(name, names)))
		}
	}
	return pages, errors.Join(faults...)
}

// readPage reads and checks one page.
func (s *source) readPage(root fs.FS, name string) (*page, error) {
	p := &page{uri: "ui://" + path.Join(s.prefix, name), name: name, file: name + ".html"}
	for _, o := range slices.Concat(s.all, s.pages[name]) {
		o.page(&p.pageConfig)
	}
	var faults []error
	if !namePattern.MatchString(name) {
		faults = append(faults, fmt.Errorf("page %s: its name has other characters than letters, digits and . _ ~ - /; rename the file", p.file))
	}
	for _, known := range slices.Sorted(maps.Keys(p.ui.Permissions)) {
		if !slices.Contains(permissionNames, known) {
			faults = append(faults, fmt.Errorf("page %s: unknown permission %q%s; known are %s", p.file, known, nearest.Hint(known, permissionNames), strings.Join(permissionNames, ", ")))
		}
	}
	if p.ui.CSP != nil {
		for _, origin := range slices.Concat(p.ui.CSP.Connect, p.ui.CSP.Resources, p.ui.CSP.Frames, p.ui.CSP.BaseURIs) {
			if err := checkOrigin(origin); err != nil {
				faults = append(faults, fmt.Errorf("page %s: %w", p.file, err))
			}
		}
	}
	b := &bundler{root: root, page: p}
	if err := b.bundle(); err != nil {
		faults = append(faults, err)
	}
	return p, errors.Join(faults...)
}

// takeScopes gives the page the scopes of its tools.
func (p *page) takeScopes() error {
	if len(p.tools) == 0 {
		return fmt.Errorf("page %s: no tool has it; write app:%q in the tags of one, or remove the file", p.file, p.uri)
	}
	first := p.tools[0]
	if !p.hasScopes {
		p.scopes = first.scopes
	}
	for _, t := range p.tools {
		if p.hasScopes {
			if err := p.readableWith(t); err != nil {
				return err
			}
		} else if !sameScopes(first.scopes, t.scopes) {
			return fmt.Errorf("page %s: %s needs the scopes %q, and %s %q; write apps.Page(%q, apps.Scopes(…)) with the scopes that callers need for the page",
				p.file, first.site, first.scopes, t.site, t.scopes, p.name)
		}
	}
	return nil
}

// admits checks a tool that is registered after the server was made.
func (p *page) admits(t *mcpkit.ToolEntry) error {
	return p.readableWith(tiedTool{site: t.Site(), scopes: t.Scopes()})
}

// readableWith checks that callers of the tool can read the page.
func (p *page) readableWith(t tiedTool) error {
	for _, scope := range p.scopes {
		if !slices.Contains(t.scopes, scope) {
			return fmt.Errorf("page %s needs the scope %q, which callers of %s may not have; add the scope to the tool, or write apps.Page(%q, apps.Scopes(…)) with fewer",
				p.file, scope, t.site, p.name)
		}
	}
	return nil
}

func sameScopes(a, b []string) bool {
	missing := func(a, b []string) bool {
		return slices.ContainsFunc(a, func(s string) bool { return !slices.Contains(b, s) })
	}
	return !missing(a, b) && !missing(b, a)
}

// resource returns the page as a resource.
func (p *page) resource() *mcpkit.ResourceBuilder {
	var meta protocol.Meta
	if ui := p.ui; ui.CSP != nil || ui.Permissions != nil || ui.Domain != "" || ui.PrefersBorder != nil {
		meta = protocol.Meta{}
		_ = meta.Set("ui", ui) // strings and bools: always encodable
	}
	result := &mcpkit.ResourceResult{Contents: []protocol.ResourceContents{{URI: p.uri, MIMEType: MIMEType, Text: &p.html, Meta: meta}}}
	r := mcpkit.NewResource(p.uri, p.name, func() *mcpkit.ResourceResult { return result }).
		Title(p.title).Desc(p.description).MIME(MIMEType).Size(int64(len(p.html))).Scopes(p.scopes...)
	for key, value := range meta {
		r.Meta(key, value)
	}
	if !slices.ContainsFunc(p.tools, func(t tiedTool) bool { return !t.hidden }) {
		r.Hidden()
	}
	return r
}
