package resource

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/oauth/internal/metadata"
)

// locate computes the URLs of the resource and its metadata.
func (g *Guard) locate() error {
	urls, err := metadata.ProtectedResourceURLs(g.opts.Resource)
	if err != nil {
		return err
	}
	g.metadataURL = urls[0]
	for _, raw := range urls {
		u, err := url.Parse(raw)
		if err != nil {
			return fmt.Errorf("resource %q: %w", g.opts.Resource, err)
		}
		g.paths = append(g.paths, u.EscapedPath())
		g.origin = u.Scheme + "://" + u.Host
		g.local = metadata.IsLoopback(u.Hostname())
	}
	return nil
}

// describe encodes the metadata, which never changes.
func (g *Guard) describe() (err error) {
	doc := metadata.ProtectedResource{
		Resource:               g.opts.Resource,
		AuthorizationServers:   g.issuers(),
		ScopesSupported:        g.opts.ScopesSupported,
		BearerMethodsSupported: []string{"header"},
		ResourceName:           g.opts.Name,
	}
	if doc.ScopesSupported == nil {
		doc.ScopesSupported = g.opts.Scopes
	}
	if g.proofs != nil {
		doc.DPoPSigningAlgValuesSupported = g.proofs.Algorithms()
		doc.DPoPBoundAccessTokensRequired = g.bound
	}
	g.document, err = jsonx.Marshal(doc)
	return err
}

// MetadataPaths returns the paths at which to serve [Guard.Metadata]: the well-known path followed
// by the path of Resource, and the bare well-known path, which some clients use. Both are at the
// root of the host, whatever prefix the resource is mounted below. Only one resource of a host can
// have the bare path.
func (g *Guard) MetadataPaths() []string { return slices.Clone(g.paths) }

// Metadata returns the handler of the protected resource metadata (RFC 9728). The metadata is
// public, and any web page may read it.
func (g *Guard) Metadata() http.Handler { return metadata.Document(g.document) }

// Mount registers the metadata at [Guard.MetadataPaths], with an *http.ServeMux or a similar
// router.
func (g *Guard) Mount(mux interface{ Handle(string, http.Handler) }) {
	for _, path := range g.paths {
		mux.Handle(path, g.Metadata())
	}
}
