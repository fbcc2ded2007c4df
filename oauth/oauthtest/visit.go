package oauthtest

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
)

// Open goes where a browser would: to the page of an authorization server, here or elsewhere, that
// agrees at once, and from there to the address of the program that waits for the answer. It is the
// Open of oauthclient.LoopbackOptions for tests.
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
		return fmt.Errorf("oauthtest: the program answered by status %d", resp.StatusCode)
	}
	return nil
}

// Visit goes to the page as [Open] does, and returns what the answer says instead of bringing it to
// anybody. It is the Go of an oauthclient.Login whose redirect URI nobody listens at.
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
		return nil, fmt.Errorf("oauthtest: the page answered by status %d: %.500q", resp.StatusCode, text)
	}
	return resp.Location()
}

// get asks once, and keeps no connection.
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
