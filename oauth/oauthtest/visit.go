package oauthtest

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
)

// Open acts as a browser whose user approves at once: it requests the page of an authorization
// server and follows the redirect to the program. Use it as oauthclient.LoopbackOptions.Open in
// tests.
func Open(ctx context.Context, page string) error {
	back, err := get(ctx, page, http.StatusFound)
	if err == nil {
		_, err = get(ctx, back.String(), http.StatusOK)
	}
	return err
}

// Visit is like [Open], but returns the query parameters of the redirect instead of following it.
// Use it as the Visit of an oauthclient.Login whose redirect URI has no server.
func Visit(ctx context.Context, page string) (url.Values, error) {
	back, err := get(ctx, page, http.StatusFound)
	if err != nil {
		return nil, err
	}
	return back.Query(), nil
}

const maxPage = 4 << 10

// get requests a page, which must respond with a status. It returns where the response redirects to.
func get(ctx context.Context, page string, status int) (*url.URL, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, page, nil)
	if err != nil {
		return nil, fmt.Errorf("oauthtest: %w", err)
	}
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		return nil, fmt.Errorf("oauthtest: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != status {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, maxPage))
		return nil, fmt.Errorf("oauthtest: the page responded with status %d: %.500q", resp.StatusCode, text)
	}
	if status != http.StatusFound {
		return nil, nil
	}
	return resp.Location()
}
