package broker

import (
	"bytes"
	"cmp"
	"crypto/rand"
	_ "embed"
	"errors"
	"fmt"
	"html/template"
	"log/slog"
	"net/http"
	"strings"

	"golang.org/x/text/language"
)

//go:embed page.html
var pageText string

var pageTemplate = template.Must(template.New("page").Parse(pageText))

// Texts of the pages. "%[1]s" stands for a name.
const (
	textBadRequest  = "The request cannot be read."
	textUnknown     = "The program is not registered here. Remove its login to this server, and log in again."
	textOther       = "This login has ended, or another browser began it. Log in again."
	textProvider    = "The login at the provider failed. Try again later."
	textUnavailable = "The login is not available at the moment. Try again later."
	textNotAdmitted = "Your account may not use this server."
	textRefused     = "The program has sent a request that is not allowed."
	textDone        = "You can return to the program."

	textTitle      = "Allow %[1]s to use %[2]s?"
	textUnnamed    = "a program without a name"
	textAccount    = "You are logged in at %[1]s as %[2]s."
	textVouched    = "The program is described by %[1]s."
	textUnverified = "The program chose its name itself. Nobody has verified it."
	textLocal      = "The login goes to a program on your computer."
	textRemote     = "The login goes to %[1]s."
	textRights     = "The program may use, in your name:"
	textEverything = "The program may use this server in your name."
	textWarning    = "Allow this only if you have just started a login in this program."
	textAllow      = "Allow"
	textDeny       = "Deny"
	textSwitch     = "Use another account"
	textBack       = "Return to the program"
)

// Texts returns the English texts of the pages, which [Options].Translations translates. "%[1]s" and
// "%[2]s" stand for names.
func Texts() []string {
	return []string{
		textBadRequest, textUnknown, textOther, textProvider, textUnavailable, textNotAdmitted, textRefused, textDone,
		textTitle, textUnnamed, textAccount, textVouched, textUnverified, textLocal, textRemote, textRights,
		textEverything, textWarning, textAllow, textDeny, textSwitch, textBack,
	}
}

// A page is what page.html shows: a message, or the question for the consent of a user.
type page struct {
	Title string
	Back  string // URL of the client; "" for none
	Login string // ID of a login that can go on; "" for none

	Consent                            bool
	Client, Server, Provider, Account  string
	Host, Redirect                     string // that vouches for the client, and that gets the login
	Local                              bool
	Scopes                             []string
	Language, Nonce, Action, SwitchURL string

	words map[string]string // translations
}

// T returns a text in the language of the page, with names in it.
func (p *page) T(text string, names ...any) string {
	text = cmp.Or(p.words[text], text)
	if len(names) == 0 {
		return text
	}
	return fmt.Sprintf(text, names...)
}

// askUser shows the page that asks the user for consent.
func (b *Broker) askUser(w http.ResponseWriter, r *http.Request, l *login, g *grant) {
	back := l.back()
	b.show(w, r, http.StatusOK, &page{
		Title: textTitle, Login: l.ID, Consent: true, Client: l.Name, Server: b.opts.Name,
		Provider: b.opts.Provider.Name, Account: cmp.Or(g.User.Email, g.User.Name, g.User.Subject),
		Host: l.Host, Redirect: back.Host, Local: isLoopback(back), Scopes: g.Scopes,
	})
}

// fail shows an error page. Its text says nothing of the request; the reason is logged.
func (b *Broker) fail(w http.ResponseWriter, r *http.Request, status int, text string, reason error) {
	if reason == nil {
		reason = errors.New("the user has not logged in")
	}
	level := slog.LevelDebug
	if status >= http.StatusInternalServerError {
		level = slog.LevelWarn
	}
	b.opts.Logger.Log(r.Context(), level, "broker: a login failed", "page", text, "reason", reason)
	b.show(w, r, status, &page{Title: text})
}

// show writes a page in the language of the user. The page loads nothing, runs no script, and cannot be
// framed.
func (b *Broker) show(w http.ResponseWriter, r *http.Request, status int, p *page) {
	tag, i := language.MatchStrings(b.languages, r.Header.Get("Accept-Language"))
	p.Language, p.words = tag.String(), b.translations[i]
	p.Nonce, p.Action, p.SwitchURL = rand.Text(), b.url("consent"), b.url("switch")+"?login="+p.Login
	p.Client = cmp.Or(p.Client, p.T(textUnnamed))
	var text bytes.Buffer
	if err := pageTemplate.Execute(&text, p); err != nil {
		b.opts.Logger.ErrorContext(r.Context(), "broker: a page cannot be shown", "error", err)
		status = http.StatusInternalServerError
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", strings.Join([]string{
		"default-src 'none'", "style-src 'nonce-" + p.Nonce + "'", "form-action 'self'", "frame-ancestors 'none'",
		"base-uri 'none'",
	}, "; "))
	h.Set("X-Frame-Options", "DENY")
	// The origin must reach this server with the form, so the policy is not no-referrer.
	h.Set("Referrer-Policy", "same-origin")
	w.WriteHeader(status)
	_, _ = w.Write(text.Bytes())
}
