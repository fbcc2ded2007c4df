package admission

// An Account is what one request has spent of a [Budget]. The zero value is one without a budget, which may spend anything. It is
// not safe for concurrent use.
type Account struct {
	Budget *Budget
	Key    Key // the caller's
	spent  int64
}

// Spend takes n more for the request. It reports false, and takes nothing, when that is too much.
func (a *Account) Spend(n int64) bool {
	if a.Budget == nil || n <= 0 {
		return true
	}
	if !a.Budget.Spend(a.Key, n) {
		return false
	}
	a.spent += n
	return true
}

// Close gives back what the request has spent.
func (a *Account) Close() {
	if a.spent > 0 {
		a.Budget.Return(a.Key, a.spent)
		a.spent = 0
	}
}
