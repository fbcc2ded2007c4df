package broker

// In shows u.in to tests.
func (u *User) In(domain, issuer string) bool { return u.in(domain, issuer) }

// ProviderOf returns the provider of a configuration.
var ProviderOf = configuredProvider
