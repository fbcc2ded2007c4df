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
	back, err := redirected(ctx, page)
	if err != nil {
		return err
	}
	resp, err := get(ctx, back.String())
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("oauthtest: the program responded with status %d", resp.StatusCode)
	}
	return nil
}

// Visit is like [Open], but returns the query parameters of the redirect instead of following it.
// Use it as the Visit of an oauthclient.Login whose redirect URI has no server.
func Visit(ctx context.Context, page string) (url.Values, error) {
	back, err := redirected(ctx, page)
	if err != nil {
		return nil, err
	}
	return back.Query(), nil
}

const maxPage = 4 << 10

func redirected(ctx context.Context, page string) (*url.URL, error) {
	resp, err := get(ctx, page)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 != 3 {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, maxPage))
		return nil, fmt.Errorf("oauthtest: the page responded with status %d: %.500q", resp.StatusCode, text)
	}
	return resp.Location()
}

// get sends one request and keeps no connection.
func get(ctx context.Context, page string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, page, nil)
	if err != nil {
		return nil, fmt.Errorf("oauthtest: %w", err)
	}
	browser := &http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	resp, err := browser.Do(req)
	if err != nil {
		return nil, fmt.Errorf("oauthtest: %w", err)
	}
	return resp, nil
}
